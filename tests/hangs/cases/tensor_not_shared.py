"""A flag in a tensor that was not moved to shared memory: the forked child polls its own copy."""

import multiprocessing
import time

import torch

flag = torch.zeros(1)


def wait_for_flag() -> None:
    while flag.item() == 0:
        time.sleep(0.05)


if __name__ == "__main__":
    child = multiprocessing.get_context("fork").Process(target=wait_for_flag)
    child.start()
    flag.fill_(1)
    child.join()  # hangs here
    print("done")
