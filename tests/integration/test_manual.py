"""The manual pages describe every option of mprun and every field of the schema, and no other."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import RunCommand

COMMAND_PAGE = harness.ROOT / "man/mprun.1"
JOB_PAGE = harness.ROOT / "man/mprun-job.5"
PYTHON_PAGE = harness.ROOT / "man/mprun-python.3"
SCHEMA = harness.ROOT / "configs/job.schema.json"

TYPES = r"\b(?:string|integer|number|array|object|boolean)\b"
LARGEST_TOLD = 1_000_000  # larger maxima in the schema are there to catch overflows


# --- what --help says --------------------------------------------------------------------------


def options_of_help(text: str) -> dict[str, str]:
    """The options of --help, as "-n, --processes", each with the name of its value or ""."""
    found = {}
    for line in text.splitlines():
        if match := re.match(r" +(-[-\w]+(?:, ?-[-\w]+)*)(?: ([^ ]+))?(?: .*)?$", line):
            found[re.sub(r", ?", ", ", match[1])] = match[2] or ""
    return found


def synopsis_of_help(text: str) -> list[str]:
    """The command lines that --help begins with."""
    usage = re.search(r"^Usage: (.*\n(?: +\S.*\n)*)", text, re.MULTILINE)
    return [line.strip() for line in usage[1].splitlines()] if usage else []


# --- what the pages contain, from their mdoc source --------------------------------------------


def section_of_page(page: str, title: str) -> list[str]:
    """The lines of a section."""
    match = re.search(rf"^\.Sh {title}\n(.*?)(?=^\.Sh |\Z)", page, re.MULTILINE | re.DOTALL)
    return match[1].splitlines() if match else []


def options_of_page(page: str) -> dict[str, str]:
    """The options that have an entry of their own, in the form of options_of_help()."""
    found = {}
    for line in section_of_page(page, "OPTIONS"):
        if line.startswith(".It Fl "):
            flags, _, value = line.removeprefix(".It ").partition(" Ar ")
            found[", ".join("-" + flag.removeprefix("Fl ") for flag in flags.split(" , "))] = value
    return found


def flags_of_page(page: str) -> set[str]:
    """Every flag that is mentioned anywhere, except the -- in front of a command."""
    return {"-" + flag for flag in re.findall(r"\bFl ([-\w]+)", page)}


def synopsis_of_page(page: str) -> list[str]:
    """The command lines of the synopsis as a reader sees them."""
    lines: list[str] = []
    for line in section_of_page(page, "SYNOPSIS"):
        macro, _, rest = line.partition(" ")
        words = re.sub(r"\bAr ", "", re.sub(r"\bFl (?=-\w)", "-", rest))
        if macro == ".Nm":
            lines.append("mprun")
        elif macro == ".Op":
            lines[-1] += f" [{words}]"
        elif macro == ".Fl":
            lines[-1] += " -" + words.replace("\\&", "")
        else:
            lines[-1] += f" {words}"
    return lines


@dataclass(frozen=True)
class Field:
    """The entry of one field in mprun-job.5."""

    types: frozenset[str]
    default: str | None
    words: frozenset[str]  # literal values, the default included
    text: str


def fields_of_page(page: str) -> dict[str, Field]:
    """Every field, by its path with dots: `.It Va PATH Pq TYPE or TYPE ; default Cm VALUE`."""
    found = {}
    body = "\n".join(section_of_page(page, "JOB FILE"))
    for entry in re.split(r"^\.It Va ", body, flags=re.MULTILINE)[1:]:
        head, _, text = entry.partition("\n")
        path, _, rest = head.partition(" Pq ")
        types, _, default = rest.partition(" ; default Cm ")
        found[path] = Field(
            frozenset(re.findall(TYPES, types)),
            default or None,
            frozenset(re.findall(r"\bCm (\S+)", entry)),
            text,
        )
    return found


def properties_of_schema(
    schema: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every property with its path, those of objects inside included."""
    for name, value in schema.get("properties", {}).items():
        yield prefix + name, value
        yield from properties_of_schema(value, f"{prefix}{name}.")


def alternatives_of_property(value: Mapping[str, Any]) -> list[str]:
    """The values that an enumeration, or a pattern such as ^(cpu|cuda:[0-9]+)$, allows."""
    if "enum" in value:
        return [str(word) for word in value["enum"]]
    pattern = re.fullmatch(r"\^\(?([^()]*)\)?\$", value.get("pattern", ""))
    return pattern[1].split("|") if pattern else []


