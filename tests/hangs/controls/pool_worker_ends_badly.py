"""A pool whose workers end badly after each task, without losing it: its inputs come slowly, while a thread reports."""
import multiprocessing, multiprocessing.util, os, sys, threading, time

def work(seconds):
    multiprocessing.util.Finalize(None, os._exit, args=[3], exitpriority=0)
    time.sleep(seconds)

def inputs(seconds):
    for _ in range(3):
        time.sleep(seconds / 2)
        yield 0

def report(over):
    with open(os.devnull, "w") as file:  # how often depends on the time that all takes
        while not over.wait(0.2):
            print("all is well", file=file, flush=True)

if __name__ == "__main__":
    over = threading.Event()
    reporter = threading.Thread(target=report, args=[over], daemon=True)
    reporter.start()
    seconds = float(sys.argv[1])
    at_once = int(sys.argv[2])
    with multiprocessing.get_context("fork").Pool(at_once, maxtasksperchild=1) as pool:
        if at_once == 2:
            for _ in pool.imap(work, inputs(seconds)):
                pass
            pool.map(work, [seconds])
        else:  # all of them end at about the same time
            pool.map(work, [seconds] * 2 * at_once, chunksize=1)
    over.set()
    reporter.join()
    print("done", flush=True)
