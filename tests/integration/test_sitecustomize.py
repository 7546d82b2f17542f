"""How mprun gets into a Python: by a sitecustomize that leaves no visible trace."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import harness
from harness import RunCommand, StartCommand

POOL_CASE = harness.ROOT / "tests/hangs/cases/pool_openmp.py"

# The state that a program sees at the start of its interpreter.
LOOK = """
import json, sys
own = sys.modules.get("sitecustomize")
print(json.dumps([sys.path, getattr(own, "__file__", None), sys.flags.isolated]))
"""

# The Python side of the fork hooks loads its code at the first fork of a process with torch.
HOOKED = """
import os, sys, types
sys.modules["torch"] = types.ModuleType("torch")
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
print("hooked" if "mprun_fork" in sys.modules else "not hooked")
"""


@pytest.fixture
def own_site(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH with a sitecustomize of the user's own."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("print('customized')\n")
    return folder


@pytest.mark.parametrize("options", [[], ["-I"], ["-E"], ["-S"], ["-s"], ["-P"], ["-S", "-E"]])
@pytest.mark.parametrize("own", [False, True])
def test_a_program_sees_what_it_sees_without_mprun(
    run_mprun: RunCommand,
    start_plain: StartCommand,
    own_site: Path,
    options: list[str],
    own: bool,
) -> None:
    """The same sys.path, the same sitecustomize (the system's, or the user's), nothing on stderr.

    With -S alone our folder stays on the path: none of our code runs there that could remove it.
    """
    env = {"PYTHONPATH": f"{own_site}::/no/such/folder"} if own else {}
    argv = [harness.MPRUN_PYTHON, *options, "-c", LOOK]
    plain = start_plain(*argv, env=env).wait().check()
    run = run_mprun("--", *argv, env=env).check()
    *said, seen_line = run.stdout.splitlines()
    *said_plain, expected_line = plain.stdout.splitlines()
    assert said == said_plain
    path, *seen = json.loads(seen_line)
    expected_path, *expected = json.loads(expected_line)
    ours = [entry for entry in path if entry.startswith(str(harness.MPRUN_BIN.parent.parent))]
    assert len(ours) == (1 if options == ["-S"] else 0)
    assert [entry for entry in path if entry not in ours] == expected_path
    assert seen == expected
    assert run.stderr == plain.stderr == ""


@pytest.mark.parametrize("options", [["-I"], ["-E"], ["-S"]])
def test_a_pool_works_without_sitecustomize(run_mprun: RunCommand, options: list[str]) -> None:
    """The C library makes OpenMP safe, and no Python option keeps it out."""
    program = (
        f"import sys, runpy; sys.path[:] = {search_path()!r}; "
        f"runpy.run_path({str(POOL_CASE)!r}, run_name='__main__')"
    )
    run = run_mprun("--", harness.MPRUN_PYTHON, *options, "-c", program, timeout=120).check()
    assert run.stdout.endswith("done\n")


def search_path() -> list[str]:
    """Where the interpreter of the tests finds its modules."""
    return [entry for entry in sys.path if "packages" in entry or "lib" in entry]


def test_the_hooks_are_in_every_python(run_mprun: RunCommand, tmp_path: Path) -> None:
    """In the program, and in a Python that it starts itself."""
    (tmp_path / "hooked.py").write_text(HOOKED)
    starter = "import subprocess, sys; subprocess.run([sys.executable, 'hooked.py'], check=True)"
    for argv in (["hooked.py"], ["-c", starter]):
        assert run_mprun("--", harness.MPRUN_PYTHON, *argv).check().stdout == "hooked\n"
    for option in ("-I", "-S", "-E"):
        run = run_mprun("--", harness.MPRUN_PYTHON, option, "hooked.py").check()
        assert run.stdout == "not hooked\n"


@pytest.mark.parametrize(
    "text, said",
    [
        ("print('customized')", "customized\nhooked\n"),
        ("raise RuntimeError('on purpose')", "hooked\n"),
        ("import no_such_module", "hooked\n"),
        ("import sys; sys.exit(3)", ""),
        ("import os; os._exit(4)", ""),
    ],
)
def test_a_sitecustomize_of_the_users_own(
    run_mprun: RunCommand,
    start_plain: StartCommand,
    own_site: Path,
    text: str,
    said: str,
) -> None:
    """It does what it does without mprun: also when it fails."""
    (own_site / "sitecustomize.py").write_text(text + "\n")
    env = {"PYTHONPATH": str(own_site)}
    argv = [harness.MPRUN_PYTHON, "-c", HOOKED]
    plain = start_plain(*argv, env=env).wait()
    run = run_mprun("--", *argv, env=env)
    assert run.returncode == plain.returncode
    assert run.stdout == said
    # The last line: an error that ends the interpreter is shown with a traceback that has our file in it.
    assert run.stderr.splitlines()[-1:] == plain.stderr.splitlines()[-1:]
