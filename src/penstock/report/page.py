"""A page as one HTML file that needs nothing else, without scripts or links; what it shows is escaped."""

from __future__ import annotations

import base64
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from penstock.errors import InputError
from penstock.report import text

MOST_ROWS = 500  # of a table
TEMPLATES = Path(__file__).parent / "templates"
FILTERS = (
    *(text.causes, text.count, text.decimal, text.duration, text.figure, text.late_share, text.milliseconds),
    *(text.percent, text.setting, text.several, text.spans, text.whole),
)


def render(template: str, folder: Path = TEMPLATES, **values: object) -> str:
    """The page of a template, which lies in `folder` and may build on those of the reports."""
    environment = Environment(
        loader=FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({one.__name__: one for one in FILTERS}, data_url=_data_url)
    return environment.get_template(template).render(values)


def write_page(path: Path, content: str) -> None:
    """Write a page to a file; folders above it are made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"report '{path}': cannot be written; {error.strerror or error}") from error


def _data_url(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
