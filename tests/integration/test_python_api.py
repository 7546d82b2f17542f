"""What a Python program starts with `import mprun`: map, run, Executor and the backend of joblib."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import gc
import importlib.util
import json
import math
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

import harness
from terminal import COLUMNS, Terminal

PACKAGE = harness.MPRUN_BIN.resolve().parent.parent / "lib/mprun/python"
sys.path.append(str(PACKAGE))
import mprun as api  # noqa: E402  # the fixture is called mprun

numpy = pytest.importorskip("numpy")
LIMIT = 60  # seconds that nothing here takes


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's folder is the current one, and the temporary one."""
    for name in harness.FOREIGN_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run_python(own_folder: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """run_python(text, *options): a script of that text, as a main program."""

    def run(text: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
        script = own_folder / "program.py"
        script.write_text(text, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "TMPDIR": str(own_folder), **variables}
        words = [harness.MPRUN_PYTHON, *options, str(script)]
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)

    return run


@pytest.fixture(params=["fork", "spawn"])
def executor(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Two workers."""
    with api.Executor(2, start_method=request.param) as made:
        yield made


def no_folder_left(folder: Path) -> bool:
    return not list(folder.glob("mprun-*"))


# --- functions for workers -------------------------------------------------------------------------


class Odd(Exception):
    """One that pickle cannot make again from its message."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} ({code})")
        self.code, self.text = code, text

    def __reduce__(self) -> Any:
        return Odd, (self.code, self.text)


class Unloadable(Exception):
    """One that is pickled, and cannot be loaded."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


class ExitsWhenLoaded:
    def __reduce__(self) -> Any:
        return sys.exit, (1,)


class ErrorThatExitsWhenLoaded(ExitsWhenLoaded, Exception):
    pass


class ExitsWhenShown(Exception):
    def __str__(self) -> str:
        sys.exit(1)


class FailsWhenLoaded:
    def __reduce__(self) -> Any:
        return int, ("no number",)


class ShutsDown:
    """Shuts the executor down when it is pickled."""

    def __init__(self, executor: Any) -> None:
        self.executor = executor

    def __reduce__(self) -> Any:
        self.executor.shutdown()
        return int, ()


def square(x: float) -> float:
    return x * x


def fail_at_three(x: int) -> int:
    if x == 3:
        raise Odd(7, "three")
    return x


def throw(kind: type[BaseException]) -> None:
    raise kind


def mark(name: str, text: str = "") -> None:
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(fd, f"{text}\n".encode())
    os.close(fd)


def wait_for_file(name: str) -> str:
    """Says that it runs, and returns when the file is there."""
    mark("began", name)
    harness.wait_until(lambda: os.path.exists(name), LIMIT, name)
    return name


def die(number: int) -> None:
    print("last words", file=sys.stderr)
    os.kill(os.getpid(), number)


def take_twice() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


# --- map -------------------------------------------------------------------------------------------


def test_map_of_functions(start_method: str) -> None:
    """A module's, a lambda, a closure, a partial; inputs and results are what they were."""
    offset = 10
    options: dict[str, Any] = {"processes": 2, "start_method": start_method}
    assert api.map(square, range(5), **options) == [0, 1, 4, 9, 16]
    assert api.map(lambda x: x + offset, [1, 2], **options) == [11, 12]
    assert api.map(functools.partial(pow, 2), [3], **options) == [8]
    values = [None, True, -(2**80), 0.1, float("inf"), "text\n", b"\0", (1, [2]), {3: {4}}, "x" * 100_000]
    assert api.map(lambda value: value, values, **options) == values
    assert [type(value) for value in api.map(lambda value: value, [1, 1.0, True], processes=1)] == [int, float, bool]


def test_map_calls_as_the_spec_says() -> None:
    assert api.map(pow, [(2, 3), (3, 2)], call="args", processes=1) == [8, 9]
    assert api.map(dict, [{"a": 1}], call="kwargs", processes=1) == [{"a": 1}]
    assert api.map(square, [], processes=1) == []
    with pytest.raises(api.SpecError, match="call is 'arg', allowed: item, args, kwargs"):
        api.map(square, [1], call="arg")


def test_map_reads_a_generator_as_it_is_needed(own_folder: Path) -> None:
    """The second input comes only when the first task has run."""

    def inputs() -> Iterator[str]:
        yield "first"
        harness.wait_until(lambda: harness.marks(own_folder / "done"), LIMIT, "the first task")
        yield "second"

    assert api.map(lambda text: (mark("done", text), text)[1], inputs(), processes=1) == ["first", "second"]


def test_map_runs_setup(start_method: str) -> None:
    """`setup` once in the host of fork, else in every worker, as `worker_setup` everywhere."""
    made = api.map(
        lambda _: None, range(4), processes=1, start_method=start_method,
        setup=lambda: mark("setup"), worker_setup=lambda: mark("worker_setup"),
    )  # fmt: skip
    assert made == [None] * 4
    assert (harness.marks(Path("setup")), harness.marks(Path("worker_setup"))) == ([""], [""])


def test_numbers_come_back_as_they_were() -> None:
    """Also large ones: one that is more than a float can be, and one with more digits than Python writes."""
    numbers = [0, -(2**63), 2**64, 10**600, math.factorial(3000), -0.0, 5e-324, 1.7976931348623157e308]
    results = api.map(lambda number: numbers[number], range(len(numbers)), processes=1)
    assert results == numbers and math.copysign(1, results[5]) == -1
    assert api.map(lambda number: -number, numbers, processes=1) == [-number for number in numbers]


def test_arrays_both_ways(start_method: str) -> None:
    """Small and large, in C and Fortran order, strided, and beside other values; a task may write into its input."""

    def work(item: Any) -> Any:
        item["grid"] += 1
        return {"grid": item["grid"].T, "steps": item["grid"][:, ::2], "small": item["small"], "name": item["name"]}

    items = [
        {"grid": numpy.full((300, 400), number, "f8"), "small": numpy.arange(3), "name": "é"} for number in range(3)
    ]
    for number, result in enumerate(api.map(work, items, processes=2, start_method=start_method)):
        assert (items[number]["grid"] == number).all()
        assert numpy.array_equal(result["grid"], numpy.full((400, 300), number + 1.0))
        assert numpy.array_equal(result["steps"], numpy.full((300, 200), number + 1.0))
        assert result["small"].tolist() == [0, 1, 2] and result["name"] == "é"
        result["grid"][0, 0] = 5  # it is the caller's own


def test_large_arrays_are_in_tensor_files(own_folder: Path) -> None:
    """In the run directory as any job has them, in their dtype; what has another shape in a file of its own."""
    out = {"dir": str(own_folder / "out")}
    sizes = [400_000, 400_000, 500_000]
    results = api.map(lambda n: numpy.full(n, n, "i4"), sizes, processes=1, output=out)
    assert [(len(array), array.dtype, set(array.tolist())) for array in results] == [(n, "int32", {n}) for n in sizes]
    gathered = numpy.load(own_folder / "out/tensors/result.npy")
    assert gathered.dtype == "int32" and gathered.shape[1] in sizes
    assert list((own_folder / "out/tensors").glob("*.safetensors"))


def test_large_arrays_that_are_padded(own_folder: Path) -> None:
    """The run directory has them as one tensor, and the caller gets what the tasks returned."""
    out = {"dir": str(own_folder / "out"), "pad": {"result": {"shape": [3, 20_000], "fill": 0}}}
    sizes = [10_000, 20_000, 15_000]
    results = api.map(lambda n: numpy.full((2, n), n, "f8"), sizes, processes=1, output=out)
    assert all(numpy.array_equal(result, numpy.full((2, n), n)) for n, result in zip(sizes, results, strict=True))
    assert numpy.load(own_folder / "out/tensors/result.npy").shape == (3, 3, 20_000)


def test_large_arrays_of_dtypes_that_tensor_files_lack() -> None:
    """Another byte order, and what .safetensors files cannot hold, of several dtypes in one job."""
    arrays = [numpy.arange(20_000).astype(dtype) for dtype in (">f4", ">i8", "c8", "g", "U8", "S8", "M8[s]")]
    arrays.append(numpy.array([(1, 2.5)] * 20_000, dtype=[("whole", "i4"), ("half", "f8")]))
    results = api.map(lambda number: arrays[number], range(len(arrays)), processes=1)
    for array, result in zip(arrays, results, strict=True):
        assert result.dtype == array.dtype and numpy.array_equal(result, array), array.dtype


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    results = api.map(
        lambda x: [x * 2, x.to(torch.bfloat16)], [torch.full((200, 200), 3.0)], processes=1, start_method="spawn"
    )  # fmt: skip
    ((doubled, short),) = results
    assert torch.equal(doubled, torch.full((200, 200), 6.0))
    assert torch.equal(short, torch.full((200, 200), 3.0, dtype=torch.bfloat16))


def test_the_first_exception_is_raised_with_its_traceback() -> None:
    with pytest.raises(Odd, match="three") as caught:
        api.map(fail_at_three, range(100), processes=2)
    assert (caught.value.code, caught.value.text) == (7, "three")
    assert isinstance(caught.value.__cause__, api.RemoteTraceback)
    assert "in fail_at_three" in str(caught.value.__cause__) and "remote.py" not in str(caught.value.__cause__)


def test_exceptions_in_the_place_of_results() -> None:
    results = api.map(fail_at_three, range(5), processes=2, return_exceptions=True)
    assert results[:3] + results[4:] == [0, 1, 2, 4] and isinstance(results[3], Odd)


def test_exceptions_in_the_place_of_what_was_not_run() -> None:
    """A job that stops early gives no result for a task that it has not run."""
    for inputs in (range(3, 200), iter(range(3, 200))):
        results = api.map(fail_at_three, inputs, processes=1, return_exceptions=True, max_failures=1, chunk_size=1)
        assert isinstance(results[0], Odd) and None not in results
        assert any(isinstance(result, concurrent.futures.CancelledError) for result in results)
        assert len(results) == 197 or not isinstance(inputs, range)


def test_exceptions_that_pickle_cannot_carry() -> None:
    def work(kind: str) -> None:
        if kind == "unloadable":
            raise Unloadable(1, 2)
        error = ValueError("no pickle")
        error.lock = threading.Lock()  # type: ignore[attr-defined]
        raise error

    unloadable, unpicklable = api.map(work, ["unloadable", "other"], processes=1, return_exceptions=True)
    assert isinstance(unloadable, api.TaskError) and "1 and 2" in str(unloadable)
    assert isinstance(unpicklable, ValueError) and str(unpicklable) == "no pickle"
    assert all("in work" in str(error.__cause__) for error in (unloadable, unpicklable))


def test_a_task_that_is_tried_again() -> None:
    def work(name: str) -> int:
        mark(name)
        if len(harness.marks(Path(name))) < 3:
            raise ValueError("not yet")
        return 1

    assert api.map(work, ["tried"], processes=1, retries=2) == [1]
    with pytest.raises(ValueError, match="not yet"):
        api.map(work, ["again"], processes=1, retries=1)


def test_what_cannot_be_pickled() -> None:
    with pytest.raises(TypeError, match="lock"):
        api.map(square, [threading.Lock()], processes=1)
    with pytest.raises(TypeError, match="lock") as caught:
        api.map(lambda _: threading.Lock(), [1], processes=1)
    assert "about the result of the task, of type lock" in str(caught.value.__cause__)
    assert "/mprun/" not in str(caught.value.__cause__)


def test_a_wrong_field_has_the_message_of_mprun(own_folder: Path) -> None:
    with pytest.raises(api.SpecError, match=r"/processes: found 0, allowed: a whole number from 1 to 4096") as caught:
        api.map(square, [1], processes=0)
    assert caught.value.exit_code == 2
    with pytest.raises(api.SpecError, match="did you mean"):
        api.map(square, [1], proceses=1)
    assert no_folder_left(own_folder)


def test_a_setup_that_fails() -> None:
    with pytest.raises(api.JobError, match="ZeroDivisionError") as caught:
        api.map(square, [1], processes=1, setup=lambda: 1 / 0)
    assert caught.value.exit_code == 3


def test_an_interrupted_map_leaves_nothing(own_folder: Path) -> None:
    def inputs() -> Iterator[str]:
        yield "never"
        harness.wait_until(lambda: harness.marks(own_folder / "began"), LIMIT, "the task")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        api.map(wait_for_file, inputs(), processes=1, limits={"grace_seconds": 0.1})
    assert no_folder_left(own_folder)


def test_ctrl_c_during_a_map(own_folder: Path) -> None:
    """It goes to mprun as well; the program ends when mprun has, with one traceback, its own."""
    text = f"""
import sys
sys.path.append({str(PACKAGE)!r})
import mprun, time
def work(x):
    open("began", "a").close()
    time.sleep({LIMIT})
if __name__ == "__main__":
    mprun.map(work, range(4), processes=2, limits={{"grace_seconds": 0.3}})
"""
    (own_folder / "program.py").write_text(text)
    process = subprocess.Popen(
        [harness.MPRUN_PYTHON, "program.py"], stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "TMPDIR": str(own_folder)},
    )  # fmt: skip
    harness.wait_until(Path("began").exists, LIMIT, "the first task")
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=LIMIT)
    assert process.returncode == -signal.SIGINT
    assert said.count("Traceback") == 1 and said.endswith("KeyboardInterrupt\n")
    assert no_folder_left(own_folder)


