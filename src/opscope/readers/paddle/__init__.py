"""Files that PaddlePaddle writes, read without it: backward dumps (dot), logs, PIR programs."""
