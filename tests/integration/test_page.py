"""mprun report --html, looked at in a real headless Chromium."""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import browser as chromium
import harness
from browser import Browser

pytestmark = pytest.mark.xdist_group("page")  # its setup is done once

JOB = """
import os, time

def run(number):
    if number == 25 and not os.path.exists("died"):
        open("died", "w").close()
        time.sleep(0.05)  # work enough to be seen in the timeline
        os.kill(os.getpid(), 9)
    if number % 30 == 13:
        raise ValueError(f"no {number}")
    time.sleep(number % 7 / 1000)
    return number
"""
# The child's feeder thread waits for a reader of the queue; the worker waits for the child.
HANG = """
import multiprocessing

def run(number):
    if number == 2:
        queue = multiprocessing.Queue()
        child = multiprocessing.Process(target=queue.put, args=(b"x" * 10_000_000,))
        child.start()
        child.join()
    return number
"""
HOSTILE = "</script></title><img src=x onerror=document.title='hacked'><script>document.title='hacked'</script>"
HOSTILE_JOB = f"""
import os, warnings
TEXT = {HOSTILE!r}
Hostile = type("Hostile" + TEXT, (Exception,), {{}})

def run(number):
    if number == 1:
        raise Hostile(TEXT)
    if number == 2 and not os.path.exists("died"):
        open("died", "w").close()
        os._exit(3)
    return TEXT
"""
SLOW_START = """
import time

time.sleep(0.3)

def setup():
    time.sleep(0.3)

def run(number):
    return number
"""
ATTEMPTS = 201  # of the 200 tasks of JOB: one dies once

MakePage = Callable[..., Path]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One Chromium for all tests here."""
    if chromium.PROGRAM is None:
        pytest.skip("there is no Chromium (Debian: chromium)")
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()
    harness.wait_until(lambda: not harness.living_descendants(), what="Chromium to end")


@pytest.fixture
def bystanders(browser: Browser) -> frozenset[int]:
    """Chromium, and those of its processes that have left it."""
    return frozenset({browser.pid, *(p.pid for p in harness.descendants(os.getpid()) if p.ppid == os.getpid())})


@pytest.fixture(scope="module")
def make_page(mprun: Path, tmp_path_factory: pytest.TempPathFactory) -> MakePage:
    """make_page(name, spec, code, ...) -> the page of a job that was run; once for each name."""
    made: dict[str, Path] = {}

    def make(
        name: str, spec: dict[str, Any], code: str, *, job: str = "job", returncode: int = 0,
        usage: Callable[[harness.Run], str] | None = None,
    ) -> Path:  # fmt: skip
        if name in made:
            return made[name]
        runner = harness.Runner(mprun, tmp_path_factory.mktemp(name))
        try:
            path = runner.folder / f"{job}.json"
            path.write_text(json.dumps({"version": 1, "script": f"{job}.py:run", **spec}), encoding="utf-8")
            run = runner.start_job(path, scripts={f"{job}.py": code}).wait().check(returncode)
            (run.run_dir / "usage.jsonl").unlink(missing_ok=True)
            if usage:
                (run.run_dir / "usage.jsonl").write_text(usage(run), encoding="utf-8")
            page = runner.folder / "page.html"
            runner.start("report", "--html", page, run.run_dir, output=False).wait().check()
        finally:
            runner.finish()
        if "was built without d3" in page.read_text(encoding="utf-8"):
            pytest.skip("this mprun was built without d3 (Debian: node-d3)")
        made[name] = page
        return page

    return make


def usage_of(run: harness.Run) -> str:
    """Looks at two workers, ten times a second since mprun began, and a line that was torn."""
    started = run.summary()["started"].replace("Z", "+00:00")
    begin = datetime.datetime.fromisoformat(started).timestamp()
    looks = [
        {"at": begin + look / 10, "workers": [[0, (look - 1) / 20, 50 << 20], [1, (look - 1) / 10, look << 20]]}
        for look in range(1, 21)
    ]
    return "".join(json.dumps(look) + "\n" for look in looks) + '{"at": 1'


@pytest.fixture
def page(make_page: MakePage) -> Path:
    spec = {"inputs": {"range": 200}, "processes": 2, "chunk_size": 1}
    return make_page("small", spec, JOB, returncode=1, usage=usage_of)


def shown(browser: Browser) -> tuple[float, float]:
    """The part of time in the timeline, in seconds."""
    begin, end = browser.evaluate("[range.dataset.begin, range.dataset.end]")
    return float(begin), float(end)


def text(browser: Browser, selector: str) -> str:
    return str(browser.evaluate(f"document.querySelector({json.dumps(selector)}).textContent"))


def tab_to(browser: Browser, name: str) -> None:
    """Goes to an element using only the Tab key."""
    browser.evaluate("document.activeElement.blur(), window.scrollTo(0, 0)")
    for _ in range(60):
        browser.key("Tab")
        if browser.evaluate("document.activeElement.id") == name:
            return
    raise AssertionError(f"#{name} cannot be reached by Tab")


def colours_in_timeline(browser: Browser) -> dict[str, int]:
    """The number of timeline pixels of each colour."""
    return dict(
        browser.evaluate(
            "(() => { const seen = document.getElementById('tasks'), found = {};"
            "const c = new OffscreenCanvas(seen.width, seen.height), o = c.getContext('2d', {willReadFrequently: true});"
            "o.drawImage(seen, 0, 0); const d = o.getImageData(0, 0, c.width, c.height).data;"
            "for (let i = 0; i < d.length; i += 4) { const k = d.slice(i, i + 3).join(' ');"
            "found[k] = (found[k] || 0) + 1; } return found; })()"
        )
    )


def colour(browser: Browser, name: str) -> str:
    """A colour of page.css as the timeline's pixels have it: "58 120 173"."""
    found = browser.evaluate(
        f"(() => {{ const e = document.createElement('i'); e.style.color = 'var(--{name})'; document.body.append(e);"
        "const c = getComputedStyle(e).color; e.remove(); return c; })()"
    )
    return " ".join(re.findall(r"\d+", found)[:3])