def test_under_a_launcher_every_map_has_all_its_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """mprun would take it for one of two that share the tasks."""
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    assert api.map(lambda n: numpy.zeros(n).size, [20_000] * 4, processes=1) == [20_000] * 4


def test_no_file_that_goes_away_is_named(own_folder: Path) -> None:
    """The run directory is temporary: neither mprun's view nor an exception names a file of it."""
    text = f"""
import sys
sys.path.append({str(PACKAGE)!r})
import mprun
if __name__ == "__main__":
    mprun.map(divmod, [(1, 0)], call="args", processes=1, {{setup}})
"""
    for setup in ("", "setup=lambda: 1 / 0"):
        (own_folder / "program.py").write_text(text.format(setup=setup))
        environment = {**os.environ, "TMPDIR": str(own_folder)}
        screen = Terminal([harness.MPRUN_PYTHON, "program.py"], own_folder, environment, COLUMNS)
        try:
            assert screen.wait(LIMIT) == 1
            assert "ZeroDivisionError" in screen.output and "results" not in screen.output
        finally:
            screen.close()


MAIN = """
import sys
{hide}
import mprun

class Point:
    def __init__(self, x): self.x = x

def double(point):
    return Point(2 * point.x)

if __name__ == "__main__":
    results = mprun.map({function}, [Point(1), Point(2)], processes=1, start_method="{start_method}")
    print([(type(point) is Point, point.x) for point in results])
"""
# As where neither is installed.
HIDE = "sys.modules['cloudpickle'] = sys.modules['joblib'] = None"


