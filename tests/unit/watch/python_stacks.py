"""Programs whose stacks watch_python_stack_test.cc reads: python_stacks.py MODE.

Each parks its threads, writes one line of JSON to standard output, {"pid": ..., "threads": {TID: [[FILE, LINE,
FUNCTION], ...]}} with the innermost frames first, as the interpreter itself sees them, and then parks where the report
says. It ends when standard input does.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import faulthandler
import gc
import json
import multiprocessing.pool
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from time import sleep
from types import CodeType, FrameType, FunctionType

lock = threading.Lock()


def park() -> None:
    os.read(0, 1)


def nap() -> None:
    time.sleep(3600)


def acquire() -> None:
    lock.acquire()


def parked(frame: FrameType) -> bool:
    code = frame.f_code
    return code in (park.__code__, nap.__code__, acquire.__code__) and frame.f_lineno == code.co_firstlineno + 1


def qualified_name(code: CodeType) -> str:
    """Before Python 3.11 that of the function, which mprun does not find in classes within classes."""
    if sys.version_info >= (3, 11):
        return code.co_qualname
    functions = (user for user in gc.get_referrers(code) if isinstance(user, FunctionType))
    name = next((function.__qualname__ for function in functions), code.co_name)
    return code.co_name if name.count(".") > 1 and "<locals>" not in name else name


def stack_of(frame: FrameType | None) -> list[list]:
    frames = []
    while frame is not None:
        frames.append([frame.f_code.co_filename, frame.f_lineno or 0, qualified_name(frame.f_code)])
        frame = frame.f_back
    return frames


def report(others: list[threading.Thread]) -> int:
    """Reports the stacks of the caller and of other threads once these are parked."""
    while True:
        frames = sys._current_frames()
        if all(thread.ident in frames and parked(frames[thread.ident]) for thread in others):
            break
        time.sleep(0.01)
    threads = {thread.native_id: stack_of(frames[thread.ident]) for thread in others}
    threads[threading.get_native_id()] = stack_of(sys._getframe(1))
    sys.stdout.write(json.dumps({"pid": os.getpid(), "threads": threads}) + "\n")
    sys.stdout.flush()
    return 1


def report_and_park(*others: threading.Thread) -> None:
    os.read(0, report(list(others)))  # one line: it parks where it reports


def start(target: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    return thread


# Ways to get to park() -------------------------------------------------------------------------------------------------


def nested() -> None:
    def inner() -> None:
        (lambda: park())()

    inner()


def numbers() -> Iterator[int]:
    yield 1
    yield from more_numbers()


def more_numbers() -> Iterator[int]:
    park()
    yield 2


def generators() -> None:
    list(enumerate(numbers()))


def sort_key() -> None:
    sorted([2, 1], key=lambda _: park() or 0)


def many_lines() -> list:
    total = sum(
        value
        for value in range(10)
        if value
    )
    for _ in range(3):
        try:
            total = total / 0
        except ZeroDivisionError:
            return [
                total,
                park(),
                {"a": total, **{
                    "b": total,
                }},
            ]
        finally:
            total = 1


class Κλάση:
    class Été:
        def метод(self) -> None:
            park()

    @staticmethod
    def executed() -> None:
        exec("import sys\n\n\ndef 𐌀𐌁():\n    park()\n\n\n𐌀𐌁()\n", {"park": park})


async def awaited() -> None:
    await asyncio.sleep(0)
    await asyncio.gather(coroutine())


async def coroutine() -> None:
    park()


def deep() -> None:
    def recurse(left: int) -> None:
        if left:
            recurse(left - 1)
        else:
            park()

    recurse(60)


def threads() -> None:
    report_and_park(*map(start, (nested, generators, sort_key, many_lines, Κλάση.Été().метод, Κλάση.executed, deep, nap,
                                 acquire, lambda: asyncio.run(awaited()))))


def hurry() -> None:
    def recurse(left: int) -> int:
        return recurse(left - 1) + sum(n for n in range(left)) if left else 0

    while True:
        recurse(20)


def hurrying() -> None:
    """Threads whose stacks change all the time."""
    start(hurry)
    start(hurry)
    report([])
    park()


# Other programs --------------------------------------------------------------------------------------------------------


def fork_in_thread() -> None:
    """A child forked by one thread of several: in it, the other threads are gone."""
    start(park)

    def fork() -> None:
        if os.fork() == 0:
            report_and_park()
            os._exit(0)
        os.wait()

    threading.Thread(target=fork).start()


def fork_in_c() -> None:
    """A child unknown to the interpreter, which still lists the threads of its parent."""
    start(park)
    if ctypes.PyDLL(None).fork() == 0:
        report_and_park()
        os._exit(0)
    os.wait()


def exit_handler() -> None:
    atexit.register(report_and_park)


class Last:
    """Goes when the modules do; no more of Python than this is reliable then."""

    def __del__(self, read=os.read, write=os.write) -> None:
        write(1, b'{"threads": {}}\n')
        read(0, 1)


def finalizing() -> None:
    sys.last = Last()


def hold_gil() -> None:
    read = ctypes.PyDLL(None).read  # not CDLL: a PyDLL keeps the GIL during its calls
    report([])
    read(0, ctypes.create_string_buffer(1), ctypes.c_size_t(1))


def gil_held() -> None:
    start(nap)
    hold_gil()


def gil_wanted() -> None:
    """One thread keeps the GIL and reads a pipe that nothing writes to; the other one wants the GIL."""
    source, _ = os.pipe()
    read = ctypes.PyDLL(None).read
    report([])
    start(hurry)
    read(source, ctypes.create_string_buffer(1), ctypes.c_size_t(1))


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def hurry_in_c(_argument: int | None) -> None:
    hurry()


def gil_kept_by_join() -> None:
    """The main thread keeps the GIL and joins a thread that wants it. Another one sleeps."""
    libc = ctypes.PyDLL(None)
    threads = []
    for function in libc.sleep, hurry_in_c:
        threads.append(ctypes.c_ulong())
        libc.pthread_create(ctypes.byref(threads[-1]), None, ctypes.cast(function, ctypes.c_void_p), 1000)
    report([])
    libc.pthread_join(threads[-1], None)


class Unreadable(Exception):
    """Can be pickled, but not unpickled."""

    def __init__(self, _one: int, _two: int) -> None:
        super().__init__()


def fail() -> None:
    raise Unreadable(1, 2)


def wait_for_pool(task: Callable[[], None], is_ready: Callable[[multiprocessing.pool.Pool], bool]) -> None:
    pool = multiprocessing.get_context("fork").Pool(1)
    pool.apply_async(task)
    while not is_ready(pool):  # there is no event for it
        time.sleep(0.01)
    report([])
    pool.close()
    pool.join()


def pool_without_results() -> None:
    """The thread that takes the results has received one that it cannot read."""
    threading.excepthook = lambda _: None
    wait_for_pool(fail, lambda pool: not pool._result_handler.is_alive())


def pool_with_results() -> None:
    wait_for_pool(nap, lambda pool: True)


def subinterpreter() -> None:
    try:
        import _interpreters as interpreters
    except ImportError:
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            print(json.dumps({"missing": True}), flush=True)
            return
    report([])
    interpreters.run_string(interpreters.create(), "import os\nos.read(0, 1)\n")


# Loops that sleep ------------------------------------------------------------------------------------------------------

MOMENT = 0.001
future: Future = Future()
futures = [future, Future()]
items: queue.Queue = queue.Queue()
event = threading.Event()
results: list[object] = [object()]
finished = 0
counter = multiprocessing.Value("i", 0)
unlocked = multiprocessing.Value("i", 0, lock=False)
parts = multiprocessing.Array("i", 4)
shared_event = multiprocessing.Event()
shared_items = multiprocessing.Queue()
by_name: dict[str, int] = {}
nothing_yet: list = []


class Holder:
    def __init__(self) -> None:
        self.future = future
        self.looks = 0
        self.by_name: dict[str, object] = {}
        self.finished = 0
        self.is_over = False

    @property
    def computed(self) -> Future:
        return future

    def a_future_of_its_own(self) -> None:
        while not self.future.done():
            time.sleep(MOMENT)

    def a_dict_of_its_own(self) -> None:
        while len(self.by_name) < 2:
            time.sleep(MOMENT)

    def a_number_of_its_own(self) -> None:
        while not self.finished >= 2:
            time.sleep(MOMENT)

    def a_flag_of_its_own(self) -> None:
        while not self.is_over:
            time.sleep(MOMENT)

    def nothing_it_counts(self) -> None:
        while not self.future.done():
            self.looks += 1
            time.sleep(MOMENT)

    def nothing_computed(self) -> None:
        while not self.computed.done():
            time.sleep(MOMENT)


def a_future_of_a_module() -> None:
    while not future.done():
        sleep(MOMENT)


def a_future_among_some() -> None:
    pending = list(futures)
    while not all(one.done() for one in pending):
        time.sleep(MOMENT)
        if pending[0].cancelled():
            break


def an_item() -> None:
    got = []
    while len(got) < 2:
        try:
            got.append(items.get(timeout=MOMENT))
        except queue.Empty:
            continue


def more_results() -> None:
    while len(results) <= 2:
        sleep(MOMENT)


def a_number_of_a_module() -> None:
    while finished < 2:
        time.sleep(MOMENT)


def a_counter() -> None:
    while counter.value < 2:
        time.sleep(MOMENT)


def a_counter_without_lock() -> None:
    while 2 > unlocked.value:
        time.sleep(MOMENT)


def a_counter_under_its_lock() -> None:
    while True:
        with counter.get_lock():
            if counter.value > 2:
                break
        time.sleep(MOMENT)


def one_of_an_array() -> None:
    while parts[1] < 2:
        time.sleep(MOMENT)


def a_future_or_a_shared_flag() -> None:
    while not future.done() and not counter.value:
        time.sleep(MOMENT)


def a_flag() -> None:
    while finished != 3:
        time.sleep(MOMENT)


def a_flag_of_an_event() -> None:
    while not event.is_set():
        time.sleep(MOMENT)


def a_shared_flag() -> None:
    while counter.value != 1 and not finished:
        time.sleep(MOMENT)


def an_event_of_processes() -> None:
    while not shared_event.is_set():
        time.sleep(MOMENT)


def an_item_of_processes() -> None:
    while shared_items.empty():
        time.sleep(MOMENT)


def a_name_in_a_dict() -> None:
    while "last" not in by_name:
        time.sleep(MOMENT)


def a_list_with_something() -> None:
    while not nothing_yet:
        time.sleep(MOMENT)


def nothing_without_an_exit() -> None:
    while True:
        if finished:
            time.sleep(MOMENT)
        time.sleep(MOMENT)


def nothing_but_its_own_flag() -> None:
    running = True
    while running:
        time.sleep(MOMENT)


def nothing_of_an_unknown_object() -> None:
    while len(str(results[0])) < 2:
        time.sleep(MOMENT)


def an_event() -> None:
    while not event.wait(MOMENT):
        pass


def nothing_with_a_time() -> None:
    began = time.monotonic()
    while not future.done():
        if time.monotonic() - began > 3600:
            break
        time.sleep(MOMENT)


def nothing_with_a_file() -> None:
    while not future.done():
        time.sleep(MOMENT)
        if os.path.exists("/no/such/file"):
            break


def nothing_with_a_time_in_a_handler() -> None:
    while not future.done():
        try:
            items.get_nowait()
        except queue.Empty:
            if time.monotonic() < 0:
                return
        time.sleep(MOMENT)


def nothing_of_the_user() -> None:
    while not future.done():
        pause()


def pause() -> None:
    time.sleep(MOMENT)


def nothing_that_ends() -> None:
    for _ in range(10**9):
        if future.done():
            break
        time.sleep(MOMENT)


LENGTH = "another length of a list, a dict or the like"
NUMBER = "another value of a variable"
SHARED = "another value in shared memory"


def loops() -> None:
    """Starts loops, each named after what it waits for, and reports them once their instructions are specialised."""
    holder = Holder()
    wanted = {a_future_of_a_module: "a future", a_future_among_some: "a future", holder.a_future_of_its_own: "a future",
              an_item: "an item of a queue", more_results: LENGTH, holder.a_dict_of_its_own: LENGTH,
              a_number_of_a_module: NUMBER, holder.a_number_of_its_own: NUMBER, a_counter: SHARED,
              a_counter_without_lock: SHARED, a_counter_under_its_lock: SHARED, one_of_an_array: SHARED,
              a_future_or_a_shared_flag: "a future", a_flag: NUMBER, a_flag_of_an_event: NUMBER, an_event: NUMBER,
              holder.a_flag_of_its_own: NUMBER, a_shared_flag: SHARED, an_event_of_processes: SHARED,
              an_item_of_processes: "an item of a queue", a_name_in_a_dict: LENGTH, a_list_with_something: LENGTH}
    others = (nothing_without_an_exit, nothing_but_its_own_flag, nothing_of_an_unknown_object,
              nothing_with_a_time, nothing_with_a_time_in_a_handler, nothing_with_a_file, nothing_of_the_user,
              nothing_that_ends,
              holder.nothing_it_counts, holder.nothing_computed)
    awaited = {}
    for function in (*wanted, *others):
        awaited[start(function).native_id] = [function.__name__, wanted.get(function, "")]
    time.sleep(300 * MOMENT)
    print(json.dumps({"pid": os.getpid(), "awaited": awaited}), flush=True)
    park()


# --- loops around waits with a limit ---

waits_seen = {"count": 0}


def one_wait() -> bool:
    return event.wait(MOMENT)


def wait_in_caller() -> None:
    while True:
        one_wait()


def wait_for_an_item() -> None:
    while True:
        try:
            item = items.get(timeout=MOMENT)
        except queue.Empty:
            continue
        handle(item)


def wait_for_an_event() -> None:
    while not event.wait(MOMENT):
        pass


def wait_for_a_thread() -> None:
    thread = start(park)
    while thread.is_alive():
        thread.join(MOMENT)


def wait_and_say_so() -> None:
    polls = 0
    while polls >= 0:
        if event.wait(MOMENT):
            handle(None)
        polls += 1


def handle(_item: object) -> None:
    waits_seen["count"] += 1


def until_a_count() -> None:
    while waits_seen["count"] < 1 << 62:
        event.wait(MOMENT)
        waits_seen["count"] += 1


def until_a_time() -> None:
    while time.monotonic_ns() >= 0:
        event.wait(MOMENT)


def until_a_file() -> None:
    while not os.path.exists("/nowhere"):
        try:
            items.get(timeout=MOMENT)
        except queue.Empty:
            pass


def until_a_function_says_so() -> None:
    while waits_seen is not None:
        if event.wait(MOMENT):
            return
        handle(None)


def until_a_generator_ends() -> None:
    for _ in iter(object, None):
        event.wait(MOMENT)


def until_its_caller_knows() -> None:
    while time.time() >= 0:
        one_wait()


def waits() -> None:
    """Starts loops, and reports once their instructions are specialised which may go on by more than their wait."""
    known = (wait_in_caller, wait_for_an_item, wait_for_an_event, wait_for_a_thread, wait_and_say_so)
    others = (until_a_count, until_a_time, until_a_file, until_a_function_says_so, until_a_generator_ends,
              until_its_caller_knows)
    decides = {}
    for function in (*known, *others):
        decides[start(function).native_id] = [function.__name__, function in others]
    time.sleep(300 * MOMENT)
    print(json.dumps({"pid": os.getpid(), "decides": decides}), flush=True)
    park()


def interrupt_raises() -> None:
    """As in every program."""
    report_and_park()


def interrupt_cancels() -> None:
    """asyncio's handler cancels the main task."""

    async def main() -> None:
        report_and_park()

    asyncio.run(main())


