"""Looks ten times a second how many of its children have counted up in shared memory; one of them fails before."""

import multiprocessing
import time


def work(number: int, done) -> None:
    if number == 1:
        raise ValueError("no such input")
    with done.get_lock():
        done.value += 1


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    done = context.Value("i", 0)
    children = [context.Process(target=work, args=(number, done)) for number in range(3)]
    for child in children:
        child.start()
    while done.value < len(children):
        time.sleep(0.1)
    print("done")
