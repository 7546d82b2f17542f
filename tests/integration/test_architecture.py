"""The table of modules in ARCHITECTURE.md, compared with includes and link lines."""
from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def table(folder: str) -> dict[str, str]:
    """The rows of ARCHITECTURE.md for modules in a folder, from top to bottom: each with its column "may use"."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    return dict(re.findall(rf"^\| `{folder}/(\w+)` \|[^|]+\| ([^|]+) \|$", text, re.MULTILINE))


def modules() -> list[str]:
    """The core modules from top to bottom, as ARCHITECTURE.md lists them."""
    listed = list(table("core"))
    assert len(listed) >= 9, "ARCHITECTURE.md lost its table of modules"
    return listed


def violations(uses: dict[str, set[str]], order: list[str]) -> list[str]:
    """Every use of a module that stands lower, or of one that is not listed."""
    found = []
    for user, used in uses.items():
        for name in sorted(used):
            if name not in order or order.index(name) > order.index(user):
                found.append(f"{user} uses {name}")
    return found


def sources(folder: Path) -> list[Path]:
    return [file for form in ("*.h", "*.c", "*.cc") for file in folder.rglob(form)]


def test_every_module_is_listed() -> None:
    """Every folder of core/ with code is in the list, and the other way round."""
    folders = {path.parent.name for path in (ROOT / "core").glob("*/*.h")}
    assert folders == set(modules())


def test_includes_go_upwards() -> None:
    order = modules()
    uses: dict[str, set[str]] = {name: set() for name in order}
    for name in order:
        for file in sources(ROOT / "core" / name):
            included = re.findall(r'^#include "(\w+)/', file.read_text(), re.MULTILINE)
            uses[name].update(other for other in included if other != name)
    assert any(uses.values())
    assert violations(uses, order) == []


def test_folders_of_the_watch_use_only_those_above_them() -> None:
    """The list in its README, from top to bottom. All of them may use hang.h, the report that they make."""
    order = re.findall(r"^\| `(\w+)/` \|", (ROOT / "core/watch/README.md").read_text(), re.MULTILINE)
    assert set(order) == {path.name for path in (ROOT / "core/watch").iterdir() if path.is_dir()}
    uses = {
        name: {
            used.rpartition("/")[0] or used
            for file in (ROOT / "core/watch" / name).iterdir()
            for used in re.findall(r'^#include "watch/([\w/.]+)"', file.read_text(), re.MULTILINE)
        }
        - {name, "hang.h"}
        for name in order
    }
    assert any(uses.values())
    assert violations(uses, order) == []


def test_one_header_brings_in_the_json_library() -> None:
    """It takes a second to compile: core/json/json_fwd.h is for files that only name the type."""
    users = {file.relative_to(ROOT).as_posix() for folder in ("core", "cli", "tests") for file in (ROOT / folder).rglob("*")
             if file.suffix in {".h", ".cc"} and "#include <nlohmann/" in file.read_text(encoding="utf-8")}
    assert users == {"core/json/json.h", "core/json/json_fwd.h"}


def test_processes_are_signalled_through_their_identity() -> None:
    """kill(2) by number is for ProcessRef, for a child that fails between fork and exec, and for an existence check."""
    allowed = {"core/procfs/process_ref.cc", "core/os/process.cc"}
    found = []
    for file in sorted([*(ROOT / "core").rglob("*.cc"), *(ROOT / "cli").rglob("*.cc")]):
        name = file.relative_to(ROOT).as_posix()
        for number, line in enumerate(file.read_text().splitlines(), 1):
            by_number = re.search(r"(?<![\w.>])(kill|killpg|tgkill|sigqueue)\((?!.*, 0\))", line)
            if by_number and name not in allowed:
                found.append(f"{name}:{number}: {line.strip()}")
    assert found == []


def test_link_lines_go_upwards_and_cover_the_includes() -> None:
    order = modules()
    uses: dict[str, set[str]] = {}
    for name in order:
        text = (ROOT / "core" / name / "CMakeLists.txt").read_text()
        match = re.search(r"mprun_module\(%s\b.*?\)" % name, text, re.DOTALL)
        assert match, f"core/{name} defines no target of its own"
        block = match.group(0)
        words = re.search(r"USES((?:\s+[a-z]+)+)", block)
        uses[name] = set(words.group(1).split()) if words else set()
        for file in sources(ROOT / "core" / name):
            for other in re.findall(r'^#include "(\w+)/', file.read_text(), re.MULTILINE):
                assert other == name or other in uses[name], f"{file} includes {other}, which {name} does not link"
    assert violations(uses, order) == []
    listed = {name: set() if may_use == "nothing" else set(may_use.split()) for name, may_use in table("core").items()}
    assert uses == listed


def test_the_adapters_share_only_the_layouts() -> None:
    """What the preload library and the worker extension include of core/; other folders of adapters/ nothing."""
    used: dict[str, set[str]] = {}
    for file in sources(ROOT / "adapters"):
        included = set(re.findall(r'^#include "(\w+/[\w.]+)"', file.read_text(), re.MULTILINE))
        if included:
            used.setdefault(file.relative_to(ROOT / "adapters").parts[0], set()).update(included)
    listed: dict[str, set[str]] = {}
    for name, may_use in table("adapters").items():
        listed[name] = set(may_use.split())
    assert used == listed
    names = ("wire/alarms", "wire/child_polls", "wire/deadlines", "wire/protocol", "wire/signal_handlers", "sync/sync")
    assert set().union(*used.values()) <= {f"{name}.h" for name in names}


def test_a_wrong_use_is_found() -> None:
    assert violations({"base": {"os"}}, ["base", "os"]) == ["base uses os"]
