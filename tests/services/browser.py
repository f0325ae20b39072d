"""A Chromium without a window that opens pages from files, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from ..waiting import LONG_S

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
ALONE = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"]
ALONE += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]


def program() -> str | None:
    """The program, if it is installed."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """Each page is opened by a new process with an empty profile."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def text(self, page: Path) -> str:
        """What the page has become once its scripts have run, as HTML."""
        return self._run(page, "--dump-dom").decode()

    def picture(self, page: Path, size: tuple[int, int] = (1200, 2000)) -> bytes:
        """How it looks, as PNG."""
        file = self._folder / "page.png"
        self._run(page, f"--screenshot={file}", f"--window-size={size[0]},{size[1]}")
        return file.read_bytes()

    def _run(self, page: Path, *what: str) -> bytes:
        profile = self._folder / "profile"
        shutil.rmtree(profile, ignore_errors=True)
        command = [str(program()), *ALONE, f"--user-data-dir={profile}", *what, page.resolve().as_uri()]
        return subprocess.run(command, check=True, capture_output=True, timeout=LONG_S, cwd=self._folder).stdout
