"""Everything that can be wrong with mprun's input: reported clearly, and nothing is lost."""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import MountDisk, Run, RunCommand, StartCommand

TWICE = "def twice(number):\n    return 2 * number\n"

# A job that is fine.
FINE: dict[str, Any] = {"script": "twice.py:twice", "processes": 2, "inputs": {"range": 4}}

_PR_CAPBSET_DROP = 24  # linux/prctl.h
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2  # linux/capability.h


def drop_root_rights() -> None:
    """Between fork and exec: even root may then read and write only what its permissions allow."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, 0, 0, 0)
        libc.prctl(_PR_CAPBSET_DROP, _CAP_DAC_READ_SEARCH, 0, 0, 0)


def limit_descriptors(soft: int, hard: int) -> None:
    """Between fork and exec."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def check_refused(run: Run, *patterns: str) -> None:
    """Fails unless it ended with 2, printed all this, and launched and created nothing."""
    run.check(2)
    for pattern in patterns:
        assert re.search(pattern, run.stderr), f"nothing of {pattern!r}\n{run}"
    assert "internal" not in run.stderr
    assert run.stdout == ""
    assert not run.run_dir.exists()


# --- the spec file -----------------------------------------------------------------------------


def test_missing_file(run_mprun: RunCommand, tmp_path: Path) -> None:
    run = run_mprun("nosuch.json")
    check_refused(run, r"nosuch\.json", r"No such file|no such file")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("text", ["", " \n\t\n"])
def test_empty_file(run_job: RunCommand, tmp_path: Path, text: str) -> None:
    (tmp_path / "empty.json").write_text(text)
    check_refused(run_job(tmp_path / "empty.json"), r"empty\.json: is empty")


def test_a_directory_as_spec(run_mprun: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    check_refused(run_mprun("folder.json"), r"folder\.json.*directory")


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"script": "twice.py"', 1, 22),
        ('{\n  "script": "twice.py",\n  "processes": 2,,\n}', 3, 18),
        ("{\n\n  'script': 1}", 3, 3),
        ('{"a": 1} x', 1, 10),
        ("not JSON at all", 1, None),
        ('{"script": "\x01"}', 1, None),
    ],
)
def test_not_json(
    run_job: RunCommand, tmp_path: Path, text: str, line: int, column: int | None
) -> None:
    (tmp_path / "broken.json").write_text(text)
    at = rf"broken\.json:{line}:" + (rf"{column}:" if column else r"\d+:")
    check_refused(run_job(tmp_path / "broken.json"), at)


@pytest.mark.parametrize("text", ["[]", "3", '"job"', "null"])
def test_no_object(run_job: RunCommand, tmp_path: Path, text: str) -> None:
    (tmp_path / "other.json").write_text(text)
    check_refused(run_job(tmp_path / "other.json"), r"other\.json:1", r"JSON object")


def test_a_key_twice(run_job: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "twice.json").write_text('{"seed": 1,\n "processes": 1,\n "seed": 2}')
    check_refused(run_job(tmp_path / "twice.json"), r"twice\.json:3", "seed")


def test_bytes_that_are_not_text(run_job: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "bytes.json").write_bytes(b'{"script": "\xff\xfe"}')
    check_refused(run_job(tmp_path / "bytes.json"), r"bytes\.json:1")


@pytest.mark.parametrize(
    ("fields", "pointer", "near"),
    [
        ({"procesess": 2}, "/procesess", "processes"),
        ({"startmethod": "fork"}, "/startmethod", "start_method"),
        ({"limits": {"task_second": 1}}, "/limits/task_second", "task_seconds"),
        ({"retries": {"on_eror": 1}}, "/retries/on_eror", "on_error"),
        ({"inputs": {"rnage": 3}}, "/inputs/rnage", "range"),
    ],
)
def test_unknown_key(run_job: RunCommand, fields: dict[str, Any], pointer: str, near: str) -> None:
    run = run_job({**FINE, **fields}, scripts={"twice.py": TWICE})
    check_refused(run, rf"job\.json:\d+: {pointer}: ", f'did you mean "{near}"')


def test_an_error_names_its_line(run_job: RunCommand, tmp_path: Path) -> None:
    """File, line, pointer, what was found, what is allowed, the nearest name."""
    (tmp_path / "job.json").write_text(
        '{\n  "script": "x.py",\n  "limits": {\n    "grace_seconds": 1,\n'
        '    "task_seconds": []\n  },\n  "start_method": "frok"\n}\n'
    )
    run = run_job(tmp_path / "job.json")
    check_refused(
        run,
        r"job\.json:5: /limits/task_seconds: ",
        r"job\.json:7: /start_method: ",
        r'found "frok"',
        r"allowed",
        r'did you mean "fork"',
    )


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/processes", "four"),
        ("/processes", 2.5),
        ("/processes", True),
        ("/processes", None),
        ("/processes", [2]),
        ("/script", 7),
        ("/function", {}),
        ("/start_method", "thread"),
        ("/device", "gpu"),
        ("/device", "cuda:x"),
        ("/args", "one two"),
        ("/args", [1]),
        ("/env", ["A=1"]),
        ("/env", {"A": 1}),
        ("/inputs", []),
        ("/inputs", {"items": 3}),
        ("/inputs", {"range": "10"}),
        ("/inputs", {"range": [1]}),
        ("/inputs", {"grid": {"a": 1}}),
        ("/call", "map"),
        ("/order", "random"),
        ("/on_error", True),
        ("/chunk_size", "big"),
        ("/seed", "x"),
        ("/retries", "often"),
        ("/limits", 5),
        ("/limits", {"task_seconds": "soon"}),
        ("/limits", {"job_seconds": "5 minutes"}),
        ("/limits", {"grace_seconds": True}),
        ("/output", "here"),
        ("/output", {"pad": ["a"]}),
        ("/output", {"pad": {"a": 3}}),
        ("/output", {"pad": {"a": {"fill": 0}}}),
        ("/output", {"pad": {"a": {"shape": [1], "fill": "zero"}}}),
        ("/preload", "numpy"),
        ("/version", 2),
    ],
    ids=str,
)
def test_wrong_type_or_value(run_job: RunCommand, pointer: str, value: Any) -> None:
    run = run_job({**FINE, pointer[1:]: value}, scripts={"twice.py": TWICE})
    check_refused(run, rf"job\.json:\d+: {pointer}(/\w+)*: .*found", "allowed")


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/processes", 0),
        ("/processes", -1),
        ("/processes", 4097),
        ("/processes", 10**30),
        ("/processes", 1e300),
        ("/chunk_size", 0),
        ("/chunk_size", -7),
        ("/chunk_size", 10**12),
        ("/seed", -1),
        ("/seed", 2**64),
        ("/max_failures", 0),
        ("/retries", -1),
        ("/retries", 10**9),
        ("/retries", {"on_death": -1}),
        ("/retries", {"delay": -0.1}),
        ("/threads_per_worker", 0),
        ("/inputs", {"range": -1}),
        ("/inputs", {"range": 2**63}),
        ("/inputs", {"range": [0, 5, 0]}),
        ("/inputs", {"npy": "x.npy", "batch": 0}),
        ("/limits", {"task_seconds": 0}),
        ("/limits", {"task_seconds": -3}),
        ("/limits", {"task_seconds": 1e12}),
        ("/limits", {"task_seconds": "0s"}),
        ("/limits", {"job_seconds": "99999999999999999h"}),
        ("/limits", {"tasks_per_worker": 0}),
        ("/limits", {"tasks_per_worker": 2**31}),
        ("/output", {"pad": {"a": [-1]}}),
        ("/output", {"pad": {"a": [2**53]}}),
        ("/watch", {"stall_seconds": 0}),
        ("/watch", {"stall_seconds": -1}),
        ("/watch", {"stall_seconds": 1e12}),
    ],
    ids=str,
)
def test_negative_and_huge_counts(run_job: RunCommand, pointer: str, value: Any) -> None:
    run = run_job({**FINE, pointer[1:]: value}, scripts={"twice.py": TWICE})
    too_long = r"job\.json:\d+:\d+: .*the number \d+ does not fit"
    check_refused(run, rf"job\.json:\d+: {pointer}(/\w+)*: |{too_long}")


