"""A pool that replaces its workers, whose tasks wait for a thread of their own that computes."""
import multiprocessing, sys, time, threading

def compute(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(100_000))

def work(seconds):
    thread = threading.Thread(target=compute, args=[seconds])
    thread.start()
    thread.join()
    return seconds

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        pool.map(work, [0.1, 0.1, float(sys.argv[1])], chunksize=1)
    print("done", flush=True)