def types_of_property(value: Mapping[str, Any]) -> set[str]:
    """The JSON types of a property; an enumeration has those of its values."""
    if "enum" in value:
        return {"string" if isinstance(word, str) else "integer" for word in value["enum"]}
    types = value["type"]
    return {types} if isinstance(types, str) else set(types)


# --- the comparisons: each lists what is wrong -------------------------------------------------


def compare_command_page(page: str, help_text: str) -> list[str]:
    """What differs between mprun.1 and --help."""
    in_help, in_page = options_of_help(help_text), options_of_page(page)
    complaints = [f"not in mprun.1: {option}" for option in in_help if option not in in_page]
    complaints += [f"not in --help: {option}" for option in in_page if option not in in_help]
    complaints += [
        f"{option}: mprun.1 says {in_page[option]!r}, --help {in_help[option]!r}"
        for option in in_help.keys() & in_page.keys()
        if in_help[option] != in_page[option]
    ]
    known = {flag for option in in_help for flag in option.split(", ")}
    complaints += [f"mentioned, but no option: {flag}" for flag in flags_of_page(page) - known]
    if synopsis_of_page(page) != synopsis_of_help(help_text):
        lines_of_help = synopsis_of_help(help_text)
        complaints.append(f"synopsis: {synopsis_of_page(page)}, --help: {lines_of_help}")
    return complaints


def compare_field(path: str, field: Field, value: Mapping[str, Any]) -> Iterator[str]:
    """What differs between the entry of a field and its property."""
    types = types_of_property(value)
    if field.types != types:
        yield f"{path}: types {sorted(field.types)}, in the schema {sorted(types)}"
    listed = value["default"] if isinstance(value.get("default"), list) else []
    default = str(value["default"]) if "default" in value and not listed else None
    if missing := [word for word in listed if word not in field.text]:
        yield f"{path}: does not give the defaults {missing}"
    if field.default != default:
        yield f"{path}: default {field.default!r}, in the schema {default!r}"
    alternatives = alternatives_of_property(value)
    words = {word for word in alternatives if word.isalnum()}
    if words - field.words:
        yield f"{path}: does not mention {sorted(words - field.words)}"
    if len(words) == len(alternatives) and field.words - words - {default}:
        yield f"{path}: has no values {sorted(field.words - words)}"
    most = value.get("maximum", 0)
    if 0 < most <= LARGEST_TOLD and not re.search(rf"\b{most}\b", field.text):
        yield f"{path}: does not give the maximum {most}"


def compare_job_page(page: str, schema: Mapping[str, Any]) -> list[str]:
    """What differs between mprun-job.5 and the schema."""
    fields, properties = fields_of_page(page), dict(properties_of_schema(schema))
    complaints = [f"not in mprun-job.5: {path}" for path in properties if path not in fields]
    complaints += [f"not in the schema: {path}" for path in fields if path not in properties]
    for path in fields.keys() & properties.keys():
        complaints += compare_field(path, fields[path], properties[path])
    return complaints


# --- tests -------------------------------------------------------------------------------------


@pytest.fixture
def help_text(run_mprun: RunCommand) -> str:
    """What `mprun --help-all` prints."""
    return run_mprun("--help-all").check().stdout


@pytest.fixture
def schema() -> dict[str, Any]:
    """configs/job.schema.json."""
    return json.loads(SCHEMA.read_text(encoding="utf-8"))


def test_command_page_is_what_help_says(help_text: str) -> None:
    assert {"-n, --processes", "--set", "-h, --help", "--version"} <= options_of_help(
        help_text
    ).keys()
    assert len(synopsis_of_help(help_text)) >= 4
    assert compare_command_page(COMMAND_PAGE.read_text(encoding="utf-8"), help_text) == []


def test_job_page_is_what_the_schema_says(schema: dict[str, Any]) -> None:
    assert {"inputs.grid", "retries.delay", "limits.grace_seconds"} <= dict(
        properties_of_schema(schema)
    ).keys()
    assert compare_job_page(JOB_PAGE.read_text(encoding="utf-8"), schema) == []