def check_silence(browser: Browser, page: Path) -> None:
    """Nothing was written to the console, and only the file itself was requested."""
    assert browser.complaints == []
    assert browser.requests == [page.resolve().as_uri()]


def test_it_renders(browser: Browser, page: Path) -> None:
    browser.open(page)
    check_silence(browser, page)
    assert text(browser, "h1") == "job"
    assert "194 ok" not in text(browser, ".verdict") and "Exit code 1" in text(browser, ".verdict")
    colours = colours_in_timeline(browser)
    for name in ("ok", "failed", "retried"):
        assert colours.get(colour(browser, name), 0) > 20, (name, colours)
    for name in ("durations", "queue"):
        assert browser.evaluate(f"document.getElementById('{name}').dataset.counted") == str(ATTEMPTS)
        assert browser.evaluate(f"document.querySelectorAll('#{name} .bar').length") > 5
    links = browser.evaluate("[...document.querySelectorAll('nav a')].map((a) => a.textContent)")
    assert links[0] == "Timeline" and "Failures by cause 7" in links and "Processes that died 1" in links
    assert "Redistribution and use in source and binary forms" in text(browser, "footer")


def test_usage_is_drawn_where_it_was_recorded(browser: Browser, page: Path, make_page: MakePage) -> None:
    browser.open(page)
    paths = browser.evaluate(
        "['cpu-total', 'cpu-each', 'memory-total', 'memory-each'].map((id) =>"
        "document.getElementById(id).querySelectorAll('.total, .each').length)"
    )
    assert paths == [1, 2, 1, 2]
    assert "the most was 1.5 CPUs" in browser.evaluate("document.getElementById('cpu-total').ariaLabel")
    assert "the most was 70 MiB" in browser.evaluate("document.getElementById('memory-total').ariaLabel")
    browser.open(make_page("bare", {"inputs": {"range": 3}, "processes": 1}, "def run(x):\n    return x\n"))
    assert "Not recorded" in text(browser, "#usage")