@pytest.mark.parametrize(
    ("spec", "pattern"),
    [
        (
            {"script": "twice.py", "command": ["true"], "inputs": {"range": 1}},
            "script.*command|command.*script",
        ),
        ({"inputs": {"range": 3}}, "script.*command"),
        ({}, "script"),
        ({"script": "twice.py:twice"}, "inputs"),
        ({"command": ["true"]}, "inputs"),
        ({"script": "twice.py:twice", "function": "other", "inputs": {"range": 1}}, "function"),
        (
            {
                "script": "twice.py:twice",
                "inputs": {"range": 1},
                "output": {"pad": {"a": [1]}, "tensors": "safetensors"},
            },
            'output/pad: tensors are padded to be gathered, which .* "safetensors" does not do',
        ),
        ({"script": "twice.py", "inputs": {"range": 1}}, "function"),
        ({"script": "twice.py:twice", "inputs": {"range": 1, "items": [1]}}, "exactly one"),
        ({"script": "twice.py:twice", "inputs": {}}, "inputs"),
        ({"command": [""], "inputs": {"range": 1}}, "/command/0"),
        ({"command": ["true"], "setup": "s", "inputs": {"range": 1}}, "setup"),
        ({**FINE, "call": "args"}, "call"),
        ({**FINE, "call": "kwargs", "inputs": {"items": [{}, 3]}}, "/inputs/items/1"),
        ({**FINE, "working_directory": "nowhere"}, "nowhere"),
        ({**FINE, "working_directory": "twice.py"}, "not a directory"),
        ({**FINE, "env": {"A=B": "1"}}, "A=B"),
        ({**FINE, "args": ["a\0b"]}, "NUL"),
        ({**FINE, "function": "not a name"}, "function"),
    ],
    ids=lambda value: None if isinstance(value, str) else str(value),
)
def test_fields_that_do_not_fit(run_job: RunCommand, spec: dict[str, Any], pattern: str) -> None:
    check_refused(run_job(spec, scripts={"twice.py": TWICE}), pattern)


def test_spec_on_standard_input(run_mprun: RunCommand, tmp_path: Path) -> None:
    """Relative to the current directory; its errors name it too."""
    (tmp_path / "twice.py").write_text(TWICE)
    spec = {**FINE, "python": harness.MPRUN_PYTHON}
    run = run_mprun("-", stdin=json.dumps(spec), output=True).check()
    assert run.values() == [0, 2, 4, 6]
    run = run_mprun("-", stdin='{\n"script": 3}', output=True)
    check_refused(run, r"standard input:2: /script: ")
    check_refused(run_mprun("-", stdin="", output=True), "standard input.*empty")
    both = {**spec, "inputs": {"lines": "-"}}
    run = run_mprun("-", stdin=json.dumps(both), output=True)
    check_refused(run, "/inputs/lines: .*standard input")


# --- the script --------------------------------------------------------------------------------


def test_script_missing(run_job: RunCommand) -> None:
    run = run_job({**FINE, "script": "twise.py:twice"}, scripts={"twice.py": TWICE})
    check_refused(run, r"job\.json:\d+: /script: no such file", r'did you mean "twice\.py"')


def test_script_in_a_missing_folder(run_job: RunCommand) -> None:
    check_refused(run_job({**FINE, "script": "no/where.py:f"}), "/script: .*no")


def test_script_that_is_not_executable(run_job: RunCommand) -> None:
    run = run_job({"script": "tool"}, scripts={"tool": "#!/bin/sh\n"})
    check_refused(run, "/script: .*executable", r"chmod \+x")


BROKEN_SCRIPTS = {
    "syntax error": ("def run(:\n    pass\n", [r"SyntaxError", r"broken\.py:1"]),
    "indentation": ("def run(_):\nreturn 1\n", [r"IndentationError|SyntaxError", r"broken\.py:2"]),
    "import error": (
        "import no_such_module_here\n\n\ndef run(_):\n    pass\n",
        [r"No module named 'no_such_module_here'", r'broken\.py", line 1', r"/python\S* has no such module: install it"],
    ),
    "no such function": (
        "def ran(_):\n    pass\n",
        [r"no function run in .*broken\.py", r'did you mean "ran"'],
    ),
    "not callable": ("run = 3\n", [r"run in .*broken\.py is no function but a int"]),
    "no text": ("\x00\n", [r"broken\.py"]),
    "no such setup": ("def run(_):\n    pass\n\n\n#", [r"setup", r"no function prepare"]),
}


@pytest.mark.parametrize("what", list(BROKEN_SCRIPTS))
def test_broken_script(run_job: RunCommand, start_method: str, what: str) -> None:
    """It cannot be launched: 3, and at once, whatever the start method."""
    text, patterns = BROKEN_SCRIPTS[what]
    spec: dict[str, Any] = {
        "script": "broken.py:run",
        "start_method": start_method,
        "processes": 2,
        "inputs": {"range": 4},
    }
    if what == "no such setup":
        spec["setup"] = "prepare"
    run = run_job(spec, scripts={"broken.py": text}, timeout=20).check(3)
    for pattern in patterns:
        assert re.search(pattern, run.stderr), f"nothing of {pattern!r}\n{run}"
    assert len(re.findall("cannot launch the job", run.stderr)) == 1
    assert run.summary()["exit_code"] == 3


@pytest.mark.parametrize(
    ("end", "pattern"),
    [
        ("raise LookupError('no model')", r"setup failed: LookupError: no model"),
        ("import sys; sys.exit(0)", r"setup failed: .*sys\.exit\(0\)"),
        ("import sys; sys.exit('no model')", r"setup failed: .*sys\.exit\('no model'\)"),
        ("raise KeyboardInterrupt", r"setup failed: .*KeyboardInterrupt"),
    ],
)
def test_setup_that_fails(
    run_job: RunCommand, start_method: str, end: str, pattern: str
) -> None:
    script = f"def setup():\n    {end}\n\n\ndef run(_):\n    pass\n"
    run = run_job(
        {
            "script": "fails.py:run",
            "setup": "setup",
            "start_method": start_method,
            "inputs": {"range": 4},
        },
        scripts={"fails.py": script},
        timeout=20,
    ).check(3)
    assert re.search(pattern, run.stderr), run
    assert re.search(r'fails\.py", line 2, in setup', run.stderr), "no traceback"


