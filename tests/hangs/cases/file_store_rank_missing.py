"""torch.distributed meets by a file, and one of two ranks is never started."""

import tempfile

import torch.distributed

method = f"file://{tempfile.mkdtemp()}/store"
torch.distributed.init_process_group("gloo", init_method=method, rank=0, world_size=2)  # hangs here
print("done")
