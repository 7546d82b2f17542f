"""Gives a forked child its own random numbers, for a program that asks (MPRUN_ADAPTERS=+seeds): without it the child
continues numpy's and torch's global generators of its parent, and siblings draw the same numbers (numpy issue 9650,
pytorch issue 5059). Python's own `random` reseeds itself. A job's workers are always seeded.
"""
import sys


def child():
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        numpy.random.seed()
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "seed"):
        torch.seed()
