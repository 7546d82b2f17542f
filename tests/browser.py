"""Headless Chromium for tests of pages, by the DevTools protocol over a pair of pipes.

Needs Debian's `chromium` alone: no driver, no port, no Python package. `complaints` holds what the page writes to its
console and the errors that it throws, `requests` what it asks of the network.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--remote-debugging-pipe", "--no-sandbox", "--no-first-run", "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-breakpad", "--disable-extensions", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-zygote", "--password-store=basic", "--hide-scrollbars", "--force-device-scale-factor=1",
)  # fmt: skip
PATIENCE = 60  # seconds for one answer
KEYS = {"Tab": 9, "Enter": 13, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39}  # Windows key codes, for DevTools


class Browser:
    """One Chromium with one page."""

    def __init__(self, folder: Path) -> None:
        """Starts it; `folder` is for its profile."""
        assert PROGRAM is not None, "no Chromium: ask for PROGRAM first"
        child_reads, self._write = os.pipe()
        self._read, child_writes = os.pipe()
        environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
        # Chromium reads commands from descriptor 3 and answers on 4: ours must not be these.
        passed = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (child_reads, child_writes)]
        words = [PROGRAM, *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
        shell = f'exec "$@" 3<&{passed[0]} 4>&{passed[1]} {passed[0]}<&- {passed[1]}>&-'
        with open(folder / "chromium.log", "wb") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", shell, "bash", *words],
                pass_fds=passed, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        for fd in (child_reads, child_writes, *passed):
            os.close(fd)
        self._unread = b""
        self._number = 0
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self._ask("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """Ends it and waits until it has exited."""
        try:
            self._ask("Browser.close", {})
        except (OSError, EOFError):  # it ended before it could answer
            pass
        os.close(self._write)
        os.close(self._read)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    # --- the protocol ---

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Sends the page a command; returns the answer."""
        return self._ask(method, params, self._session)

    def _ask(self, method: str, params: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while True:
            answer = self._next(time.monotonic() + PATIENCE)
            if answer.get("id") != self._number:
                self._note(answer)
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            return dict(answer["result"])

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._unread:
            if not select.select([self._read], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"Chromium sent nothing for {PATIENCE} s")
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise EOFError("Chromium has ended")
            self._unread += piece
        message, self._unread = self._unread.split(b"\0", 1)
        return dict(json.loads(message))

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.complaints.append(f"console.{params['type']}: {params['args']}")
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(f"exception: {params['exceptionDetails']}")
        elif method == "Log.entryAdded":
            self.complaints.append(f"{params['entry']['level']}: {params['entry']['text']}")
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append(f"dialog: {params['message']}")
            raise AssertionError(f"the page opened a dialog: {params['message']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    # --- what tests do ---

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression[:500]}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = PATIENCE) -> Any:
        """Waits until an expression is true."""
        deadline = time.monotonic() + seconds
        while not (value := self.evaluate(expression)):
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {seconds} s in vain for {expression}\n{self.complaints}")
            time.sleep(0.02)
        return value

    def open(self, page: Path, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Loads a file in a window of that size and waits until the page reports that it is ready."""
        self.complaints.clear()
        self.requests.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=page.resolve().as_uri())
        self.wait("document.readyState === 'complete' && !!document.documentElement.dataset.ready")

    def key(self, key: str) -> None:
        """Presses and releases a key: a character, or one of KEYS."""
        code = KEYS.get(key, ord(key[0].upper()))
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        down = "keyDown" if text else "rawKeyDown"
        self.ask("Input.dispatchKeyEvent", type=down, key=key, text=text, windowsVirtualKeyCode=code)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """mouseMoved, mousePressed, mouseReleased or mouseWheel."""
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def place(self, selector: str) -> dict[str, float]:
        """Where an element is in the window: x, y, width, height. Scrolls to it first."""
        return dict(
            self.evaluate(
                f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
                "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
                "return {x: r.x, y: r.y, width: r.width, height: r.height}; })()"
            )
        )

    def screenshot(self, whole: bool = False) -> bytes:
        """A PNG of the window, or of the whole page."""
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(shot["data"])

    def until(self, act: Callable[[], object], condition: str) -> None:
        """Does something, then waits until the page shows it."""
        act()
        self.wait(condition)
