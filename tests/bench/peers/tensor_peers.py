"""Peers of tests/bench/tensors.py: `tensor_peers.py KIND FILE WORKERS` prints bytes per second.

FILE is a .npy file of rows, BENCH_BYTES the size of a row. Workers have started and run a task before the clock
starts; it stops when the caller has all results. `{"in": ..., "out": ..., "trip": ...}`: a trip counts the
bytes in both directions.
"""

from __future__ import annotations

import json
import mmap
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy

import tensor_tasks

Run = Callable[[], Any]
Runs = Mapping[str, Run]  # by the name of what they measure

CHUNK_BYTES = 1 << 20  # small arrays travel in chunks of about this size if the peer has chunks
TORCH_TENSORS = 1_000  # at most: each costs so much that more would only take longer
QUEUED = 8  # tensors in flight in each of torch's queues


def timed(runs: Runs, size: int) -> dict[str, float]:
    """Bytes per second of each run."""
    rates = {}
    for name, run in runs.items():
        began = time.perf_counter()
        run()
        rates[name] = size * (2 if name == "trip" else 1) / (time.perf_counter() - began)
    return rates


def drain(results: Iterable[Any]) -> None:
    """Takes all results, keeps none."""
    for _ in results:
        pass


def memcpy(rows: numpy.ndarray, _workers: int) -> dict[str, float]:
    """numpy.copyto in one thread; every byte of both sides has been used before."""
    gathered = numpy.ones_like(rows)
    own = tensor_tasks._own

    def take() -> None:
        for row in rows:
            numpy.copyto(own, row)

    def give() -> None:
        for row in gathered:
            numpy.copyto(row, own)

    def trip() -> None:
        for source, target in zip(rows, gathered):
            numpy.copyto(own, source)
            numpy.copyto(target, own)

    return timed({"in": take, "out": give, "trip": trip}, rows.nbytes)


def memcpy_cold(rows: numpy.ndarray, _workers: int) -> dict[str, float]:
    """The same into memory never used before: the kernel has to find and clear each page."""
    own = tensor_tasks._own

    def give() -> None:
        fresh = numpy.frombuffer(mmap.mmap(-1, rows.nbytes), numpy.uint8).reshape(rows.shape)
        for row in fresh:
            numpy.copyto(row, own)

    return timed({"out": give}, rows.nbytes)


def memcpy_cached(rows: numpy.ndarray, _workers: int) -> dict[str, float]:
    """The same bytes again and again: what fits the processor's caches never leaves them."""
    own, target = tensor_tasks._own, numpy.ones_like(tensor_tasks._own)

    def give() -> None:
        for _ in rows:
            numpy.copyto(target, own)

    return timed({"out": give}, rows.nbytes)


def pool(rows: numpy.ndarray, workers: int) -> dict[str, float]:
    """multiprocessing.Pool: arrays travel as pickles through pipes."""
    chunk = max(1, min(256, CHUNK_BYTES // rows.shape[1]))
    with multiprocessing.Pool(workers) as made:
        drain(made.imap_unordered(tensor_tasks.take, rows[: 2 * workers], 1))

        def over(function: Callable[[Any], Any], inputs: Any) -> Run:
            return lambda: drain(made.imap_unordered(function, inputs, chunk))

        runs = {
            "in": over(tensor_tasks.take, rows),
            "out": over(tensor_tasks.give, range(len(rows))),
            "trip": over(tensor_tasks.trip, rows),
        }
        return timed(runs, rows.nbytes)


def pool_npy(rows: numpy.ndarray, workers: int) -> dict[str, float]:
    """The same, whose parent writes each result to its row of a new .npy file."""
    chunk = max(1, min(256, CHUNK_BYTES // rows.shape[1]))
    with multiprocessing.Pool(workers) as made, tempfile.TemporaryDirectory(prefix="mprun-bench-") as folder:
        drain(made.imap_unordered(tensor_tasks.take, rows[: 2 * workers], 1))

        def gather(function: Callable[[Any], Any], inputs: Any) -> None:
            gathered = numpy.lib.format.open_memmap(f"{folder}/{function.__name__}.npy", "w+", rows.dtype, rows.shape)
            for number, row in enumerate(made.imap(function, inputs, chunk)):
                gathered[number] = row

        runs = {
            "out": lambda: gather(tensor_tasks.give, range(len(rows))),
            "trip": lambda: gather(tensor_tasks.trip, rows),
        }
        return timed(runs, rows.nbytes)


def serve(source: Any, sink: Any) -> None:
    """A process with torch's queues: (what, tensor), until there is nothing left to do."""
    import torch

    torch.set_num_threads(1)
    while (order := source.get()) is not None:
        what, tensor = order
        if tensor is not None:
            tensor_tasks.take(tensor.numpy())
        del tensor, order
        sink.put(None if what == "in" else torch.from_numpy(tensor_tasks._own))


def torch_queues(rows: numpy.ndarray, workers: int) -> dict[str, float]:
    """torch.multiprocessing: a queue to all workers and one back; each tensor is put into new shared memory."""
    import torch
    import torch.multiprocessing

    torch.set_num_threads(1)
    rows = rows[:TORCH_TENSORS]
    context = torch.multiprocessing.get_context("fork")
    source, sink = context.Queue(QUEUED), context.Queue(QUEUED)
    processes = [context.Process(target=serve, args=(source, sink)) for _ in range(workers)]
    for process in processes:
        process.start()

    def move(what: str, number: int) -> None:
        sent = received = 0
        while received < number:
            while sent < number and sent < received + QUEUED:
                tensor = None if what == "out" else torch.from_numpy(rows[sent])
                source.put((what, tensor))
                sent += 1
            sink.get()
            received += 1

    move("trip", min(len(rows), 2 * workers))
    runs: dict[str, Run] = {
        what: lambda what=what: move(what, len(rows)) for what in ("in", "out", "trip")
    }
    rates = timed(runs, rows.nbytes)
    for _ in processes:
        source.put(None)
    for process in processes:
        process.join()
    return rates


def joblib_memmap(rows: numpy.ndarray, workers: int) -> dict[str, float]:
    """joblib's loky: rows of a mapped file travel as their position in it, results as pickles."""
    import joblib

    with joblib.Parallel(n_jobs=workers) as parallel:
        parallel(joblib.delayed(tensor_tasks.take)(row) for row in rows[: 2 * workers])

        def over(function: Callable[[Any], Any], inputs: Any) -> Run:
            return lambda: parallel(joblib.delayed(function)(one) for one in inputs)

        runs = {
            "in": over(tensor_tasks.take, rows),
            "out": over(tensor_tasks.give, range(len(rows))),
            "trip": over(tensor_tasks.trip, rows),
        }
        return timed(runs, rows.nbytes)


KINDS: dict[str, Callable[[numpy.ndarray, int], dict[str, float]]] = {
    "memcpy": memcpy,
    "memcpy_cold": memcpy_cold,
    "memcpy_cached": memcpy_cached,
    "pool": pool,
    "pool_npy": pool_npy,
    "torch": torch_queues,
    "joblib": joblib_memmap,
}


def main() -> None:
    """Runs what the command line names."""
    kind, file, workers = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rows = numpy.load(file, mmap_mode="r" if kind == "joblib" else None)
    print(json.dumps(KINDS[kind](rows, workers)))


if __name__ == "__main__":
    main()
