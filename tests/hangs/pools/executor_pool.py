"""concurrent.futures.ProcessPoolExecutor, by fork."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import after_fork

if __name__ == "__main__":
    after_fork.warm_up()
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        assert all(pool.map(after_fork.works, range(6)))
    after_fork.report()
