"""Waits for a future of torch, whose result is set after it has been waited for."""

import torch

if __name__ == "__main__":
    result = torch.futures.Future()  # type: ignore[var-annotated]
    result.wait()  # hangs here
    result.set_result(1)
    print("done")