@pytest.mark.parametrize("hide", ["", HIDE], ids=["cloudpickle", "pickle"])
def test_functions_and_classes_of_the_main_script(run_python: Any, start_method: str, hide: str) -> None:
    run = run_python(MAIN.format(function="double", start_method=start_method, hide=hide))
    assert (run.stdout, run.stderr) == ("[(True, 2), (True, 4)]\n", "")


def test_plain_pickle_says_what_it_cannot_do(run_python: Any) -> None:
    run = run_python(MAIN.format(function="lambda point: point", start_method="fork", hide=HIDE))
    assert "PicklingError" in run.stderr and "install cloudpickle or joblib" in run.stderr




@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_cells_of_a_notebook(run_python: Any, start_method: str) -> None:
    """Cells have no source file; a later one replaces what an earlier one has defined."""
    pytest.importorskip("joblib")
    cells = [
        "import mprun\nfactor = 2\ndef times(x):\n    return factor * x\n",
        f"print(mprun.map(times, [1, 2], processes=1, start_method='{start_method}'))\n",
        f"factor = 3\nprint(mprun.map(times, [1, 2], processes=1, start_method='{start_method}'))\n",
    ]
    text = f"""
import sys, types
main = types.ModuleType("__main__")  # as ipykernel has it
sys.modules["__main__"] = main
for cell in {cells!r}:
    exec(compile(cell, "<cell>", "exec"), vars(main))
"""
    run = run_python(text)
    assert (run.stdout, run.stderr) == ("[2, 4]\n[3, 6]\n", "")


