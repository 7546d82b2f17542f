"""joblib's own tests of Parallel, with the backend "mprun" in the place of each that they name. They come from the
installed joblib; its text is not part of this repository. LEFT_OUT says why a test does not apply."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

import harness

sys.path.append(str(harness.MPRUN_BIN.resolve().parent.parent / "lib/mprun/python"))
import mprun as api  # noqa: E402

joblib = pytest.importorskip("joblib")
suite = pytest.importorskip("joblib.test.test_parallel", reason="joblib is installed without its tests")

A_PROGRAM = "it starts a program that does not register the backend"
MAPPED_INPUTS = "it looks for joblib's own files of arrays: mprun hands arrays over in files of its own"
#: Test -> why it does not apply.
LEFT_OUT = {
    "test_error_capture": "it looks at the pools inside joblib's own backends",
    "test_parallel_with_unpicklable_functions_in_args": A_PROGRAM,
    "test_parallel_with_interactively_defined_functions": A_PROGRAM,
    "test_auto_memmap_on_arrays_from_generator": MAPPED_INPUTS,
    "test_memmapping_leaks": MAPPED_INPUTS,
    "test_threadpool_limitation_in_child_context_error": "it is for backends that cannot limit threads; mprun can",
}


@pytest.fixture(autouse=True)
def backend_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Temporary files of joblib's own are the test's."""
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    api.register_joblib()


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Fails a test that leaves an mprun; joblib's own pools and their trackers stay for the next one."""
    yield
    harness.wait_until(lambda: not [each for each in harness.living_descendants() if each.name == "mprun"], timeout=5)


def with_mprun(test: Any) -> Any:
    """A copy of a test that is given the backend "mprun"; None if it takes no backend, or is left out."""
    marks = list(getattr(test, "pytestmark", ()))
    places = [place for place, mark in enumerate(marks) if mark.name == "parametrize" and mark.args[0] == "backend"]
    if not places or test.__name__ in LEFT_OUT:
        return None
    copy = types.FunctionType(test.__code__, vars(suite), test.__name__, test.__defaults__, test.__closure__)
    marks[places[0]] = pytest.mark.parametrize("backend", ["mprun"]).mark
    copy.pytestmark = marks  # type: ignore[attr-defined]
    return copy


globals().update({name: copy for name, test in vars(suite).items()
                  if name.startswith("test_") and (copy := with_mprun(test))})  # fmt: skip
