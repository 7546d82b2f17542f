"""The thread that should call notify() ends without it: main waits for its Condition forever."""

import threading

condition = threading.Condition()


def produce() -> None:
    with condition:
        pass  # found nothing to produce, and forgot to notify


if __name__ == "__main__":
    with condition:
        producer = threading.Thread(target=produce)
        producer.start()
        condition.wait()  # hangs here
    print("done", flush=True)
