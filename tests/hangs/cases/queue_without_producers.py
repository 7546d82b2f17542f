"""Main gets one item more than its producers, which have ended, have put."""

import multiprocessing

context = multiprocessing.get_context("fork")


def produce(queue) -> None:
    queue.put(1)


if __name__ == "__main__":
    queue = context.Queue()
    producers = [context.Process(target=produce, args=(queue,)) for _ in range(2)]
    for producer in producers:
        producer.start()
    for _ in range(3):
        queue.get()  # hangs here
    print("done", flush=True)
