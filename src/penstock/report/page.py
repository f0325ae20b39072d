"""A page as one HTML file that needs nothing else, without scripts or links; what it shows is escaped."""

from __future__ import annotations

import base64
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from penstock.errors import InputError
from penstock.report import text

MOST_ROWS = 500  # of a table
TEMPLATES = Path(__file__).parent / "templates"
FILTERS = ("causes", "count", "decimal", "duration", "milliseconds", "percent", "setting", "several")


def render(template: str, folder: Path = TEMPLATES, **values: object) -> str:
    """The page of a template, which lies in `folder` and may build on those of the reports."""
    environment = Environment(
        loader=FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({name: getattr(text, name) for name in FILTERS})
    environment.filters["data_url"] = lambda png: f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
    return environment.get_template(template).render(values, most=MOST_ROWS)


def write_page(path: Path, content: str) -> None:
    """Write a page to a file; folders above it are made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"report '{path}': cannot be written; {error.strerror or error}") from error