def test_preload_that_fails(run_job: RunCommand) -> None:
    run = run_job({**FINE, "preload": ["no_such_thing"]}, scripts={"twice.py": TWICE}).check(3)
    assert re.search(r"preload.*No module named 'no_such_thing'", run.stderr)


# --- the interpreter ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "python", ["no-such-python", "/no/such/python3", "./plain.txt", "folder/"], ids=str
)
def test_interpreter_missing(run_job: RunCommand, tmp_path: Path, python: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "plain.txt").write_text("no program\n")
    run = run_job({**FINE, "python": python}, scripts={"twice.py": TWICE}).check(3)
    assert re.search(r"/python: .*" + re.escape(python.strip("./")), run.stderr), run
    assert "--python" in run.stderr


def make_program(path: Path, text: str) -> str:
    """Writes an executable file; returns its name for a spec beside it."""
    path.write_text(text)
    path.chmod(0o755)
    return f"./{path.name}"


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/sh\nexit 0\n",
        "#!/bin/sh\necho I am no Python >&2\nexit 9\n",
        "#!/bin/sh\nkill -9 $$\n",
        "#!/no/such/loader\n",
        "\x7fELF but not really",
    ],
    ids=["exits", "complains", "dies", "no loader", "no format"],
)
def test_interpreter_is_no_python(
    run_job: RunCommand, tmp_path: Path, start_method: str, text: str
) -> None:
    python = make_program(tmp_path / "impostor", text)
    spec = {**FINE, "python": python, "start_method": start_method}
    run = run_job(spec, scripts={"twice.py": TWICE}, timeout=20).check(3)
    assert "impostor" in run.stderr, run


def test_interpreter_too_old(run_job: RunCommand, tmp_path: Path, start_method: str) -> None:
    """Reported by the first file that it runs; here by a Python with a false version."""
    python = make_program(
        tmp_path / "aged",
        "#!/bin/sh\n"
        f'exec {harness.MPRUN_PYTHON} -c \'import runpy, sys; del sys.argv[:2]; '
        'sys.version_info = (3, 9, 2, "final", 0); '
        'runpy.run_path(sys.argv[0], run_name="__main__")\' - "$@"\n',
    )
    spec = {**FINE, "python": python, "start_method": start_method}
    run = run_job(spec, scripts={"twice.py": TWICE}, timeout=20).check(3)
    assert re.search(r"Python 3\.9\.2.*3\.11 or later", run.stderr), run


def test_real_interpreters_that_are_too_old(run_job: RunCommand) -> None:
    pythons = [path for version, path in harness.pythons().items() if version < (3, 11)]
    if not pythons:
        pytest.skip("no Python before 3.11 is installed")
    for python in pythons:
        spec = {**FINE, "python": python}
        run = run_job(spec, scripts={"twice.py": TWICE}, timeout=20).check(3)
        assert re.search(r"this is Python [23]\.\d+\.\d+.*3\.11 or later", run.stderr), run


# --- inputs ------------------------------------------------------------------------------------


def test_unreadable_input(run_job: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "secret").write_text("1\n")
    (tmp_path / "secret").chmod(0)
    (tmp_path / "text.npy").write_text("this is no array\n")
    for inputs, pattern in (
        ({"lines": "nosuch.txt"}, r"nosuch\.txt.*No such file"),
        ({"lines": "folder"}, r"folder.*directory"),
        ({"jsonl": "secret"}, r"secret.*Permission denied"),
        ({"npy": "nosuch.npy"}, r"nosuch\.npy.*No such file"),
        ({"npy": "text.npy"}, r"text\.npy"),
    ):
        run = run_job(
            {**FINE, "inputs": inputs},
            scripts={"twice.py": TWICE},
            preexec_fn=drop_root_rights,
        )
        check_refused(run, pattern)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("items", [], "has no inputs: the list is empty"),
        ("range", [3, 1], r"has no inputs: range\(3, 1, 1\) is empty"),
        ("lines", "nosuch.txt", r"/.*nosuch\.txt: cannot be read: No such file"),
        ("jsonl", "bad.jsonl", r"/.*bad\.jsonl:2:1: not JSON: JSON has no NaN"),
        ("glob", "nosuch*", r"/.*nosuch\*: has no inputs: no file name matches"),
    ],
)
def test_where_bad_inputs_were_given(
    run_job: RunCommand, tmp_path: Path, field: str, value: Any, reason: str
) -> None:
    """The file and line that name them, or the option."""
    (tmp_path / "bad.jsonl").write_text("1\nNaN\n")
    spec = json.dumps({**FINE, "inputs": {field: value}}, indent=1)
    (tmp_path / "job.json").write_text(spec)
    line = next(n for n, text in enumerate(spec.splitlines(), 1) if f'"{field}"' in text)
    run = run_job(tmp_path / "job.json", scripts={"twice.py": TWICE})
    check_refused(run, rf"job\.json:{line}: /inputs/{field}: {reason}")
    option = f"inputs.{field}={json.dumps(value)}"
    run = run_job(FINE, "--set", option, scripts={"twice.py": TWICE})
    check_refused(run, rf"the command line \({re.escape('--set ' + option)}\): /inputs/{field}: {reason}")


