"""A pool whose workers end badly after each task, without losing it: its inputs come slowly, while a thread reports."""
import multiprocessing, multiprocessing.util, os, sys, threading, time

def work(seconds):
    multiprocessing.util.Finalize(None, os._exit, args=[3], exitpriority=0)
    time.sleep(seconds)

def inputs(seconds):
    for _ in range(3):
        time.sleep(seconds / 2)
        yield 0

def report():
    while True:
        time.sleep(0.2)
        print("all is well", flush=True)

if __name__ == "__main__":
    threading.Thread(target=report, daemon=True).start()
    seconds = float(sys.argv[1])
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        for _ in pool.imap(work, inputs(seconds)):
            pass
        pool.map(work, [seconds])
    print("done", flush=True)
