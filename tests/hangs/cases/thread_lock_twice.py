"""A function that holds a lock calls another one that takes it too."""

import threading

lock = threading.Lock()


def add(totals: dict[str, int], name: str) -> None:
    with lock:  # blocks here
        totals[name] = totals.get(name, 0) + 1


def count(names: list[str]) -> dict[str, int]:
    totals: dict[str, int] = {}
    with lock:
        for name in names:
            add(totals, name)
    return totals


if __name__ == "__main__":
    print(count(["a", "b"]))
