"""What bench_viewer.py measures with: a browser whose CPU is counted from outside, and how each viewer is driven."""
