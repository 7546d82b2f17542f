"""Peers of tests/bench/evaluation.py: `evaluation_peers.py KIND WORKERS OUTPUT.npy` evaluates BENCH_IMAGES."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterable

import numpy

from evaluation_tasks import BATCH, images, logits_of

Parts = Iterable[numpy.ndarray]


def single(begins: range, _workers: int) -> Parts:
    """This one process."""
    return [logits_of(begin) for begin in begins]


def pool(begins: range, workers: int) -> Parts:
    """Forked workers that inherit the net and the mapped images from their parent."""
    with multiprocessing.get_context("fork").Pool(workers) as made:
        return made.map(logits_of, begins)


def joblib_loky(begins: range, workers: int) -> Parts:
    """joblib's default; every worker loads its own net."""
    import joblib

    return joblib.Parallel(n_jobs=workers)(joblib.delayed(logits_of)(begin) for begin in begins)


KINDS = {"single": single, "pool": pool, "joblib": joblib_loky}


def main() -> None:
    """Runs what the command line names."""
    kind, workers, output = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    begins = range(0, len(images()), BATCH)
    numpy.save(output, numpy.concatenate(list(KINDS[kind](begins, workers))))


if __name__ == "__main__":
    main()
