"""The page of `penstock report`, as a browser shows it."""

from __future__ import annotations

import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from ..services.browser import Browser


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """The report of a simulated run."""
    simulate = ["simulate", "twitter", "--rate", "60", "--duration", "300", "--td", "30", "--store", "run.db"]
    for command in (simulate, ["report", "run.db", "--html", "page.html"]):
        subprocess.run([sys.executable, "-m", "penstock.cli", *command], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "page.html"


def test_a_browser_shows_the_report(page: Path, browser: Browser) -> None:
    shown = browser.text(page)
    assert "</html>" in shown
    assert all(operator in shown for operator in ("clean", "classify", "author", "store"))
    picture = Image.open(BytesIO(browser.picture(page))).convert("L")
    darkest, lightest = picture.getextrema()
    assert lightest - darkest > 150, "ink on paper"
    inked = sum(count for shade, count in enumerate(picture.histogram()) if abs(shade - picture.getpixel((0, 0))) > 60)
    assert inked > 0.01 * picture.width * picture.height, "more than a few words of it"