def test_starts_are_drawn(browser: Browser, make_page: MakePage) -> None:
    """In rows of their own where a host imports, else before the tasks of their worker; and old runs have none."""
    page = make_page("starts", {"inputs": {"range": 3}, "processes": 1, "setup": "setup"}, SLOW_START)
    browser.open(page)
    check_silence(browser, page)
    assert colours_in_timeline(browser).get(colour(browser, "phase"), 0) > 1000
    assert "start of a worker or host" in text(browser, "#legend")
    seen = set()
    place = browser.place("#tasks")
    names = 76  # pixels, of the workers
    for part in range(40):  # the host is the first row
        x = place["x"] + names + (place["width"] - names) * part / 40
        browser.mouse("mouseMoved", x, place["y"] + 24 + 12)
        seen.add(text(browser, "#tip").split(", begun")[0])
    assert {"importing job.py\nhost", "setup()\nhost"} <= seen
    old = page.with_name("old.html")
    old.write_text(re.sub(r'"phases":\[\[.*?\]\]', '"phases":[]', page.read_text(encoding="utf-8")), encoding="utf-8")
    browser.open(old)
    check_silence(browser, old)
    assert colours_in_timeline(browser).get(colour(browser, "phase"), 0) == 0
    assert "start of" not in text(browser, "#legend")


def test_zoom_and_pan(browser: Browser, page: Path) -> None:
    browser.open(page)
    whole = shown(browser)
    assert whole[0] == 0
    place = browser.place("#tasks")
    x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-400)
    browser.wait(f"range.dataset.end < {whole[1] * 0.9}")
    wheeled = shown(browser)
    assert wheeled[0] > 0
    browser.mouse("mousePressed", x, y, button="left", clickCount=1)
    browser.mouse("mouseMoved", x + 100, y, button="left", buttons=1)
    browser.mouse("mouseReleased", x + 100, y, button="left", clickCount=1)
    browser.wait(f"range.dataset.begin < {wheeled[0] - 1e-9}")
    dragged = shown(browser)
    browser.evaluate("new Promise((resolve) => setTimeout(resolve, 0))")  # d3 keeps the drag's own click to itself
    assert dragged[1] - dragged[0] == pytest.approx(wheeled[1] - wheeled[0])
    browser.evaluate("document.getElementById('zoom-in').click()")
    assert shown(browser)[1] - shown(browser)[0] == pytest.approx((dragged[1] - dragged[0]) / 2)
    axis = browser.evaluate("document.querySelector('#cpu-total .tick text').textContent")
    browser.evaluate("document.getElementById('zoom-out').click()")
    browser.evaluate("document.getElementById('zoom-all').click()")
    assert shown(browser) == pytest.approx(whole)
    assert axis != browser.evaluate("document.querySelector('#cpu-total .tick text').textContent")
    check_silence(browser, page)


def test_a_task_is_found_with_the_keyboard_alone(browser: Browser, page: Path) -> None:
    browser.open(page)
    tab_to(browser, "task")
    assert colours_in_timeline(browser).get(colour(browser, "mark"), 0) == 0
    for key in ("2", "5", "Enter"):
        browser.key(key)
    assert text(browser, "#found").startswith("Task 25, attempt 2: ok; worker ")
    browser.key("Enter")
    assert re.match(r"Task 25, attempt 1: failed and tried again; .*signal 9", text(browser, "#found"))
    begin, end = shown(browser)
    assert begin < float(browser.evaluate("found.dataset.middle")) < end
    assert colours_in_timeline(browser).get(colour(browser, "mark"), 0) > 50
    for key in ("9", "9", "9", "Enter"):
        browser.key(key)
    assert text(browser, "#found") == "Task 25999 has no attempt here."
    browser.evaluate("task.value = 'x'")
    browser.key("Enter")
    assert "by its number" in text(browser, "#found")
    check_silence(browser, page)