def test_progress_in_a_notebook(run_python: Any) -> None:
    text = "import sys, types\nsys.modules['ipykernel'] = types.ModuleType('ipykernel')\n"
    run = run_python(text + "import mprun\nmprun.map(abs, range(5), processes=1)\n")
    first, *_, last = run.stderr.splitlines()[1:]  # after carriage returns
    assert (first, last) == ("mprun: 1 of 5 tasks", "mprun: 5 of 5 tasks")


def test_a_notebook(own_folder: Path) -> None:
    """Run without a browser: a function of one cell is called from another, and what it prints is in that one's output."""
    pytest.importorskip("nbconvert", reason="nbconvert is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    cells = [
        f"import sys\nsys.path.append({str(PACKAGE)!r})\nimport time, mprun\nfactor = 2",
        "def work(x):\n    print('task', x)\n    time.sleep(0.4)\n    return factor * x",
        "mprun.map(work, range(4), processes=2)",
        "mprun.map(lambda x: 1 / x, [0], processes=1)",
    ]
    made = {"metadata": {"kernelspec": {"name": "python3", "display_name": "Python"}}, "nbformat": 4, "nbformat_minor": 4,
            "cells": [{"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": [], "source": cell}
                      for cell in cells]}  # fmt: skip
    Path("made.ipynb").write_text(json.dumps(made))
    words = ["--to", "notebook", "--execute", "--allow-errors", "--output", "done.ipynb", "made.ipynb"]
    subprocess.run([harness.MPRUN_PYTHON, "-m", "nbconvert", *words], timeout=LIMIT, check=True, capture_output=True)
    outputs = [cell["outputs"] for cell in json.loads(Path("done.ipynb").read_text())["cells"]]
    assert outputs[:2] == [[], []]
    text = {name: "".join("".join(part["text"]) for part in outputs[2] if part.get("name") == name)
            for name in ("stdout", "stderr")}  # fmt: skip
    assert sorted(text["stdout"].splitlines()) == [f"task {x}" for x in range(4)]
    assert text["stderr"].endswith("mprun: 4 of 4 tasks\n")  # nbconvert may have replaced what stood in the line before
    assert ["".join(part["data"]["text/plain"]) for part in outputs[2] if "data" in part] == [
        "[0, 2, 4, 6]"
    ]
    (raised,) = (part for part in outputs[3] if part["output_type"] == "error")
    assert raised["ename"] == "ZeroDivisionError"


# --- run -------------------------------------------------------------------------------------------

JOB = """
import os


def work(x):
    if x == 1:
        raise FileNotFoundError("no such number")
    if x == 2:
        os.kill(os.getpid(), 9)
    return {"x": x}


def arrays(x):
    import numpy

    return {"grid": numpy.full((2, 3), x), "x": x}
"""


@pytest.fixture
def job_file(own_folder: Path) -> Path:
    (own_folder / "job.py").write_text(JOB)
    spec = {"version": 1, "script": "job.py:work", "inputs": {"range": 4}, "processes": 1, "retries": 0}
    (own_folder / "job.json").write_text(json.dumps(spec))
    return own_folder / "job.json"


def test_run_of_a_file(job_file: Path) -> None:
    run = api.run(job_file, processes=2)
    assert run.exit_code == 1
    assert run.counts["ok"] == 2 and run.counts["failed"] == 2
    assert run.results == {0: {"x": 0}, 3: {"x": 3}}
    assert set(run.failures) == {1, 2}
    assert isinstance(run.failures[1], FileNotFoundError) and "in work" in str(run.failures[1].__cause__)
    assert isinstance(run.failures[2], api.WorkerDied) and "signal 9" in str(run.failures[2])
    assert run.hangs == [] and "FileNotFoundError" in run.report()
    assert Path(run.directory).parent == job_file.parent / "runs/job"
    assert json.loads(Path(run.directory, "job.json").read_text())["processes"] == 2