def signals_handled() -> None:
    """By functions of the program."""
    signal.signal(signal.SIGINT, lambda _number, _frame: None)
    signal.signal(signal.SIGUSR1, lambda _number, _frame: None)
    report_and_park()


class Gate:
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def open(self) -> None:
        self.lock.release()

    def handle(self, _number: int, _frame: object) -> None:
        self.open()


def signal_frees_lock() -> None:
    """The handler calls a method that does."""
    signal.signal(signal.SIGUSR1, Gate().handle)
    report_and_park()


def signal_prints_stacks() -> None:
    faulthandler.register(signal.SIGUSR1)
    report_and_park()


def signal_wakes_loop() -> None:
    """A function of the program runs in an event loop."""

    async def main() -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, park)
        report_and_park()

    asyncio.run(main())


# As torch has it, whose file is known by its name.
WATCH_WORKERS = """
def watch_workers(previous):
    def handler(number, frame):
        if previous is not None:
            previous(number, frame)
    signal.signal(signal.SIGCHLD, handler)
"""


def workers_watched(previous: Callable[..., None] | None = None) -> None:
    """As by a DataLoader of torch."""
    functions = {"signal": signal}
    exec(compile(WATCH_WORKERS, "/usr/torch/utils/data/_utils/signal_handling.py", "exec"), functions)  # noqa: S102
    functions["watch_workers"](previous)
    report_and_park()


def workers_watched_too() -> None:
    """The same in a program that has a handler of its own."""
    workers_watched(lambda _number, _frame: None)


def counting() -> None:
    """Starts a thread that waits for a counter of shared memory, and reports it."""
    print(json.dumps({"pid": os.getpid(), "waits": start(a_counter).native_id}), flush=True)
    park()


if __name__ == "__main__":
    lock.acquire()
    {function.__name__: function for function in (
        threads, hurrying, fork_in_thread, fork_in_c, exit_handler, finalizing, gil_held, gil_wanted,
        gil_kept_by_join, pool_without_results, pool_with_results, subinterpreter, loops, waits, counting, interrupt_raises,
        interrupt_cancels, signals_handled, signal_frees_lock, signal_prints_stacks, signal_wakes_loop, workers_watched,
        workers_watched_too)}[sys.argv[1]]()
