"""`mprun explain`: the list, the pages, and the programs of the pages, which hang and are cured as documented."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

import harness
from harness import RunCommand

PAGES = harness.ROOT / "man/causes"
IDS = sorted(page.stem for page in PAGES.glob("*.md"))
FORM = re.compile(
    r"# (?P<id>[a-z-]+): (?P<summary>[^\n]+[^.\n])\n\n"
    r"(?P<prose>(?:[^#`\n][^\n]*\n)+)\n"
    r"## A program that hangs\n\n```(?P<language>python|c)\n(?P<hangs>[^`]+)```\n\n"
    r"## The same, cured\n\n```(?P=language)\n(?P<cured>[^`]+)```\n"
    r"(?:\n(?:[^#`\n][^\n]*\n)+)?"
)
# The programs need nothing but a compiler and Python; these also need something that is not in them.
COMPILED_WITH = {"openmp-after-fork": "-fopenmp"}
ADAPTERS = {"openmp-after-fork": "-libgomp"}


@dataclass(frozen=True)
class Page:
    """The content of a file of man/causes."""

    id: str
    summary: str
    language: str
    hangs: str
    cured: str

    def argv(self, program: str, folder: Path) -> list[str | Path]:
        """The command for one of the two programs; a C program is built first."""
        if self.language == "python":
            script = folder / "program.py"
            script.write_text(program, encoding="utf-8")
            return [harness.MPRUN_PYTHON, script]
        source, target = folder / "program.c", folder / "program"
        source.write_text(program, encoding="utf-8")
        option = COMPILED_WITH.get(self.id, "-pthread")
        subprocess.run(["cc", "-Wall", "-Werror", option, "-o", target, source], check=True)
        return [target]

    def environment(self, folder: Path) -> dict[str, str]:
        """`folder` is for temporary files that a killed program leaves."""
        adapters = {"MPRUN_ADAPTERS": ADAPTERS[self.id]} if self.id in ADAPTERS else {}
        return {**harness.library_settings(folder), **adapters}


def read_page(name: str) -> Page:
    match = FORM.fullmatch((PAGES / f"{name}.md").read_text(encoding="utf-8"))
    assert match, f"{name}.md does not have the form of a page"
    return Page(*match.group("id", "summary", "language", "hangs", "cured"))


@pytest.fixture(scope="session")
def kinds(mprun: Path) -> dict[str, str]:
    """The kind of every cause, by its ID: "proof" or "stall"."""
    listed = subprocess.run([mprun, "explain"], capture_output=True, text=True, check=True).stdout
    return dict(line.split()[:2] for line in listed.splitlines())


def test_the_list_names_every_page(run_mprun: RunCommand, kinds: dict[str, str]) -> None:
    run = run_mprun("explain").check()
    assert run.stderr == ""
    listed = [tuple(re.split(" {2,}", line)) for line in run.stdout.splitlines()]
    assert listed == [(name, kinds[name], read_page(name).summary) for name in IDS]
    assert set(kinds.values()) == {"proof", "stall"}
    assert max(map(len, run.stdout.splitlines())) <= 120


@pytest.mark.parametrize("name", IDS)
def test_a_page_has_its_form(name: str, run_mprun: RunCommand) -> None:
    page = read_page(name)
    assert page.id == name
    run = run_mprun("explain", name).check()
    assert run.stdout == (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert run.stderr == ""
    lines = run.stdout.splitlines()
    assert max(map(len, lines)) <= 120
    assert max(len(page.hangs.splitlines()), len(page.cured.splitlines())) <= 22


def test_the_table_has_every_cause_and_every_rule() -> None:
    header = (harness.ROOT / "core/watch/causes/cause_table.h").read_text(encoding="utf-8")
    table = (harness.ROOT / "core/watch/causes/cause_table.cc").read_text(encoding="utf-8")
    causes = re.findall(r"constexpr CauseId (k\w+)", header)
    rules = [name for names in re.findall(r"^Rule ([^;]+);", header, re.MULTILINE) for name in re.split(r",\s*", names)]
    assert len(causes) > 20 and len(rules) > 40
    assert set(causes) == set(re.findall(r"^    \{(k\w+)", table, re.MULTILINE))
    assert sorted(rules) == sorted(set(re.findall(r"^    \{k\w+, (\w+),", table, re.MULTILINE)))


def test_the_manual_names_every_cause(kinds: dict[str, str]) -> None:
    manual = (harness.ROOT / "man/mprun.1").read_text(encoding="utf-8")
    proofs, stalls = manual[manual.index("A proof has one of these:") :].split("A stall has one of:")
    proved = re.findall(r"[a-z]+(?:-[a-z]+)+", proofs)
    stalled = re.findall(r"^\.It (\S+)$", stalls[: stalls.index("\n.El\n")], re.MULTILINE)
    assert sorted(proved) == sorted(name for name, kind in kinds.items() if kind == "proof")
    assert sorted(stalled) == sorted(name for name, kind in kinds.items() if kind == "stall")


@pytest.mark.parametrize(
    ("id_", "near"),
    [("lock-cycel", "lock-cycle"), ("Barrier-short", "barrier-short"), ("../causes/stopped", None), ("xyzzy", None)],
)
def test_an_unknown_id_is_refused(id_: str, near: str | None, run_mprun: RunCommand) -> None:
    run = run_mprun("explain", id_).check(2)
    meant = f'  did you mean "{near}"?\n' if near else ""
    assert run.stderr == f'mprun: explain: no cause is called "{id_}"\n{meant}  `mprun explain` lists the causes\n'
    assert run.stdout == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["explain", "stopped", "no-waker"], "found no-waker, allowed: options and ID"),
        (["explain", "--json"], "--json is only valid with"),
        (["-q", "explain", "stopped"], "--quiet is only valid with"),
        (["explain", "-x"], "unknown option -x"),
        (["explain", "--", "true"], "explain: found --, allowed: options and ID"),
    ],
)
def test_other_words_are_refused(words: list[str], message: str, run_mprun: RunCommand) -> None:
    assert message in run_mprun(*words).check(2).stderr


@pytest.mark.parametrize("name", IDS)
def test_the_cured_program_ends(name: str, run_mprun: RunCommand, tmp_path: Path) -> None:
    page = read_page(name)
    argv = page.argv(page.cured, tmp_path)
    run = run_mprun("--on-hang", "kill", "--", *argv, env=page.environment(tmp_path)).check()
    assert "mprun" not in run.stderr


@pytest.mark.parametrize("name", IDS)
def test_the_program_hangs_for_this_cause(
    name: str, run_mprun: RunCommand, tmp_path: Path, kinds: dict[str, str]
) -> None:
    page = read_page(name)
    argv = page.argv(page.hangs, tmp_path)
    options = ["--on-hang", "kill", "--hang-report", "hang.json", "--stall-seconds", "3"]
    run = run_mprun(*options, "--", *argv, env=page.environment(tmp_path)).check(124)
    report = json.loads((tmp_path / "hang.json").read_text(encoding="utf-8"))
    assert report["cause"]["id"] == name, run
    assert (report["verdict"] == "stalled") == (kinds[name] == "stall")
