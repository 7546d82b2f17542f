"""`cmake --install` to any prefix, and moved afterwards: mprun finds its files relative to itself."""
from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path

import pytest

import harness


@pytest.fixture(name="prefix")
def installed(mprun: Path, tmp_path: Path) -> Path:
    """An installation that was moved to another place after it was made."""
    first = tmp_path / "first prefix"
    command = ["cmake", "--install", str(mprun.parent.parent), "--prefix", str(first)]
    subprocess.run(command, check=True, capture_output=True)
    return first.rename(tmp_path / "moved prefix")


def test_an_installed_mprun_runs_a_job(prefix: Path, tmp_path: Path) -> None:
    script = tmp_path / "work.py"
    script.write_text("import mprun\n\ndef double(x):\n    return [mprun.__file__, 2 * x]\n")
    program = str(prefix / "bin" / "mprun")
    arguments = ["--python", harness.MPRUN_PYTHON, "--results", "-", "-n", "2", f"{script}:double", "1", "2"]
    run = subprocess.run([program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    values = [json.loads(line)["value"] for line in run.stdout.splitlines()]
    assert [value for _, value in values] == [2, 4]
    assert all(Path(module).is_relative_to(prefix) for module, _ in values)


def test_an_installed_mprun_writes_a_page(prefix: Path, tmp_path: Path) -> None:
    """Everything that a page consists of is in the program."""
    (tmp_path / "work.py").write_text("def double(x):\n    return 2 * x\n")
    program = str(prefix / "bin" / "mprun")
    for words in (["--python", harness.MPRUN_PYTHON, "-q", "--output", "out", "work.py:double", "1", "2"],
                  ["report", "--html", "page.html", "out"]):  # fmt: skip
        subprocess.run([program, *words], cwd=tmp_path, check=True, timeout=60)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    terms = (prefix / "share/doc/mprun/copyright").read_text(encoding="utf-8")
    assert "Apache License" in terms and "<h1>work</h1>" in page
    if "was built without d3" not in page:
        for text in (page, terms):
            assert "d3js.org" in text and "Redistribution and use in source and binary forms" in text


def test_an_installation_is_compiled(prefix: Path) -> None:
    """A user who cannot write there would compile it at every start of a worker."""
    sources = list((prefix / "lib/mprun/python").rglob("*.py"))
    assert len(sources) > 10
    for source in sources:
        assert Path(importlib.util.cache_from_source(source)).is_file(), source


def test_an_installation_has_schema_examples_and_manual(prefix: Path) -> None:
    for name in ("job.schema.json", "examples/digits/job.json"):
        assert (prefix / "share/mprun" / name).is_file(), name
    for name in ("man1/mprun.1", "man3/mprun-python.3", "man5/mprun-job.5"):
        assert (prefix / "share/man" / name).is_file(), name


def test_an_installed_mprun_explains_causes(prefix: Path) -> None:
    program = str(prefix / "bin" / "mprun")
    run = subprocess.run([program, "explain"], capture_output=True, text=True, check=True, timeout=60)
    pages = {page.stem: page for page in (prefix / "share/mprun/causes").iterdir()}
    assert [line.split()[0] for line in run.stdout.splitlines()] == sorted(pages)
    for page in pages.values():
        page.unlink()
    run = subprocess.run([program, "explain"], capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 125
    assert str(prefix / "share/mprun/causes") in run.stderr


def test_missing_files_are_reported(prefix: Path, tmp_path: Path) -> None:
    (prefix / "lib/mprun/python/bootstrap.py").unlink()
    (tmp_path / "work.py").write_text("def double(x):\n    return 2 * x\n")
    program = str(prefix / "bin" / "mprun")
    run = subprocess.run(
        [program, "--python", harness.MPRUN_PYTHON, "work.py:double", "1"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )
    assert run.returncode == 125
    assert "bootstrap.py" in run.stderr


def test_a_plain_configuration_is_the_program_alone(tmp_path: Path) -> None:
    """A user who names no preset gets no tests, and a warning of their compiler does not stop the build."""
    command = ["cmake", "-S", str(harness.ROOT), "-B", str(tmp_path), "-G", "Ninja",
               f"-DMPRUN_PYTHON={harness.MPRUN_PYTHON}"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    built = (tmp_path / "build.ninja").read_text(encoding="utf-8")
    assert "bin/mprun:" in built
    assert "unit_tests" not in built and "-Werror" not in built
