"""What the page of mprun report --html is made of: its colours, d3 and its licence, and a build without d3."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness import RunCommand

PAGE = harness.ROOT / "core/report/page"
sys.path.insert(0, str(PAGE))
import assemble  # noqa: E402

TEXTS = [  # (text, what it stands on)
    *[(name, "page") for name in ("text", "muted", "accent", "failed", "retried", "good")],
    *[(name, "panel") for name in ("text", "muted", "accent", "failed", "retried", "good")],
    *[("text", "row"), ("muted", "row"), ("failed", "row"), ("mark", "panel")],
    *[(f"on-{kind}", kind) for kind in ("ok", "failed", "retried", "phase", "accent")],
]
SHAPES = [  # blocks, borders and marks, where the whole shape carries meaning
    *[(name, ground) for name in ("ok", "failed", "retried", "cancelled", "phase", "mark") for ground in ("row", "panel")],
]


def colours(scheme: int) -> dict[str, str]:
    """The colours of page.css: 0 by day, 1 by night."""
    css = (PAGE / "page.css").read_text(encoding="utf-8")
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", css)
    assert len(pairs) == len(re.findall(r"^  --", css, re.MULTILINE)), "a colour is not written as light-dark(#.., #..)"
    return {name: (light, dark)[scheme] for name, light, dark in pairs}


def luminance(colour: str) -> float:
    """Relative luminance, https://www.w3.org/TR/WCAG21/#dfn-relative-luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_itself() -> None:
    assert contrast("#000000", "#ffffff") == 21
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_and_shapes_can_be_seen(scheme: int) -> None:
    """WCAG AA: 4.5 for text, 3 for what is drawn."""
    found = colours(scheme)
    for pairs, least in ((TEXTS, 4.5), (SHAPES, 3.0)):
        for name, ground in pairs:
            assert contrast(found[name], found[ground]) >= least, (name, ground, contrast(found[name], found[ground]))


def test_no_colour_is_written_elsewhere() -> None:
    css = (PAGE / "page.css").read_text(encoding="utf-8")
    rest = re.sub(r"light-dark\([^)]*\)|rgb\(0 0 0 / 20%\)", "", css)
    scripts = "".join(assemble.source(name) for name in assemble.SCRIPTS)
    assert not re.findall(r"#[0-9a-f]{3,8}\b(?=[;,)\s])", rest.split("@media print")[0])
    assert not re.findall(r"[\"'`]#[0-9a-f]{3,8}[\"'`]|rgb\(", scripts)


def test_licences_are_given_once(tmp_path: Path) -> None:
    debian = (
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n"
        "Files: *\nCopyright: 2017 {who}\nLicense: BSD-3-Clause\n\n"
        "Files: debian/*\nCopyright: 2018 A Packager\nLicense: GPL-3\n\n"
        "License: BSD-3-Clause\n Redistribution is permitted.\n .\n THERE IS NO WARRANTY.\n\n"
        "License: GPL-3\n Of the packaging.\n"
    )
    for who in ("Ann", "Bob"):
        (tmp_path / who).write_text(debian.format(who=who), encoding="utf-8")
    (tmp_path / "plain").write_text("Anybody may do anything.\n", encoding="utf-8")
    text = assemble.licence([tmp_path / name for name in ("Ann", "Bob", "plain")])
    assert "Copyright 2017 Ann" in text and "Copyright 2017 Bob" in text
    assert text.count("Redistribution is permitted.\n\nTHERE IS NO WARRANTY.") == 1
    assert "Anybody may do anything." in text
    assert "Packager" not in text and "Of the packaging" not in text


def test_a_resumed_run_has_its_sessions(run_job: RunCommand, run_mprun: RunCommand, tmp_path: Path) -> None:
    """How long a worker waited is counted from the start of each."""
    script = "import os\n\ndef run(number):\n    if number == 1 and not os.path.exists('again'):\n        raise KeyError\n"
    run = run_job({"script": "job.py:run", "inputs": {"range": 3}, "processes": 1}, scripts={"job.py": script}).check(1)
    (tmp_path / "again").touch()
    run_mprun("--retry-failed", "resume", run.run_dir).check()
    run_mprun("report", "--html", "page.html", run.run_dir).check()
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "worked on by 2 sessions" in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])  # type: ignore[index]
    if data is None:
        pytest.skip("this mprun was built without d3 (Debian: node-d3)")
    first, second = data["sessions"]
    assert first == 0 and 0 < second < 1e6 * data["span"]


def assembled(folder: Path, *more: Path) -> tuple[str, str]:
    """The outputs of assemble.py: page_parts.cc and the copyright."""
    own = folder / "LICENSE"
    own.write_text("Ours.\n", encoding="utf-8")
    assemble.main(str(folder / "parts.cc"), str(folder / "copyright"), str(own), *map(str, more))
    return (folder / "parts.cc").read_text(encoding="utf-8"), (folder / "copyright").read_text(encoding="utf-8")


def test_without_d3_there_are_no_scripts(tmp_path: Path) -> None:
    parts, copyright_text = assembled(tmp_path)
    assert "script-src" not in parts and "default-src 'none'" in parts and "getContext" not in parts
    assert copyright_text == "Ours.\n"
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{harness.ROOT / 'core'}"]
    subprocess.run(["c++", *flags, str(tmp_path / "parts.cc")], check=True)


def test_d3_must_not_end_its_script(tmp_path: Path) -> None:
    library, licence = tmp_path / "d3.min.js", tmp_path / "licence"
    licence.write_text("Theirs.\n", encoding="utf-8")
    library.write_text("d3 = {}", encoding="utf-8")
    parts, copyright_text = assembled(tmp_path, library, licence)
    assert "d3 = {}" in parts and "script-src 'sha256-" in parts
    assert copyright_text.startswith("Ours.\n") and "Theirs." in copyright_text
    library.write_text("'</SCRIPT>'", encoding="utf-8")
    with pytest.raises(SystemExit):
        assembled(tmp_path, library, licence)


@pytest.mark.parametrize(
    ("d3", "message"),
    [
        ("OFF", "Without d3"),
        ("v3/d3.min.js", "no d3 of version 5 or later"),
        ("bare/dist/d3.min.js", "There is no .*LICENSE"),
    ],
)
def test_a_build_without_d3(d3: str, message: str, tmp_path: Path) -> None:
    """It is configured, and reports it; a d3 without its licence is an error."""
    files = {
        "v3/d3.min.js": "// https://d3js.org v3.5.17\n",
        "bare/dist/d3.min.js": "// https://d3js.org v7.0.0\n",
        "LICENSE": "Theirs.\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    option = f"-DMPRUN_D3={d3 if d3 == 'OFF' else tmp_path / d3}"
    build = tmp_path / "build"
    words = ["cmake", "-S", str(harness.ROOT), "-B", str(build), "-G", "Ninja", option,
             f"-DMPRUN_PYTHON={harness.MPRUN_PYTHON}"]  # fmt: skip
    run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    said = " ".join((run.stdout + run.stderr).split())
    assert re.search(message, said), said
    if d3.startswith("bare"):
        assert run.returncode != 0
        return
    assert run.returncode == 0, said
    commands = (build / "build.ninja").read_text(encoding="utf-8")
    assert re.search(r"assemble\.py \S+/page_parts\.cc \S+/copyright \S+/LICENSE *$", commands, re.MULTILINE)
