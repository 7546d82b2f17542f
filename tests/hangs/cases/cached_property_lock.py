"""Before Python 3.12, a cached_property has one lock for all objects (cpython#87634): the property of one object waits
for a thread that needs that of another.
"""

import threading
from functools import cached_property


class Part:
    def __init__(self, *below: "Part") -> None:
        self.below = below

    @cached_property
    def size(self) -> int:
        threads = [threading.Thread(target=lambda part=part: part.size) for part in self.below]  # blocks here
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()  # hangs here
        return 1 + len(self.below)


print(Part(Part()).size)
print("done")