def test_unreadable_script(run_job: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text(TWICE)
    (tmp_path / "secret.py").chmod(0)
    run = run_job({**FINE, "script": "secret.py:twice"}, preexec_fn=drop_root_rights)
    check_refused(run, r"secret\.py.*permission denied")


def npy(text: str, data: int) -> bytes:
    """The bytes of a .npy file."""
    header = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(data)


def safetensors(text: str, data: int) -> bytes:
    """The bytes of a .safetensors file."""
    return len(text).to_bytes(8, "little") + text.encode() + bytes(data)


@pytest.mark.parametrize(
    ("inputs", "patterns"),
    [
        ({"npy": "cut.npy"}, ["/inputs/npy: .*cut.npy: is cut off.*32 bytes.*has 31"]),
        ({"npy": "huge.npy", "batch": 2}, [r"huge\.npy: is cut off: .*2\^64"]),
        ({"npy": "object.npy"}, [r"object\.npy: holds Python objects.*pickle"]),
        ({"npy": "records.npy"}, [r"records\.npy: holds Python objects.*pickle"]),
        ({"npy": "pickle.npy"}, [r"pickle\.npy: is not a \.npy file"]),
        ({"npy": {"a": "four.npy", "b": "two.npy"}}, [r'"a" has 4.*four', r'"b" has 2.*two']),
        ({"npy": {"a": "four.npy", "b": "none.npy"}}, [r"/inputs/npy/b: .*none\.npy.*No such"]),
        ({"npy": {"a": "folder"}}, [r"/inputs/npy/a: .*folder: is not a regular file"]),
        ({"npy": {"class": "four.npy", "1": "two.npy"}}, ['found the name "1"']),
        ({"npy": "folder/"}, [r"folder/\*\.npy: has no inputs"]),
        ({"npy": "nothing-*.npy"}, ["has no inputs: no file name matches"]),
        ({"npy": "*.npy"}, [r"/inputs/npy: .*cut\.npy: is cut off"]),
        ({"npy": "four.npy", "tensors": ["a"]}, ["/inputs/tensors: fits \"safetensors\" only"]),
        ({"range": 4, "batch": 2}, ["/inputs/batch: fits"]),
        ({"safetensors": "cut.safetensors"}, [r"cut\.safetensors: is cut off.*\"a\".*has 7"]),
        ({"safetensors": "lie.safetensors"}, [r'"a" needs 12 bytes by its shape \[3\] .*8 apart']),
        ({"safetensors": "long.safetensors"}, ["cut off inside its header"]),
        ({"safetensors": "json.safetensors"}, [r"damaged header: header:1:\d+:"]),
        ({"safetensors": "good.safetensors", "tensors": ["A"]}, ['no tensor "A"\n.*mean "a"']),
        ({"safetensors": "four.npy"}, [r"four\.npy: is not a \.safetensors file"]),
        ({"npy": "good.safetensors"}, [r"good\.safetensors: is not a \.npy file"]),
    ],
    ids=str,
)
def test_invalid_arrays(
    run_job: RunCommand, tmp_path: Path, inputs: dict[str, Any], patterns: list[str]
) -> None:
    header = "{'descr': %s, 'fortran_order': False, 'shape': %s, }"
    one = '{"a": {"dtype": "F32", "shape": [%d], "data_offsets": [0, 8]}}'
    (tmp_path / "folder").mkdir()
    for name, content in {
        "four.npy": npy(header % ("'<f8'", "(4,)"), 32),
        "two.npy": npy(header % ("'<f8'", "(2,)"), 16),
        "cut.npy": npy(header % ("'<f8'", "(4,)"), 31),
        "huge.npy": npy(header % ("'<f8'", "(4611686018427387904, 4)"), 32),
        "object.npy": npy(header % ("'|O'", "(4,)"), 32),
        "records.npy": npy(header % ("[('a', '<i4'), ('b', '|O')]", "(4,)"), 64),
        "pickle.npy": b"\x80\x04cos\nsystem\n(S'touch launched'\ntR.",
        "cut.safetensors": safetensors(one % 2, 7),
        "lie.safetensors": safetensors(one % 3, 8),
        "long.safetensors": (2**63).to_bytes(8, "little") + b"{}",
        "json.safetensors": safetensors('{"a": [1,}', 8),
        "good.safetensors": safetensors((one % 2).ljust(72), 8),
    }.items():
        (tmp_path / name).write_bytes(content)
    run = run_job({**FINE, "inputs": inputs}, scripts={"twice.py": TWICE})
    check_refused(run, *patterns)
    assert not (tmp_path / "launched").exists()


@pytest.mark.parametrize(
    ("npy_input", "call", "fits"),
    [("x.npy", "kwargs", "item"), ("x.npy", "args", "item"), ({"x": "x.npy"}, "item", "kwargs")],
    ids=str,
)
def test_a_call_that_does_not_fit_arrays(
    run_job: RunCommand, tmp_path: Path, npy_input: Any, call: str, fits: str
) -> None:
    (tmp_path / "x.npy").write_bytes(
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }", 32)
    )
    spec = {**FINE, "inputs": {"npy": npy_input}, "call": call}
    run = run_job(spec, scripts={"twice.py": TWICE})
    check_refused(run, f'(?s)/call: .*leave it out, or say "{fits}"')


def test_half_a_json_line(run_job: RunCommand, tmp_path: Path) -> None:
    """In a file: refused before anything is launched."""
    (tmp_path / "in.jsonl").write_text('1\n\n[2, 3]\n{"a": \n')
    run = run_job({**FINE, "inputs": {"jsonl": "in.jsonl"}}, scripts={"twice.py": TWICE})
    check_refused(run, r"in\.jsonl:4:\d+: .*half a JSON value")


def test_half_a_json_line_on_a_pipe(start_job: StartCommand) -> None:
    """Not known in advance: that task fails and reports why, the others are not affected."""
    read_end, write_end = os.pipe()
    running = start_job(
        {**FINE, "inputs": {"jsonl": "-"}}, scripts={"twice.py": TWICE}, stdin=read_end
    )
    with open(write_end, "w", encoding="utf-8") as pipe:
        pipe.write('1\n[2\n3\nnonsense\n"five"')
    run = running.wait().check(1)
    results = run.results()
    assert [result.get("value") for result in results] == [2, None, 6, None, "fivefive"]
    for task, line in ((1, 2), (3, 4)):
        assert results[task]["status"] == "failed"
        assert re.search(rf"standard input:{line}:\d+", results[task]["error"]["message"])


def test_the_first_line_of_a_pipe_is_no_json(start_job: StartCommand) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"{\n1\n")
    os.close(write_end)
    running = start_job(
        {**FINE, "inputs": {"jsonl": "-"}}, scripts={"twice.py": TWICE}, stdin=read_end
    )
    check_refused(running.wait(), r"standard input:1:\d+")  # it is read before anything is launched


@pytest.mark.parametrize(
    "inputs",
    [
        {"items": []},
        {"range": 0},
        {"range": [5, 5]},
        {"range": [5, 0]},
        {"lines": "empty.txt"},
        {"jsonl": "empty.txt"},
        {"jsonl": "blank.txt"},
        {"glob": "*.nothing"},
        {"npy": "empty.npy"},
    ],
    ids=str,
)
def test_empty_inputs(run_job: RunCommand, tmp_path: Path, inputs: dict[str, Any]) -> None:
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "blank.txt").write_text("\n \n")
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }"
    header = header.ljust(117) + b"\n"
    (tmp_path / "empty.npy").write_bytes(b"\x93NUMPY\x01\x00" + bytes([118, 0]) + header)
    run = run_job({**FINE, "inputs": inputs}, scripts={"twice.py": TWICE})
    check_refused(run, r"empty|no inputs|no task")


@pytest.mark.parametrize("kind", ["lines", "jsonl"])
def test_empty_standard_input(run_job: RunCommand, start_job: StartCommand, kind: str) -> None:
    spec = {**FINE, "inputs": {kind: "-"}}
    check_refused(run_job(spec, scripts={"twice.py": TWICE}, stdin=""), "no task")
    read_end, write_end = os.pipe()
    os.close(write_end)
    check_refused(start_job(spec, stdin=read_end).wait(), "no task")


def test_input_count_unknown(start_job: StartCommand) -> None:
    """A pipe that delivers one line at a time: each is processed before the next one arrives."""
    read_end, write_end = os.pipe()
    running = start_job(
        {"script": "up.py:up", "processes": 2, "inputs": {"lines": "-"}},
        "--results",
        "-",
        scripts={"up.py": "def up(line):\n    return line.upper()\n"},
        stdin=read_end,
    )
    with open(write_end, "w", encoding="utf-8") as pipe:
        for number, word in enumerate(("one", "two", "three")):
            pipe.write(word + ("\n" if word != "three" else ""))
            pipe.flush()
            if word != "three":
                harness.wait_until(
                    lambda: running.stdout.count("\n") == number + 1, what=f"the result of {word}"
                )
    run = running.wait().check()
    assert run.values() == ["ONE", "TWO", "THREE"]
    assert run.summary()["counts"]["total"] == 3


