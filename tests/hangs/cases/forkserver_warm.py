"""What the forkserver of forkserver_openmp.py preloads."""

import torch

torch.set_num_threads(2)
assert int(torch.arange(1_000_000).add(1).sum()) == 500000500000
