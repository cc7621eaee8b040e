"""Benchmarks: each is a ratio inside one run, against eager and torch.compile. Run by `make bench`."""