def test_run_of_a_dict(job_file: Path) -> None:
    """Its paths are relative to the current directory; tensors come as arrays."""
    run = api.run({"script": "job.py:arrays", "inputs": {"range": 3}, "processes": 1}, output={"dir": "out"})
    assert run.exit_code == 0 and Path(run.directory) == job_file.parent / "out"
    assert [value["x"] for value in run.results.values()] == [0, 1, 2]
    assert [value["grid"].tolist() for value in run.results.values()] == [[[x] * 3] * 2 for x in range(3)]


def test_run_says_what_is_wrong(job_file: Path) -> None:
    with pytest.raises(api.SpecError, match='unknown key "scrpt"'):
        api.run({"scrpt": "job.py:work"})
    with pytest.raises(api.SpecError, match="nowhere.json"):
        api.run("nowhere.json")
    with pytest.raises(api.JobError, match="there is no function nope") as caught:
        api.run({"script": "job.py:nope", "inputs": {"range": 1}, "processes": 1})
    assert caught.value.exit_code == 3 and not isinstance(caught.value, api.SpecError)


# --- Executor: what CPython's ExecutorTest asks for -------------------------------------------------


def test_submit(executor: Any) -> None:
    assert executor.submit(pow, 2, 8).result(LIMIT) == 256
    assert executor.submit(dict, a=1, fn=2, self=3).result(LIMIT) == {"a": 1, "fn": 2, "self": 3}
    with pytest.raises(TypeError):
        executor.submit()


def test_executor_map(executor: Any) -> None:
    assert list(executor.map(pow, range(10), range(10))) == list(map(pow, range(10), range(10)))
    assert list(executor.map(pow, range(10), range(10), chunksize=3)) == list(map(pow, range(10), range(10)))
    with pytest.raises(ValueError):
        executor.map(str, [1], chunksize=0)
    results = executor.map(divmod, [1, 1, 1, 1], [2, 3, 0, 5])
    assert (next(results), next(results)) == ((0, 1), (0, 1))
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_map_timeout(executor: Any, own_folder: Path) -> None:
    results = executor.map(wait_for_file, ["a", "b"], timeout=0.2)
    (own_folder / "a").touch()
    try:
        with pytest.raises(concurrent.futures.TimeoutError):
            assert next(results) == "a"
            next(results)
    finally:
        (own_folder / "b").touch()


def test_shutdown_forbids_submit(executor: Any) -> None:
    executor.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(pow, 2, 5)
    executor.shutdown()  # a second time is nothing


def test_shutdown_waits_for_all(executor: Any) -> None:
    futures = [executor.submit(square, x) for x in range(200)]
    executor.shutdown()
    assert all(future.done() for future in futures)
    assert [future.result() for future in futures] == [x * x for x in range(200)]


def test_shutdown_without_waiting(own_folder: Path) -> None:
    executor = api.Executor(1)
    future = executor.submit(wait_for_file, "go")
    executor.shutdown(wait=False)
    assert not future.done()
    (own_folder / "go").touch()
    assert future.result(LIMIT) == "go"
    executor.shutdown()


def test_shutdown_cancels(own_folder: Path) -> None:
    """What runs is finished; of what waits, all but what was sent ahead is cancelled."""
    executor = api.Executor(1)
    first = executor.submit(wait_for_file, "go")
    others = [executor.submit(square, x) for x in range(20)]
    harness.wait_until(lambda: harness.marks(own_folder / "began"), LIMIT, "the first task")
    executor.shutdown(wait=False, cancel_futures=True)
    (own_folder / "go").touch()
    executor.shutdown()
    assert first.result(0) == "go" and all(future.done() for future in others)
    assert sum(future.cancelled() for future in others) >= 18


def test_cancel_and_running(own_folder: Path) -> None:
    with api.Executor(1) as executor:
        first = executor.submit(wait_for_file, "go")
        harness.wait_until(lambda: harness.marks(own_folder / "began"), LIMIT, "the first task")
        others = [executor.submit(mark, "ran", str(x)) for x in range(5)]
        assert first.running() and not first.cancel()
        assert others[-1].cancel() and others[-1].cancelled()
        (own_folder / "go").touch()
        assert first.result(LIMIT) == "go"
    assert harness.marks(own_folder / "ran") == ["0", "1", "2", "3"]
    with pytest.raises(concurrent.futures.CancelledError):
        others[-1].result()


def test_how_many_tasks_are_sent_ahead() -> None:
    """It depends on how long they run, and not on how soon their results come: a busy machine sends as many."""
    from mprun.executor import Session

    session = Session({"processes": 2}, None)

    def end(count: int, seconds: float) -> int:
        for _ in range(count):
            session.running[0] = concurrent.futures.Future()
            session.on_end(0, None, None, seconds)
        return session.room()

    assert session.room() == 3
    assert end(1, 1e-6) == 5 and end(49, 1e-6) == 103  # more and more
    assert end(8, 10.0) == 3  # those can be cancelled, all but one
    assert end(100, 1e-6) > 100


def test_no_stale_references(executor: Any) -> None:
    """Neither the function nor the result outlives the future."""

    class Marked:
        def __call__(self) -> int:
            return 1

    called = Marked()
    collected = threading.Event()
    reference = weakref.ref(called, lambda _: collected.set())
    executor.submit(called).result(LIMIT)
    del called
    gc.collect()
    assert collected.wait(LIMIT), reference


