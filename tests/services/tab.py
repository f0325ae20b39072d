"""A tab of a Chromium without a window, told what to do over a pipe: pages that live, clicks, keys, pictures."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ..waiting import LONG_S
from .browser import ALONE, program

# Chromium wants to read from 3 and to write to 4, whichever numbers the pipes have here.
_LAUNCH = """
import fcntl, os, sys
reads, writes = (fcntl.fcntl(int(one), fcntl.F_DUPFD, 10) for one in sys.argv[1:3])
os.dup2(reads, 3), os.dup2(writes, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


class PageLeftError(AssertionError):
    """The page went elsewhere before it had answered."""


class Tab:
    """One tab; open it with `with`."""

    def __init__(self, folder: Path, size: tuple[int, int] = (1280, 900), *, dark: bool = False) -> None:
        self._folder = folder
        self._size = size
        self._dark = dark
        self._number = 0
        self._left = b""

    def __enter__(self) -> Tab:
        reads, self._to = os.pipe()
        self._from, writes = os.pipe()
        command = [str(program()), *ALONE, "--remote-debugging-pipe", f"--user-data-dir={self._folder / 'tab'}"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(reads), str(writes), *command],
            pass_fds=(reads, writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        try:
            target = self._ask("Target.createTarget", url="about:blank")["targetId"]
            self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            self.look(self._size, dark=self._dark)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(LONG_S)
        os.close(self._to)
        os.close(self._from)

    def look(self, size: tuple[int, int], *, dark: bool = False) -> None:
        """Of what size the window is, and whether its owner likes it dark."""
        width, height = size
        phone = width < 600
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.do("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        """Go there, and wait until the page says that it is ready."""
        self.do("Page.navigate", url=url)
        self.until(f"location.href === {json.dumps(url)} && document.body?.dataset.ready === 'yes'")

    def value(self, script: str) -> Any:
        """What a JavaScript expression gives."""
        found = self.do("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, script: str, within_s: float = LONG_S) -> None:
        """Wait until an expression is true."""
        end_s = time.monotonic() + within_s
        while not self._holds(script):
            assert time.monotonic() < end_s, (
                f"not within {within_s:g} s: {script}; {self.value('document.body.innerText')}"
            )
            time.sleep(0.05)

    def _holds(self, script: str) -> bool:
        try:
            return bool(self.value(script))
        except PageLeftError:
            return False

    def press(self, key: str) -> None:
        """A key goes down and up."""
        for kind in ("keyDown", "keyUp"):
            self.do("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_CODES.get(key, 0))

    def picture(self) -> bytes:
        """The whole page, as PNG."""
        return base64.b64decode(
            self.do("Page.captureScreenshot", captureBeyondViewport=True, clip=self._whole())["data"]
        )

    def _whole(self) -> dict[str, float]:
        size = self.do("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    def do(self, method: str, **params: object) -> dict[str, Any]:
        """One command of the DevTools protocol to the page."""
        return self._ask(method, session=self._session, **params)

    def _ask(self, method: str, session: str | None = None, **params: object) -> dict[str, Any]:
        self._number += 1
        asked = {"id": self._number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._to, json.dumps(asked).encode() + b"\0")
        while (told := self._next()).get("id") != self._number:
            pass
        if "error" in told:
            raise (PageLeftError if "navigated" in str(told["error"]) else AssertionError)(told)
        result: dict[str, Any] = told["result"]
        return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            more = os.read(self._from, 1 << 20)
            assert more, "the browser has ended"
            self._left += more
        told, _, self._left = self._left.partition(b"\0")
        found: dict[str, Any] = json.loads(told)
        return found


_CODES = {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "Enter": 13, "Tab": 9}