def test_a_very_long_line(run_job: RunCommand, tmp_path: Path) -> None:
    """Ten million characters are one input."""
    (tmp_path / "in.txt").write_text("x" * 10_000_000 + "\nshort")
    script = "def length(line):\n    return len(line)\n"
    run = run_job(
        {"script": "length.py:length", "inputs": {"lines": "in.txt"}},
        scripts={"length.py": script},
    )
    assert run.check().values() == [10_000_000, 5]


# --- the output directory ----------------------------------------------------------------------


def test_output_directory_not_writable(run_job: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o555)
    run = run_job(
        FINE,
        "--output",
        "closed/out",
        scripts={"twice.py": TWICE},
        preexec_fn=drop_root_rights,
    )
    check_refused(run, r"closed/out.*Permission denied", "--output")


def test_output_directory_existing(run_job: RunCommand, tmp_path: Path) -> None:
    """An empty one is taken, any other is left as it is."""
    (tmp_path / "empty").mkdir()
    assert run_job(FINE, "--output", "empty", scripts={"twice.py": TWICE}).check().values()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("years of work")
    run = run_job(FINE, "--output", "full").check(2)
    assert re.search(r"full exists and is not empty", run.stderr)
    assert "--output" in run.stderr
    assert os.listdir(tmp_path / "full") == ["thesis.tex"]
    run = run_job(FINE, "--output", "empty").check(2)  # that of the first run
    assert len((tmp_path / "empty/results.jsonl").read_text().splitlines()) == 4
    (tmp_path / "file").write_text("")
    run = run_job(FINE, "--output", "file").check(2)
    assert "not a directory" in run.stderr
    run = run_job(FINE, "--output", "file/out").check(2)
    assert "file/out" in run.stderr


def test_results_file_not_writable(run_job: RunCommand, tmp_path: Path) -> None:
    for name in ("no/where.jsonl", "folder"):
        (tmp_path / "folder").mkdir(exist_ok=True)
        run = run_job(FINE, "--results", name, scripts={"twice.py": TWICE})
        run.check(2)
        assert name in run.stderr


def test_results_on_a_file_that_the_run_reads(run_job: RunCommand, tmp_path: Path) -> None:
    """It would be emptied before its last lines are read."""
    (tmp_path / "in.jsonl").write_text("[1]\n[2]\n")
    spec = {**FINE, "inputs": {"jsonl": "in.jsonl"}}
    for name in ("in.jsonl", "twice.py", "job.json"):
        run = run_job(spec, "--results", name, scripts={"twice.py": TWICE}).check(2)
        assert f"{name} is the " in run.stderr and "name another file" in run.stderr
        assert not run.run_dir.exists()
    assert (tmp_path / "in.jsonl").read_text() == "[1]\n[2]\n"
    assert (tmp_path / "twice.py").read_text() == TWICE


def test_disk_full(run_job: RunCommand, mount_disk: MountDisk) -> None:
    """The job stops instead of computing what cannot be kept; what is there is whole lines."""
    small_disk = mount_disk("256k")
    script = "import time\n\n\ndef big(number):\n    time.sleep(0.002)\n    return 'x' * 10000\n"
    run = run_job(
        {"script": "big.py:big", "processes": 2, "inputs": {"range": 20000}},
        "--output",
        small_disk / "run",
        scripts={"big.py": script},
    ).check(125)
    assert re.search(r"results\.jsonl: No space left on device", run.stderr), run
    lines = (small_disk / "run/results.jsonl").read_text().splitlines()
    assert 1 <= len(lines) < 100
    assert all(json.loads(line)["status"] == "ok" for line in lines)


def test_limit_of_file_sizes(run_job: RunCommand, run_mprun: RunCommand) -> None:
    """`ulimit -f`: an error that says which file, not a death by SIGXFSZ."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000_000, 20_000_000))

    spec = {"script": "long.py:text", "processes": 1, "inputs": {"range": 30}}
    script = "def text(number):\n    return 1_000_000 * 'x'\n"
    run = run_job(spec, scripts={"long.py": script}, preexec_fn=limit).check(125)
    assert re.search(r"cannot write .*results\.jsonl: File too large; free some space", run.stderr), run
    assert 0 < len(run.results()) < 20
    assert "30 ok" in run_mprun("resume", run.run_dir).check().stderr


def test_results_copy_on_a_full_disk(run_job: RunCommand) -> None:
    """The copy is lost and this is reported; the run itself is not harmed."""
    run = run_job(FINE, "--results", "/dev/full", scripts={"twice.py": TWICE})
    assert re.search(r"/dev/full.*No space left on device", run.stderr), run
    assert run.values() == [0, 2, 4, 6]


def test_reader_of_the_results_that_goes_away(start_job: StartCommand, tmp_path: Path) -> None:
    """`mprun --results - | head -1`: the run goes on, results.jsonl is whole."""
    running = start_job(
        {**FINE, "inputs": {"range": 5000}},
        scripts={"twice.py": TWICE, "head.sh": ""},
    )
    running.wait().check()
    command = (
        f"{harness.MPRUN_BIN} --python {harness.MPRUN_PYTHON} --output piped --results - job.json "
        "2>err; echo $? >code"
    )
    subprocess.run(
        ["bash", "-c", f"({command}) | head -1 >head"], cwd=tmp_path, check=True, timeout=30
    )
    assert json.loads((tmp_path / "head").read_text())["task"] == 0
    assert len((tmp_path / "piped/results.jsonl").read_text().splitlines()) == 5000
    assert (tmp_path / "code").read_text() in ("0\n", "1\n", "141\n")


# --- workers that misbehave --------------------------------------------------------------------


def test_too_many_workers(run_job: RunCommand) -> None:
    check_refused(run_job(FINE, "-n", "4097", scripts={"twice.py": TWICE}), "4097", "4096")


def test_4096_workers(run_job: RunCommand, start_method: str) -> None:
    """There are no more workers than tasks."""
    spec = {**FINE, "start_method": start_method}
    run = run_job(spec, "-n", "4096", scripts={"twice.py": TWICE}).check()
    assert run.values() == [0, 2, 4, 6]
    assert len([p for p in run.summary()["processes"] if p["role"] == "worker"]) <= 4


def test_many_workers_at_once(run_job: RunCommand) -> None:
    """That many really run at once if requested."""
    script = """
from events import mark, wait_for


def run(number):
    mark("here")
    wait_for("here", 300, seconds=50)
    return number
"""
    run = run_job(
        {"script": "job.py:run", "processes": 300, "inputs": {"range": 300}},
        scripts={"job.py": script, "events.py": harness.EVENTS},
    )
    assert run.check().values() == list(range(300))


def test_a_worker_that_prints_binary(run_job: RunCommand, start_method: str) -> None:
    script = """
import os
import sys

ALL = bytes(range(256)) * 4


def run(number):
    os.write(1, ALL)
    sys.stdout.buffer.write(ALL)
    sys.stderr.buffer.write(ALL)
    print("\\udcff")
    raise ValueError("\\x1b[31mred\\r\\n\\x00\\x07" + "\\udc80")
"""
    run = run_job(
        {"script": "binary.py:run", "start_method": start_method, "inputs": {"range": 1}},
        scripts={"binary.py": script},
    ).check(1)
    logged = (run.run_dir / "logs/worker-0.out").read_bytes()
    assert logged.count(bytes(range(256)) * 4) == 2
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f]", run.stderr) is None
    message = run.results()[0]["error"]["message"]
    assert message == "\x1b[31mred\r\n\x00\x07\udc80"


@pytest.mark.parametrize("start_method", ["fork"])
def test_a_worker_that_prints_a_gigabyte(run_job: RunCommand, start_method: str) -> None:
    """It goes into its log, not through mprun."""
    script = """
