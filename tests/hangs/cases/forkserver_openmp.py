"""Case 3: a forkserver whose preloaded module runs a region of two threads when it is imported."""

import multiprocessing
import multiprocessing.connection
import os

SIZE = 1_000_000


def work(answer: multiprocessing.connection.Connection) -> None:
    import torch  # the forkserver has it already

    print("second region", flush=True)
    answer.send(int(torch.arange(SIZE).add(1).sum()))


def main() -> None:
    os.chdir(os.path.dirname(__file__))  # the forkserver looks for modules here, not next to this file
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["forkserver_warm"])
    # Not a queue: its semaphores would be left behind when a test kills what hangs.
    result, answer = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(answer,))
    process.start()
    process.join()  # hangs here
    assert process.exitcode == 0
    assert result.recv() == SIZE * (SIZE + 1) // 2
    print("done", flush=True)


if __name__ == "__main__":
    main()
