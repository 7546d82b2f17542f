"""torch.multiprocessing's Pool, by fork."""

import after_fork
import torch.multiprocessing

if __name__ == "__main__":
    after_fork.warm_up()
    with torch.multiprocessing.get_context("fork").Pool(2) as pool:
        assert all(pool.map(after_fork.works, range(6), chunksize=1))
        pool.close()
        pool.join()
    after_fork.report()
