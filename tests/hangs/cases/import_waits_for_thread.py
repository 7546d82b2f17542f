"""A module that, while it is imported, waits for a thread that needs the module."""

import threading


def work() -> None:
    import import_waits_for_thread

    print(import_waits_for_thread.__name__, flush=True)


if __name__ == "__main__":
    import import_waits_for_thread  # noqa: F401

    print("done")
else:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()  # hangs here
