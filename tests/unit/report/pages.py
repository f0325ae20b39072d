"""Pages as a reader sees them: their elements, and their words."""

from __future__ import annotations

import html
import io
import re
from html.parser import HTMLParser

from matplotlib.image import imread

from penstock.report.draw import WIDTH_IN


class Elements(HTMLParser):
    """Collects the elements of a page, and fails where they are not closed in order."""

    def __init__(self, page):
        super().__init__()
        self.found, self.open = [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def words(page):
    """What is to be read, without styles and soft hyphens."""
    found = re.sub(r"<[^>]+>", " ", re.sub(r"<style>.*</style>", "", page, flags=re.DOTALL))
    found = html.unescape(found).replace("\N{SOFT HYPHEN}", "")
    return re.sub(r"\s+([,.:])", r"\1", re.sub(r"\s+", " ", found))


def section(page, title):
    """One part of a page, by its heading; None where it has none."""
    parts = re.findall(r"<section>.*?</section>", page, flags=re.DOTALL)
    return next((part for part in parts if f"<h2>{title}</h2>" in part), None)


def drawn(png):
    """The height of a plot in pixels; fails where it is no picture of sane size with something on white."""
    pixels = imread(io.BytesIO(png), format="png")
    assert pixels.shape[1] == WIDTH_IN * 200
    assert len(png) < 800_000
    assert pixels[..., :3].min() < 0.6 < pixels[0, 0, :3].min()
    return pixels.shape[0]