def test_shutdown_leaves_nothing_to_the_garbage_collector() -> None:
    gc.disable()
    try:
        made = api.Executor(1)
        assert made.submit(square, 2).result() == 4
        session = weakref.ref(made._session)
        made.shutdown()
        del made
        assert session() is None
    finally:
        gc.enable()


def test_an_executor_that_nobody_needs_ends(own_folder: Path) -> None:
    executor = api.Executor(1)
    future = executor.submit(square, 3)
    pipe = executor._session.pipe
    del executor
    gc.collect()
    assert future.result(LIMIT) == 9
    pipe.reader.join(LIMIT)
    assert not pipe.reader.is_alive() and no_folder_left(own_folder)


def test_the_interpreter_ends_after_the_tasks(run_python: Any) -> None:
    run = run_python("import mprun, time\nmprun.Executor(1).submit(print, 'apple', flush=True)\n")
    assert (run.returncode, run.stdout, run.stderr) == (0, "apple\n", "")
    text = "import mprun\nfrom pathlib import Path\nmprun.Executor(1).submit(Path('ran').write_text, 'yes')\n"
    assert run_python(text).returncode == 0 and Path("ran").read_text() == "yes"


def test_initializer() -> None:
    with api.Executor(2, initializer=mark, initargs=("made", "x")) as executor:
        executor.submit(square, 1).result(LIMIT)
    assert harness.marks(Path("made")) == ["x", "x"]
    with pytest.raises(TypeError):
        api.Executor(1, initializer="no function")
    with pytest.raises(ValueError):
        api.Executor(0)


def test_it_takes_what_a_process_pool_executor_takes() -> None:
    """In the same order: the number, a context of multiprocessing, and the initializer."""
    context = multiprocessing.get_context("spawn")
    with api.Executor(1, context, mark, ("made", "x"), max_tasks_per_child=1) as executor:
        pids = [executor.submit(os.getpid).result(LIMIT) for _ in range(3)]
    assert len(set(pids)) == 3 and len(harness.marks(Path("made"))) >= 3


def test_a_manager_of_the_caller(start_method: str) -> None:
    """Workers may talk to it, though no process of multiprocessing has started them."""
    manager_by_fork = multiprocessing.get_context("fork").Manager()  # a forkserver would be left
    with manager_by_fork as manager, api.Executor(1, start_method=start_method) as executor:
        shared = manager.list()
        executor.submit(shared.append, 3).result(LIMIT)
        assert list(shared) == [3]


def test_a_result_whose_unpickling_exits(executor: Any) -> None:
    """It costs its own future, and not the thread that reads results."""
    assert isinstance(executor.submit(ExitsWhenLoaded).exception(LIMIT), SystemExit)
    assert executor.submit(square, 2).result(LIMIT) == 4


def test_an_exception_that_exits() -> None:
    """One that exits when it is loaded, or when it is asked for its message, costs its own future only."""
    with api.Executor(1) as executor:
        worker = executor.submit(os.getpid).result(LIMIT)
        assert isinstance(executor.submit(throw, ExitsWhenShown).exception(LIMIT), ExitsWhenShown)
        remade = executor.submit(throw, ErrorThatExitsWhenLoaded).exception(LIMIT)
        assert isinstance(remade, ErrorThatExitsWhenLoaded)
        assert executor.submit(os.getpid).result(LIMIT) == worker


def test_a_submit_that_shutdown_overtakes(own_folder: Path) -> None:
    """The executor is shut down while the task is pickled."""
    executor = api.Executor(1)
    executor.submit(square, 2).result(LIMIT)
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(square, ShutsDown(executor))


def test_what_tasks_print_is_shown(run_python: Any, start_method: str) -> None:
    """In whole lines, where the caller prints, and all of it before map returns."""
    text = f"""
import sys, mprun
def work(x):
    print("out", x, "é", flush=x == 1)
    print("err", x, file=sys.stderr, end="\\n" if x else "")
if __name__ == "__main__":
    mprun.map(work, range(3), processes=2, start_method="{start_method}")
    print("end")
"""
    run = run_python(text)
    *lines, last = run.stdout.splitlines()
    assert (sorted(lines), last) == (["out 0 é", "out 1 é", "out 2 é"], "end")
    assert all(run.stderr.count(f"err {x}") == 1 for x in range(3))


def test_an_initializer_that_fails_breaks_the_executor() -> None:
    with api.Executor(1, initializer=divmod, initargs=(1, 0)) as executor:
        with pytest.raises(BrokenProcessPool, match="ZeroDivisionError"):
            executor.submit(square, 1).result(LIMIT)
        with pytest.raises(BrokenProcessPool):
            executor.submit(square, 1)


def test_exceptions_have_the_remote_traceback(executor: Any) -> None:
    error = executor.submit(fail_at_three, 3).exception(LIMIT)
    assert isinstance(error, Odd) and error.code == 7
    assert "in fail_at_three" in str(error.__cause__)
    assert pickle.loads(pickle.dumps(error)).code == 7


class ExitsWhenPickled:
    def __reduce__(self) -> Any:
        sys.exit(1)


def test_a_task_that_cannot_be_pickled_fails_alone(executor: Any) -> None:
    bad = executor.submit(square, threading.Lock())
    assert isinstance(bad.exception(LIMIT), TypeError)
    assert isinstance(executor.submit(square, ExitsWhenPickled()).exception(LIMIT), SystemExit)
    assert executor.submit(square, 2).result(LIMIT) == 4


