"""Each of two threads waits for the end of the other."""

import threading

threads: list[threading.Thread] = []
both_started = threading.Barrier(3)


def work(other: int) -> None:
    both_started.wait()
    threads[other].join()  # blocks here


threads += [threading.Thread(target=work, args=(other,)) for other in (1, 0)]
for thread in threads:
    thread.start()
both_started.wait()
for thread in threads:
    thread.join()  # hangs here
print("done")