def test_python_page_has_what_starts_jobs() -> None:
    """Every function and class, with its parameters, and every exception."""
    package = harness.MPRUN_BIN.resolve().parent.parent / "lib/mprun/python"
    show = (
        "import inspect, json, mprun\n"
        "words = {name: list(inspect.signature(getattr(mprun, name)).parameters)"
        " if module != 'errors' and name != 'Run' else [] for name, module in mprun._STARTS.items()}\n"
        "print(json.dumps([words, [name for name in dir(mprun.Run) if name[0] != '_']]))"
    )
    environment = {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    words = [harness.MPRUN_PYTHON, "-c", show]
    starts, members = json.loads(subprocess.run(words, env=environment, capture_output=True, check=True, timeout=60).stdout)
    page = PYTHON_PAGE.read_text(encoding="utf-8")
    assert {"map", "run", "Executor", "register_joblib", "Hung"} <= starts.keys()
    missing = [name for name in [*starts, *members] if not re.search(rf"(Fn|Vt|Va) (.*, )?{name}\b", page)]
    for name, parameters in starts.items():
        entry = re.search(rf"^\.It Fn {name} (.*)$", page, re.MULTILINE)
        named = set(re.findall(r'"(\w+)', entry[1])) if entry else set()
        missing += [f"{name}({word})" for word in parameters if word not in {*named, "fields", "processes"}]
    assert sorted(missing) == ["RemoteTraceback", "lines"]  # they need no words


@pytest.mark.parametrize("page", [COMMAND_PAGE, JOB_PAGE, PYTHON_PAGE], ids=lambda page: page.name)
@pytest.mark.parametrize(
    "check",
    [["mandoc", "-Tlint", "-W", "warning"], ["groff", "-mandoc", "-ww", "-z", "-Tutf8", "-K", "utf8"]],
    ids=lambda check: check[0],  # groff runs as for `man --warnings`
)
def test_the_formatters_have_no_complaint(page: Path, check: list[str]) -> None:
    if shutil.which(check[0]) is None:
        pytest.skip(f"{check[0]} is not installed")
    done = subprocess.run([*check, str(page)], capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (".It Fl -order Ar", ".It Fl -orders Ar", "not in mprun.1: --order"),
        (".It Fl -order Ar", ".It Fl -orders Ar", "not in --help: --orders"),
        (".It Fl q , Fl -quiet", ".It Fl -quiet", "not in mprun.1: -q, --quiet"),
        ("Ar input|completion", "Ar input|output", "--order: mprun.1 says 'input|output'"),
        (".Fl -order\n", ".Fl -on-halt\n", "mentioned, but no option: --on-halt"),
        (".Cm check\n.Ar JOB.json", ".Cm doctor", "synopsis: "),
    ],
)
def test_a_wrong_command_page_is_found(help_text: str, old: str, new: str, complaint: str) -> None:
    page = COMMAND_PAGE.read_text(encoding="utf-8")
    assert old in page
    found = compare_command_page(page.replace(old, new, 1), help_text)
    assert any(line.startswith(complaint) for line in found), found


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (".It Va seed Pq", ".It Va seeds Pq", "not in mprun-job.5: seed"),
        (".It Va inputs.glob Pq", ".It Va inputs.globs Pq", "not in the schema: inputs.globs"),
        ("on_death Pq integer ; default Cm 1", "on_death Pq integer", "retries.on_death: default"),
        ("default Cm 30", "default Cm 31", "limits.join_seconds: default"),
        (".Cm kwargs", ".Cm keywords", "call: has no values ['keywords']"),
        (".Cm kwargs", ".Cm keywords", "call: does not mention ['kwargs']"),
        (".Pq Cm ascend", ".Pq Cm npu", "device: does not mention ['ascend']"),
        ("env Pq object", "env Pq array", "env: types"),
        ("from 1 to 4096", "from 1 to 4095", "processes: does not give the maximum"),
    ],
)
def test_a_wrong_job_page_is_found(
    schema: dict[str, Any], old: str, new: str, complaint: str
) -> None:
    page = JOB_PAGE.read_text(encoding="utf-8")
    assert old in page
    found = compare_job_page(page.replace(old, new, 1), schema)
    assert any(line.startswith(complaint) for line in found), found


def test_a_new_field_or_value_must_be_documented(schema: dict[str, Any]) -> None:
    page = JOB_PAGE.read_text(encoding="utf-8")
    schema["properties"]["limits"]["properties"]["power_per_worker"] = {"type": "integer"}
    schema["properties"]["order"]["enum"].append("random")
    found = compare_job_page(page, schema)
    assert "not in mprun-job.5: limits.power_per_worker" in found
    assert any(line.startswith("order: does not mention") for line in found)
