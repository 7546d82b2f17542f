"""The parent joins a child before it sets the multiprocessing.Event that the child waits for."""

import multiprocessing
from multiprocessing.synchronize import Event


def work(event: Event) -> None:
    event.wait()  # blocks here


def main() -> None:
    context = multiprocessing.get_context("fork")
    event = context.Event()
    process = context.Process(target=work, args=(event,))
    process.start()
    process.join()  # hangs here
    event.set()
    print("done", flush=True)


if __name__ == "__main__":
    main()
