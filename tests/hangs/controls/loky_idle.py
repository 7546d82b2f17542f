"""joblib's workers take their time, and then have nothing to do while main thinks."""

import sys
import time

from joblib import Parallel, delayed

if __name__ == "__main__":
    seconds = float(sys.argv[1])
    for _ in range(2):
        Parallel(n_jobs=2)(delayed(time.sleep)(late) for late in (0, seconds))
        time.sleep(seconds)  # main thinks: that is what this is about
    print("done")