def test_an_exception_keeps_nothing_of_the_executor() -> None:
    """Not by its frames: neither one of pickling a task nor one of unpickling a result."""
    executor = api.Executor(1)
    kept = [executor.submit(square, threading.Lock()), executor.submit(FailsWhenLoaded)]
    concurrent.futures.wait(kept, LIMIT)
    executor.shutdown()
    session = weakref.ref(executor._session)
    del executor
    gc.collect()
    assert session() is None
    assert "TypeError: cannot pickle" in str(kept[0].exception().__cause__)
    assert "invalid literal" in str(kept[1].exception())


def test_asyncio() -> None:
    async def main(executor: Any) -> list[int]:
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(loop.run_in_executor(executor, square, x) for x in range(10)))

    with api.Executor(2) as executor:
        assert asyncio.run(main(executor)) == [x * x for x in range(10)]


def test_a_worker_that_is_killed(executor: Any) -> None:
    """Its future names the signal and has its last words; the executor goes on."""
    error = executor.submit(die, signal.SIGKILL).exception(LIMIT)
    assert isinstance(error, api.WorkerDied) and isinstance(error, BrokenProcessPool)
    assert "signal 9 (Killed)" in str(error) and error.log == "last words"
    assert executor.submit(square, 2).result(LIMIT) == 4


def test_a_hang_is_named() -> None:
    with api.Executor(1, retries=0) as executor:
        error = executor.submit(take_twice).exception(LIMIT)
        assert isinstance(error, api.Hung)
        assert error.cause == "lock-cycle" and "lock" in error.cure and error.cure in str(error)
        assert "test_python_api.py" in str(error)
        assert executor.submit(square, 2).result(LIMIT) == 4


def test_a_time_limit(own_folder: Path) -> None:
    with api.Executor(1, retries=0, limits={"task_seconds": 0.2, "grace_seconds": 0.1}) as executor:
        error = executor.submit(wait_for_file, "never").exception(LIMIT)
    assert isinstance(error, api.Timeout) and isinstance(error, TimeoutError)


def test_the_end_of_mprun_breaks_the_executor(own_folder: Path) -> None:
    with api.Executor(1) as executor:
        futures = [executor.submit(wait_for_file, name) for name in "abcdef"]
        harness.wait_until(lambda: harness.marks(own_folder / "began"), LIMIT, "the first task")
        executor._session.pipe.process.kill()
        for future in futures:
            with pytest.raises(BrokenProcessPool, match="signal 9"):
                future.result(LIMIT)
        with pytest.raises(BrokenProcessPool):
            executor.submit(square, 1)


def test_kill_ends_what_runs(own_folder: Path) -> None:
    executor = api.Executor(1, limits={"grace_seconds": 0.1})
    future = executor.submit(wait_for_file, "never")
    harness.wait_until(lambda: harness.marks(own_folder / "began"), LIMIT, "the first task")
    executor.kill()
    assert isinstance(future.exception(0), (concurrent.futures.CancelledError, api.JobError))


def test_shutdown_in_a_callback(executor: Any) -> None:
    """It cannot wait for the thread that it is called on: it returns at once, and what was submitted is done."""
    returned = threading.Event()

    def shut_down(_: Any) -> None:
        executor.shutdown(wait=True)
        returned.set()

    first, *others = [executor.submit(square, x) for x in range(200)]
    first.add_done_callback(shut_down)
    assert returned.wait(LIMIT)
    executor.shutdown()
    assert [future.result(0) for future in others] == [x * x for x in range(1, 200)]


def test_kill_in_a_callback(own_folder: Path) -> None:
    executor = api.Executor(1, limits={"grace_seconds": 0.1})
    first, *others = [executor.submit(square, 2), *(executor.submit(wait_for_file, "never") for _ in range(20))]
    returned = threading.Event()
    first.add_done_callback(lambda _: (executor.kill(), returned.set()))
    assert returned.wait(LIMIT)
    executor.shutdown()
    assert all(future.done() for future in others) and no_folder_left(own_folder)


def test_a_forked_child_holds_no_pipe(own_folder: Path) -> None:
    """mprun sees the end of its inputs although a child of the caller lives on."""
    executor = api.Executor(1)
    executor.submit(square, 1).result(LIMIT)
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(theirs)
        os.read(ours, 1)
        os._exit(0)
    os.close(ours)
    try:
        executor.shutdown()
    finally:
        os.close(theirs)
        os.waitpid(child, 0)


def test_a_forked_child_ends_without_its_parents_executor(own_folder: Path) -> None:
    """It neither waits for that mprun when it exits, nor may it give it a task; one of its own works."""

    def child() -> None:
        with pytest.raises(api.JobError, match="another process, make one in this process"):
            executor.submit(square, 3)
        executor.shutdown()
        with api.Executor(1) as own:
            assert own.submit(square, 4).result(LIMIT) == 16

    with api.Executor(1) as executor:
        executor.submit(square, 1).result(LIMIT)
        later = executor.submit(wait_for_file, "gate")
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join(LIMIT / 4)
        process.kill()
        mark("gate")
        assert later.result(LIMIT) == "gate"
    process.join(LIMIT)
    assert process.exitcode == 0