import os

BLOCK = b"0123456789abcde\\n" * 2**20


def run(number):
    for _ in range(32):
        os.write(1, BLOCK)
    return number
"""
    run = run_job(
        {
            "script": "loud.py:run",
            "start_method": start_method,
            "processes": 2,
            "inputs": {"range": 2},
        },
        scripts={"loud.py": script},
    ).check()
    logs = [run.run_dir / f"logs/worker-{worker}.out" for worker in (0, 1)]
    assert sum(log.stat().st_size for log in logs if log.exists()) == 2**30
    for log in logs:
        log.unlink(missing_ok=True)
    assert run.values() == [0, 1]
    assert len(run.stdout) + len(run.stderr) < 1000


def test_a_worker_that_closes_every_descriptor(run_job: RunCommand, start_method: str) -> None:
    """It can never report again: its task fails, the job does not wait for it."""
    script = """
import os
import time


def run(number):
    if number == 3:
        os.closerange(0, 4096)
        time.sleep(600)
    if number == 5:
        os.closerange(0, 4096)
    return number
"""
    run = run_job(
        {
            "script": "closes.py:run",
            "start_method": start_method,
            "processes": 2,
            "inputs": {"range": 12},
        },
        scripts={"closes.py": script},
        timeout=30,
    ).check(1)
    for task, result in enumerate(run.results()):
        if task in (3, 5):
            assert (result["status"], result["error"]["type"]) == ("failed", "WorkerDied")
            assert result["attempt"] == 2
        else:
            assert (result["status"], result["value"]) == ("ok", task)


def test_a_worker_that_writes_into_our_pipes(run_job: RunCommand, start_method: str) -> None:
    """Garbage is not taken for a result; only the task that wrote it fails."""
    script = """
import os
import stat


def run(number):
    if number == 3:
        for fd in range(3, 64):
            try:
                os.write(fd, b"garbage, and lots of it " * 100)
            except OSError:
                pass
    return number
"""
    run = run_job(
        {
            "script": "garbage.py:run",
            "start_method": start_method,
            "processes": 2,
            "chunk_size": 1,
            "inputs": {"range": 12},
        },
        scripts={"garbage.py": script},
        timeout=30,
    ).check(1)
    results = run.results()
    assert "wrote something that is no result" in results.pop(3)["error"]["message"]
    assert [result["value"] for result in results] == [number for number in range(12) if number != 3]


@pytest.mark.parametrize("start_method", ["fork", "forkserver"])
@pytest.mark.parametrize("harm", ["os.write(fd, b'garbage' * 99)", "os.close(fd)"])
def test_a_worker_whose_pipe_is_faster_than_its_host(
    run_job: RunCommand, start_method: str, harm: str, tmp_path: Path
) -> None:
    """A worker damages its pipe before mprun knows that it exists, and lives on: mprun still ends it.

    Until then mprun sleeps: epoll reports a hang-up again and again.
    """
    script = f"""
import os
import time
from pathlib import Path

from mprun import host

RUINED = Path({str(tmp_path)!r}) / "ruined"
TICKS = Path({str(tmp_path)!r}) / "ticks"
announce = host.Host.announce


