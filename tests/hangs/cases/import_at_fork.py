"""Case 23: another thread imports a slow module at the moment of fork, the child imports it too (SCons#2050)."""

import multiprocessing
import threading

import import_gate


def load() -> None:
    import import_slow  # noqa: F401


def work() -> None:
    import import_slow  # noqa: F401  # blocks here


def main() -> None:
    threading.Thread(target=load, daemon=True).start()
    import_gate.entered.wait()
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()  # hangs here
    import_gate.leave.set()
    print("done", flush=True)


if __name__ == "__main__":
    main()
