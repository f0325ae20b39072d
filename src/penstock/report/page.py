"""A whole page as one HTML file that needs nothing else, without scripts or links."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from penstock.errors import InputError
from penstock.report.markup import Markup, element


def page(title: str, *content: object, styles: tuple[str, ...] = ("style.css",)) -> str:
    """The page with its styles inside."""
    found = "".join(files("penstock.report").joinpath(name).read_text(encoding="utf-8") for name in styles)
    head = element(
        "head",
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        element("title", title),
        Markup(f"<style>\n{found}</style>"),
    )
    return f"<!doctype html>\n{element('html', head, element('body', element('main', *content)), lang='en')}\n"


def write_page(path: Path, content: str) -> None:
    """Write a page to a file; folders above it are made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"report '{path}': cannot be written; {error.strerror or error}") from error


def chips(facts: Mapping[str, object]) -> Markup:
    """Settings in a row; those that are None are left out."""
    shown = {name: value for name, value in facts.items() if value is not None}
    return element(
        "ul",
        *(element("li", element("b", name), " ", setting(value)) for name, value in shown.items()),
        class_="chips",
    )


def setting(value: object) -> str:
    """A setting as a person would write it.

    >>> setting({"clean": 2.50, "store": True}), setting([1, "a"])
    ('clean 2.5, store yes', '1, a')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {setting(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(setting, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