def ticks():
    fields = Path(f"/proc/{{os.getppid()}}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def announce_late(self, request, pid):
    while not RUINED.exists():
        time.sleep(0.01)  # the worker writes this file when it has done its harm
    if not TICKS.exists():
        before = ticks()
        time.sleep(1)  # the second whose processor time is measured
        TICKS.write_text(str(ticks() - before))
    announce(self, request, pid)


host.Host.announce = announce_late


def run(number):
    if number == 0 and not RUINED.exists():
        for fd in range(3, 64):
            try:
                {harm}
            except OSError:
                pass
        RUINED.touch()
        time.sleep(600)  # until mprun ends it
    return number
"""
    run = run_job(
        {
            "script": "faster.py:run",
            "start_method": start_method,
            "processes": 1,
            "preload": ["faster"],
            "env": {"PYTHONPATH": str(tmp_path)},
            "inputs": {"range": 3},
        },
        scripts={"faster.py": script},
        timeout=30,
    ).check(0)
    assert [(result["value"], result["attempt"]) for result in run.results()] == [(0, 2), (1, 1), (2, 1)]
    busy = int((tmp_path / "ticks").read_text()) / os.sysconf("SC_CLK_TCK")
    assert busy < 0.25, f"mprun used {busy} s of the second in which nothing happened"


def test_mprun_sleeps_while_a_rank_has_closed_its_pipes(run_job: RunCommand, tmp_path: Path) -> None:
    """As by a rank that turns itself into a daemon."""
    script = f"""
import os
import time
from pathlib import Path


def ticks():
    fields = Path(f"/proc/{{os.getppid()}}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


os.closerange(3, 64)
before = ticks()
time.sleep(1)  # the second whose processor time is measured
Path({str(tmp_path)!r}, "ticks").write_text(str(ticks() - before))
"""
    run_job({"script": "closes.py", "start_method": "spawn", "processes": 1}, scripts={"closes.py": script})
    busy = int((tmp_path / "ticks").read_text()) / os.sysconf("SC_CLK_TCK")
    assert busy < 0.25, f"mprun used {busy} s of the second in which nothing happened"


@pytest.mark.parametrize("start_method", ["fork", "forkserver"])
def test_a_worker_has_no_socket_of_its_host(run_job: RunCommand, start_method: str) -> None:
    """What a worker writes there would count as the host's, and every worker would die with the host."""
    script = """
import os
import time


def sockets(pid):
    links = (os.readlink(fd.path) for fd in os.scandir(f"/proc/{pid}/fd") if os.path.lexists(fd.path))
    return {link for link in links if link.startswith("socket:")}


def run(number):
    deadline = time.monotonic() + 10
    while sockets("self") & sockets(os.getppid()) and time.monotonic() < deadline:
        time.sleep(0.01)  # the host closes this worker's end of the channel after it has forked the worker
    return [len(sockets("self")), len(sockets("self") & sockets(os.getppid()))]
"""
    run = run_job(
        {"script": "shares.py:run", "start_method": start_method, "inputs": {"range": 4}},
        scripts={"shares.py": script},
    ).check(0)
    assert [result["value"] for result in run.results()] == [[1, 0]] * 4


def test_a_script_that_changes_directory(
    run_job: RunCommand, start_method: str, tmp_path: Path
) -> None:
    """At its import and in a task; output, results and replacements do not depend on it."""
    script = """
import os

os.chdir("/")


def run(number):
    os.makedirs(os.environ["SPARE"], exist_ok=True)
    os.chdir(os.environ["SPARE"])
    os.rmdir(os.environ["SPARE"])
    if number == 2 and os.environ["MPRUN_ATTEMPT"] == "1":
        os.abort()
    return number
"""
    run = run_job(
        {
            "script": "moves.py:run",
            "start_method": start_method,
            "processes": 2,
            "env": {"SPARE": str(tmp_path / "spare")},
            "limits": {"tasks_per_worker": 1},
            "inputs": {"range": 5},
        },
        "--output",
        "relative/out",
        "--results",
        "relative.jsonl",
        scripts={"moves.py": script.replace('["SPARE"]', '["SPARE"] + os.environ["MPRUN_WORKER"]')},
    ).check()
    assert run.values() == list(range(5))
    assert len((tmp_path / "relative.jsonl").read_text().splitlines()) == 5


# --- values ------------------------------------------------------------------------------------


def test_values_that_are_no_json(run_job: RunCommand, start_method: str) -> None:
    script = """
def generator():
    yield 1


class Thing:
    pass


circle = []
circle.append(circle)
VALUES = {
    "generator": generator(),
    "bytes": b"abc",
    "set": {1, 2},
    "object": Thing(),
    "lambda": lambda: None,
    "class": Thing,
    "complex": 1j,
    "deep": {"list": [1, {"inner": b"x"}]},
    "key": {(1, 2): 3},
    "circle": circle,
}


def give(name):
    return VALUES[name]
"""
    names = [
        "generator", "bytes", "set", "object", "lambda", "class", "complex", "deep", "key", "circle"
    ]
    run = run_job(
        {
            "script": "give.py:give",
            "start_method": start_method,
            "processes": 2,
            "retries": {"on_death": 0},
            "inputs": {"items": names},
        },
        scripts={"give.py": script},
    ).check(1)
    for name, result in zip(names, run.results(), strict=True):
        error = result["error"]
        assert (result["status"], error["type"]) == ("failed", "TypeError"), (name, result)
        assert "a task may return" in error["message"], (name, error)
    assert {p["expected"] for p in run.summary()["processes"]} == {True}
    assert "generator" in run.results()[0]["error"]["message"]
    assert "bytes" in run.results()[1]["error"]["message"]


def test_values_that_are_unusual_json(run_job: RunCommand, start_method: str) -> None:
    script = """
import enum

import numpy


class Color(enum.IntEnum):
    RED = 3


VALUES = [
    float("nan"), float("inf"), -float("inf"), [float("nan"), {"x": -float("inf")}],
    -0.0, 1e308, 5e-324, 10**30, -(2**63), (1, 2), {1: "a", None: "b", False: "c"}, "", "\\x00",
    "caf\\u00e9 \\U0001f600", "\\udce9", {"\\udce9": "\\udc80"}, True, None, [], {},
    numpy.float32(0.5), numpy.int64(7), numpy.bool_(True), numpy.float64("nan"), Color.RED,
    "a" * 70000, list(range(30000)),
]


def give(number):
    return VALUES[number]
"""
    expected: list[Any] = [
        "NaN", "Infinity", "-Infinity", ["NaN", {"x": "-Infinity"}],
        0.0, 1e308, 5e-324, 10**30, -(2**63), [1, 2], {"1": "a", "null": "b", "false": "c"}, "",
        "\x00", "caf\u00e9 \U0001f600", "\udce9", {"\udce9": "\udc80"}, True, None, [], {},
        0.5, 7, True, "NaN", 3, "a" * 70000, list(range(30000)),
    ]  # fmt: skip
    run = run_job(
        {
            "script": "give.py:give",
            "start_method": start_method,
            "processes": 2,
            "inputs": {"range": len(expected)},
        },
        scripts={"give.py": script},
    ).check()
    assert run.values() == expected
    json.loads((run.run_dir / "results.jsonl").read_bytes().splitlines()[14])  # is UTF-8


def test_a_string_of_100_mb(run_job: RunCommand, start_method: str) -> None:
    script = "def give(number):\n    return 'x' * number\n"
    run = run_job(
        {
            "script": "give.py:give",
            "start_method": start_method,
            "processes": 2,
            "inputs": {"items": [100_000_000, 3]},
        },
        scripts={"give.py": script},
    ).check()
    large, small = run.values()
    assert (len(large), small) == (100_000_000, "xxx")
    (run.run_dir / "results.jsonl").unlink()


def test_closures_are_functions_too(run_job: RunCommand, start_method: str) -> None:
    """Nothing is pickled: any callable can be called."""
    script = """
import functools


def make(factor):
    def times(number):
        return factor * number
    return times


class Adder:
    def __call__(self, number):
        return number + 100


closure = make(3)
partial = functools.partial(pow, 2)
instance = Adder()
bound = [1, 2, 3, 2].count
anonymous = lambda number: -number
builtin = abs
"""
    for name, expected in (
        ("closure", [3, 6]),
        ("partial", [2, 4]),
        ("instance", [101, 102]),
        ("bound", [1, 2]),
        ("anonymous", [-1, -2]),
        ("builtin", [1, 2]),
    ):
        run = run_job(
            {
                "script": f"closures.py:{name}",
                "start_method": start_method,
                "inputs": {"items": [1, 2]},
            },
            scripts={"closures.py": script},
        )
        assert run.check().values() == expected


def test_exceptions_that_cannot_be_shown(run_job: RunCommand, start_method: str) -> None:
    script = """
class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Local(Exception):
    def __init__(self, one, two):
        super().__init__(lambda: None)


def run(number):
    if number == 0:
        raise Unspeakable
    if number == 1:
        raise Local(1, 2)
    if number == 2:
        raise BaseException("base")
    if number == 3:
        raise KeyboardInterrupt
    if number == 4:
        def deeper():
            deeper()
        deeper()
    if number == 5:
        raise ValueError("x" * 1_000_000)
    raise ExceptionGroup("several", [ValueError(1), TypeError(2)])
"""
    run = run_job(
        {"script": "raises.py:run", "start_method": start_method, "inputs": {"range": 7}},
        scripts={"raises.py": script},
    ).check(1)
    results = run.results()
    assert {result["status"] for result in results} == {"failed"}
    assert {result["attempt"] for result in results} == {1}
    types = [result["error"]["type"].rpartition(".")[2] for result in results]
    assert types == [
        "Unspeakable",
        "Local",
        "BaseException",
        "KeyboardInterrupt",
        "RecursionError",
        "ValueError",
        "ExceptionGroup",
    ]
    assert len(results[5]["error"]["message"]) < 200_000


# --- names -------------------------------------------------------------------------------------


def test_names_that_are_not_utf8(run_job: RunCommand, start_method: str, tmp_path: Path) -> None:
    """Of inputs: in a glob, in a list of lines, opened by a function and by a command."""
    folder = tmp_path / "data"
    folder.mkdir()
    names = [b"caf\xe9.txt", b"plain.txt", b"two\nlines.txt", b"\xff\xfe.txt", b"sp ace'\".txt"]
    for name in names:
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:
            file.write(b"content of " + name)
    paths = sorted(os.path.join(os.fsencode(folder), name) for name in names)
    script = """
import os


def read(path):
    with open(path, "rb") as file:
        return [path, file.read().hex()]
"""
    files = {"read.py": script}
    spec = {"script": "read.py:read", "start_method": start_method, "inputs": {"glob": "data/*"}}
    expected = [
        [os.fsdecode(path), (b"content of " + os.path.basename(path)).hex()] for path in paths
    ]
    assert run_job(spec, scripts=files).check().values() == expected
    one_line = [path for path in paths if b"\n" not in path]
    (tmp_path / "names").write_bytes(b"\n".join(one_line) + b"\n")
    run = run_job({**spec, "inputs": {"lines": "names"}}, scripts=files).check()
    assert [value[0] for value in run.values()] == [os.fsdecode(path) for path in one_line]
    run = run_job({"command": ["sh", "-c", "xxd -p <\"$1\" || od -An -tx1 <\"$1\"", "-", "{}"],
                   "inputs": {"glob": "data/*"}}).check()
    shown = ["".join(value["stdout"].split()) for value in run.values()]
    assert shown == [content for _, content in expected]


def test_a_job_in_a_folder_that_is_not_utf8(run_mprun: RunCommand, tmp_path: Path) -> None:
    """The script, the spec and the run directory may be there too."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xe9p\xf4t"))
    folder.mkdir()
    (folder / "twice.py").write_text(TWICE)
    (folder / "job.json").write_text(json.dumps({**FINE, "python": harness.MPRUN_PYTHON}))
    for method in harness.START_METHODS:
        run = run_mprun(
            "--start-method", method, "--output", folder / method, folder / "job.json", cwd=folder
        )
        run.check()
        lines = (folder / method / "results.jsonl").read_text().splitlines()
        assert [json.loads(line)["value"] for line in lines] == [0, 2, 4, 6]


# --- the watch ---------------------------------------------------------------------------------


WATCH_FAULTS = [
    (["--on-hang", "nonsense"], r"--on-hang nonsense\): .*\"nonsense\".*\"kill\" or \"report\""),
    (["--on-hang", "1"], r"--on-hang 1\): .*found 1"),
    (["--stall-seconds", "0"], r"--stall-seconds 0\): .*found 0"),
    (["--stall-seconds", "-1"], r"--stall-seconds -1\): .*found -1"),
    (["--stall-seconds", "abc"], r"--stall-seconds abc\): .*\"abc\".*5m"),
    (["--stall-seconds", "0s"], r"--stall-seconds 0s\): "),
    (["--stall-seconds", "1e300"], r"--stall-seconds 1e300\): "),
    (["--hang-report", "nothere/hang.json"], r"--hang-report nothere/hang\.json\): .*/nothere"),
    (["--hang-report", "."], r"--hang-report \.\): .*is a directory: /"),
    (["--hang-report", "file/hang.json"], r"--hang-report file/hang\.json\): .*/file"),
    (["--set", "watch.on_hangs=\"kill\""], r"watch/on_hangs: .*on_hang"),
    (["--set", "watch=5"], r"--set watch=5\): "),
]


@pytest.mark.parametrize(("options", "pattern"), WATCH_FAULTS, ids=str)
def test_wrong_options_of_the_watch(
    run_mprun: RunCommand, tmp_path: Path, options: list[str], pattern: str
) -> None:
    """For a program and for a job: the message has what is allowed, and nothing is launched."""
    (tmp_path / "file").write_text("")
    (tmp_path / "job.json").write_text(json.dumps(FINE))
    (tmp_path / "twice.py").write_text(TWICE)
    check_refused(run_mprun(*options, "--", "touch", "launched"), pattern)
    check_refused(run_mprun(*options, "job.json"), pattern)
    assert not (tmp_path / "launched").exists()
    assert not (tmp_path / "runs").exists()


def test_a_program_cannot_be_retried(run_mprun: RunCommand, tmp_path: Path) -> None:
    """It has no tasks that could be tried again."""
    run = run_mprun("--on-hang", "retry", "--", "touch", "launched")
    check_refused(run, r'--on-hang retry\): .*"retry".*a program: "kill", "report"')
    assert not (tmp_path / "launched").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--start-method", "spawn"],
        ["--task-timeout", "5"],
        ["--retries", "1"],
        ["--results", "-"],
        ["--set", "limits.job_seconds=5"],
        ["--set", "seed=1"],
    ],
    ids=str,
)
def test_options_that_mean_nothing_to_a_program(
    run_mprun: RunCommand, tmp_path: Path, options: list[str]
) -> None:
    run = run_mprun("--on-hang", "kill", *options, "--", "touch", "launched")
    check_refused(run, rf"{re.escape(' '.join(options))} is only valid with a job")
    assert not (tmp_path / "launched").exists()


def test_a_hang_report_that_cannot_be_written(run_mprun: RunCommand, tmp_path: Path) -> None:
    """The hang is still reported."""
    folder = tmp_path / "closed"
    folder.mkdir()
    script = "import os\nos.rmdir('closed')\nread, write = os.pipe()\nos.read(read, 1)\n"
    options = ["--on-hang", "kill", "--hang-report", folder / "hang.json"]
    run = run_mprun(*options, "--", harness.MPRUN_PYTHON, "-c", script).check(124)
    assert re.search(r"^mprun: warning: .*closed/hang\.json.*No such file", run.stderr, re.M), run
    assert "deadlock" in run.stderr or "hang" in run.stderr


# --- limits of the machine ---------------------------------------------------------------------


def test_a_limit_of_64_descriptors(run_job: RunCommand, start_method: str) -> None:
    """Enough for a few workers; for many the job is refused, with the cure, before any is launched."""
    spec = {**FINE, "start_method": start_method, "inputs": {"range": 200}}
    run = run_job(
        spec,
        "-n",
        "4",
        scripts={"twice.py": TWICE},
        preexec_fn=lambda: limit_descriptors(64, 64),
    ).check()
    assert run.values() == [2 * number for number in range(200)]
    run = run_job(spec, "-n", "60", preexec_fn=lambda: limit_descriptors(64, 64)).check(2)
    assert re.search(r"60 workers need \d+ open files, the limit is 64\n  use --processes \d+", run.stderr), run
    assert "ulimit" in run.stderr


def test_a_soft_limit_is_raised_for_mprun_only(run_job: RunCommand, start_method: str) -> None:
    script = """
import resource

from events import mark, wait_for


def run(_):
    mark("here")
    wait_for("here", 60)
    return resource.getrlimit(resource.RLIMIT_NOFILE)
"""
    run = run_job(
        {"script": "job.py:run", "start_method": start_method, "inputs": {"range": 60}},
        "-n",
        "60",
        scripts={"job.py": script, "events.py": harness.EVENTS},
        preexec_fn=lambda: limit_descriptors(64, 4096),
    ).check()
    assert run.values() == [[64, 4096]] * 60


def test_a_programs_soft_limit_is_its_own(run_mprun: RunCommand) -> None:
    """The watch needs more descriptors than most shells allow."""
    program = ["sh", "-c", "ulimit -Sn; ulimit -Hn; grep -h 'open files' /proc/$PPID/limits"]
    run = run_mprun("--", *program, preexec_fn=lambda: limit_descriptors(64, 4096)).check()
    soft, hard, supervisor = run.stdout.splitlines()
    assert (soft, hard) == ("64", "4096")
    assert supervisor.split()[3:5] == ["4096", "4096"]


def test_standard_descriptors_that_are_closed(run_job: RunCommand) -> None:
    """`mprun job.json <&- >&-`: files opened in their place must not be taken for them."""

    def close() -> None:
        os.close(0)
        os.close(1)

    run = run_job(FINE, scripts={"twice.py": TWICE}, preexec_fn=close).check()
    assert run.values() == [0, 2, 4, 6]