def test_zoom_with_the_keyboard_alone(browser: Browser, page: Path) -> None:
    browser.open(page)
    whole = shown(browser)
    tab_to(browser, "chart")
    browser.key("+")
    zoomed = shown(browser)
    assert zoomed[1] - zoomed[0] == pytest.approx((whole[1] - whole[0]) / 2)
    browser.key("ArrowRight")
    assert shown(browser)[0] > zoomed[0]
    browser.key("ArrowLeft")
    assert shown(browser) == pytest.approx(zoomed)
    browser.key("-")
    assert shown(browser) == pytest.approx(whole)
    browser.key("+")
    browser.key("0")
    assert shown(browser) == pytest.approx(whole)
    bad = []
    for _ in range(9):
        browser.key("n")
        bad.append(int(re.match(r"Task (\d+)", text(browser, "#found"))[1]))  # type: ignore[index]
    assert set(bad[:8]) == {13, 25, 43, 73, 103, 133, 163, 193} and bad[8] == bad[0]
    tab_to(browser, "zoom-in")
    before = shown(browser)
    browser.key("Enter")
    assert shown(browser)[1] - shown(browser)[0] < before[1] - before[0]


def test_tables_lead_to_the_timeline(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.evaluate("document.querySelector('#retries .task').click()")
    assert text(browser, "#found").startswith("Task 25, attempt 1: failed and tried again")
    assert browser.evaluate("document.activeElement.id") == "chart"


def test_a_block_shows_its_task(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.evaluate("task.value = 43, document.querySelector('#search button').click()")
    place = browser.evaluate(
        "(() => { const c = tasks.getBoundingClientRect(); return [c.left, c.top, c.width,"
        "+range.dataset.begin, +range.dataset.end, +found.dataset.middle, +found.dataset.row]; })()"
    )
    left, top, width, begin, end, middle, row = place
    names = 76  # pixels, of the workers
    x = left + names + (width - names) * (middle - begin) / (end - begin)
    y = top + 24 + 26 * row + 12
    browser.until(lambda: browser.mouse("mouseMoved", x, y), "!tip.hidden")
    assert text(browser, "#tip").startswith("Task 43, attempt 1: failed\nworker ")
    assert "ValueError: no 43" in text(browser, "#tip")


def test_dark_mode(browser: Browser, page: Path) -> None:
    def lightness() -> int:
        return sum(map(int, re.findall(r"\d+", browser.evaluate("getComputedStyle(document.body).backgroundColor"))))

    browser.open(page)
    light, blocks = lightness(), colour(browser, "ok")
    assert light > 600 and colours_in_timeline(browser)[blocks] > 20
    browser.open(page, dark=True)
    dark, dark_blocks = lightness(), colour(browser, "ok")
    assert dark < 150 and dark_blocks != blocks and colours_in_timeline(browser)[dark_blocks] > 20
    tab_to(browser, "theme")
    browser.key("Enter")
    assert text(browser, "#theme") == "Theme: light" and lightness() == light
    assert colours_in_timeline(browser)[blocks] > 20
    browser.key("Enter")
    assert text(browser, "#theme") == "Theme: dark" and lightness() == dark
    check_silence(browser, page)


def test_a_hang_is_a_graph(browser: Browser, make_page: MakePage) -> None:
    spec = {"inputs": {"range": 4}, "processes": 1, "retries": {"on_hang": 0}}
    page = make_page("hang", spec, HANG, returncode=1)
    browser.open(page)
    check_silence(browser, page)
    report = json.loads((page.parent / "out/hangs/1.json").read_text(encoding="utf-8"))
    assert report["cause"]["id"] == "queue-not-drained"
    hang = text(browser, "#hangs")
    for words in ("deadlock", report["cause"]["explanation"], report["cause"]["fix"], "multiprocessing"):
        assert words in hang
    boxes = browser.evaluate("[...document.querySelectorAll('#hangs .box')].map((g) => +g.dataset.pid)")
    assert set(boxes) >= {process["pid"] for process in report["processes"]}
    edges = browser.evaluate(
        "[...document.querySelectorAll('#hangs .edge')].map((g) => [+g.dataset.from, +g.dataset.to])"
    )
    assert {tuple(edge) for edge in edges} == {(edge["from"], edge["to"]) for edge in report["edges"]}
    assert len(edges) >= 2
    label = browser.evaluate("document.querySelector('#hangs svg').ariaLabel")
    assert f"{edges[0][0]} waits for {edges[0][1]}: " in label
    assert (page.parent / "out/hangs/1.txt").read_text(encoding="utf-8").splitlines()[0] in hang
    overflowing = browser.evaluate(
        "[...document.querySelectorAll('#hangs .box')].filter((g) => [...g.querySelectorAll('text')].some((t) =>"
        "t.getBBox().x + t.getBBox().width > g.querySelector('rect').getBBox().width)).length"
    )
    assert overflowing == 0


def test_nothing_of_the_job_executes(browser: Browser, make_page: MakePage) -> None:
    spec = {"inputs": {"range": 3}, "processes": 1}
    job = HOSTILE.replace("/", "")  # it is named after the file of its spec
    page = make_page("hostile", spec, HOSTILE_JOB, job=job, returncode=1)
    browser.open(page)
    check_silence(browser, page)
    assert browser.evaluate("document.title").endswith(": 2 ok, 1 failed")
    assert browser.evaluate("document.images.length") == 0
    assert browser.evaluate("document.scripts.length") == 3
    assert "<img src=x onerror" in text(browser, "#failures")
    browser.evaluate("document.querySelector('#next-bad').click()")
    browser.evaluate("document.querySelector('#failures .task').click()")
    assert browser.evaluate("document.images.length") == 0 and browser.complaints == []


def test_its_policy_forbids_network_and_foreign_scripts(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', (e) => e.name)") == "TypeError"
    image = '<img src="http://127.0.0.1:9/" onerror="hacked = 1">'
    browser.evaluate(f"document.body.insertAdjacentHTML('beforeend', {json.dumps(image)})")
    script = "Object.assign(document.createElement('script'), {textContent: 'hacked = 1'})"
    browser.evaluate(f"document.body.append({script})")
    assert browser.evaluate("typeof hacked") == "undefined"
    assert len([complaint for complaint in browser.complaints if "Content Security Policy" in complaint]) >= 3


def test_100_000_tasks(browser: Browser, make_page: MakePage) -> None:
    spec = {"inputs": {"range": 100_000}, "processes": 2}
    page = make_page("many", spec, "def run(number):\n    return number\n")
    assert page.stat().st_size < 3_000_000
    browser.open(page)
    check_silence(browser, page)
    assert browser.evaluate("document.getElementById('durations').dataset.counted") == "100000"
    whole = shown(browser)
    browser.evaluate("task.value = 77777, document.querySelector('#search button').click()")
    assert text(browser, "#found").startswith("Task 77777, attempt 1: ok; worker ")
    begin, end = shown(browser)
    assert begin < float(browser.evaluate("found.dataset.middle")) < end and end - begin < whole[1] / 2


@pytest.mark.parametrize("width", [400, 1280])
def test_no_element_overflows(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width=width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_every_control_has_a_name(browser: Browser, page: Path) -> None:
    """As a screen reader has it."""
    browser.open(page)
    nodes = browser.ask("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "textbox", "combobox", "link", "image", "img", "application", "region", "meter"}
    named = {"button": 0, "textbox": 0, "application": 0, "image": 0}
    for node in nodes:
        role = node.get("role", {}).get("value")
        if node.get("ignored") or role not in roles:
            continue
        assert node.get("name", {}).get("value", "").strip(), node
        if role in named:
            named[role] += 1
    assert all(named.values()), named


def test_it_prints(browser: Browser, page: Path) -> None:
    browser.open(page, dark=True)
    assert len(browser.ask("Page.printToPDF")["data"]) > 10_000
    check_silence(browser, page)