# --- joblib ----------------------------------------------------------------------------------------


@pytest.fixture(name="joblib")
def joblib_with_mprun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    joblib = pytest.importorskip("joblib")
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))  # concurrent tests look into /dev/shm
    api.register_joblib()
    return joblib


def use(joblib: Any, **parameters: Any) -> Any:
    """parallel_config of joblib 1.3, or its forerunner."""
    return getattr(joblib, "parallel_config", joblib.parallel_backend)("mprun", **parameters)


def test_joblib_parallel(joblib: Any) -> None:
    with use(joblib, n_jobs=2):
        pids = joblib.Parallel()(joblib.delayed(lambda x: (x, os.getpid()))(x) for x in range(100))
    assert [x for x, _ in pids] == list(range(100)) and os.getpid() not in {pid for _, pid in pids}
    with use(joblib, n_jobs=2), joblib.Parallel() as parallel:
        assert parallel(joblib.delayed(square)(x) for x in range(10)) == [x * x for x in range(10)]
        assert parallel(joblib.delayed(square)(x) for x in range(3)) == [0, 1, 4]


def test_joblib_raises_what_a_task_raises(joblib: Any) -> None:
    with use(joblib, n_jobs=2), pytest.raises(Odd, match="three"):
        joblib.Parallel()(joblib.delayed(fail_at_three)(x) for x in range(50))
    with use(joblib, n_jobs=2, start_method="spawn"), pytest.raises(api.WorkerDied, match="signal 9"):
        joblib.Parallel()(joblib.delayed(die)(9) for _ in range(2))


def test_joblib_in_joblib(joblib: Any) -> None:
    """A worker knows the backend, too; and a time limit is the error that joblib's others raise."""

    def inner(x: int) -> list[int]:
        return joblib.Parallel(n_jobs=2, backend="mprun")(joblib.delayed(square)(y) for y in range(x))

    assert joblib.Parallel(n_jobs=2, backend="mprun")(joblib.delayed(inner)(x) for x in (2, 3)) == [[0, 1], [0, 1, 4]]
    with pytest.raises(multiprocessing.TimeoutError):
        calls = (joblib.delayed(wait_for_file)("never") for _ in range(2))
        joblib.Parallel(n_jobs=2, backend="mprun", timeout=0.1)(calls)


def test_grid_search(joblib: Any) -> None:
    pytest.importorskip("sklearn")
    from sklearn.datasets import load_iris
    from sklearn.model_selection import GridSearchCV
    from sklearn.tree import DecisionTreeClassifier

    data, target = load_iris(return_X_y=True)
    search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 3]}, cv=3)
    with use(joblib, n_jobs=2):
        found = search.fit(data, target).cv_results_["mean_test_score"].tolist()
    assert found == search.fit(data, target).cv_results_["mean_test_score"].tolist()


# --- the module ------------------------------------------------------------------------------------


def test_the_examples_of_the_manual(run_python: Any) -> None:
    page = (Path(__file__).parents[2] / "man/mprun-python.3").read_text()
    example = page[page.index(".Sh EXAMPLES") :].split(".Bd -literal -offset indent\n")[1].split(".Ed")[0]
    run = run_python(example.replace("\\e", "\\"))
    assert (run.stdout, run.stderr) == ("100 (100, 1000)\n1024\n3 [0] 4\n", "")


def test_the_import_stays_cheap(run_python: Any) -> None:
    """What starts jobs is loaded when it is used."""
    text = "import sys\nbare = set(sys.modules)\nimport mprun\nprint(sorted(set(sys.modules) - bare))"
    loaded = set(json.loads(run_python(text).stdout.replace("'", '"')))
    assert "mprun" in loaded
    assert not loaded & {"mprun.jobs", "mprun.executor", "mprun.errors", "concurrent.futures", "pickle", "subprocess"}


def test_a_job_starts_without_joblib(run_python: Any) -> None:
    """Its import takes a fifth of a second; it is for what plain pickle cannot do."""
    text = "import sys\nsys.modules['cloudpickle'] = None\nimport mprun\n{}\nprint('joblib' in sys.modules)"
    assert run_python(text.format("mprun.map(abs, [1], processes=1)")).stdout == "False\n"
    if importlib.util.find_spec("joblib"):
        assert run_python(text.format("mprun.map(lambda x: x, [1], processes=1)")).stdout == "True\n"


def test_another_python_may_start_jobs(run_python: Any) -> None:
    """One before 3.11 has no workers, and says so where it would need them."""
    text = (
        "import sys; sys.version_info = (3, 10, 4, 'final', 0)\nimport mprun\n"
        "for use in (lambda: mprun.map(abs, [1]), lambda: mprun.deadline):\n"
        "    try: use()\n    except Exception as error: print(error)\n"
        f"print(mprun.run({{'command': ['echo', '{{}}'], 'inputs': {{'range': 2}}}}).counts['ok'])"
    )
    first, second, third = run_python(text).stdout.splitlines()
    assert "need Python 3.11 or later; this is 3.10" in first and "needs Python 3.11 or later" in second
    assert third == "2"
