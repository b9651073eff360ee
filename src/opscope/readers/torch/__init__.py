"""Files of PyTorch, read without PyTorch: exported programs, TorchScript archives, Chakra execution traces."""
