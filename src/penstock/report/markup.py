"""Small helpers for HTML: everything that goes in is escaped, and numbers read well."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence

from penstock.report.data import finite

ABSENT = "–"


class Markup(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def text(value: object) -> str:
    """A value as HTML.

    >>> text("a < b"), text(Markup("<b>1</b>"))
    ('a &lt; b', '<b>1</b>')
    """
    return str(value) if isinstance(value, Markup) else html.escape(str(value))


def element(tag: str, *content: object, **attributes: str) -> Markup:
    """An element; `class_` is its class.

    >>> element("p", "a < ", element("b", "c"), class_="note")
    '<p class="note">a &lt; <b>c</b></p>'
    """
    given = "".join(f' {name.rstrip("_")}="{html.escape(value)}"' for name, value in attributes.items())
    return Markup(f"<{tag}{given}>{''.join(text(part) for part in content)}</{tag}>")


def section(title: str, *content: object) -> Markup:
    """A part of the page under a heading."""
    return element("section", element("h2", title), *content)


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Iterable[int] = ()) -> Markup:
    """A table that scrolls by itself where it is too large; the columns `numbers` stand to the right."""
    right = set(numbers)

    def cells(tag: str, values: Sequence[object]) -> Markup:
        found = (element(tag, value, **({"class_": "n"} if i in right else {})) for i, value in enumerate(values))
        return element("tr", *found)

    body = element("tbody", *(cells("td", row) for row in rows))
    return element("div", element("table", element("thead", cells("th", head)), body), class_="scroll")


def card(label: str, value: str, detail: str = "") -> Markup:
    """One key figure."""
    parts = [element("dt", label), element("dd", value, class_="value")]
    if detail:
        parts.append(element("dd", detail, class_="detail"))
    return element("div", *parts, class_="card")


def image(png: bytes, alt: str, caption: str) -> Markup:
    """A picture inside the page itself."""
    content = base64.b64encode(png).decode("ascii")
    shown = Markup(f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{content}">')
    return element("figure", shown, element("figcaption", caption))


def swatch(colour: str, name: str) -> Markup:
    """An operator's name with its colour."""
    return element("span", element("i", style=f"background:{colour}"), element("span", name), class_="operator")


def count(value: object) -> str:
    """A number of things.

    >>> count(1234567), count(None), count(12.5)
    ('1,234,567', '–', '12.5')
    """
    number = finite(value)
    return ABSENT if number is None else f"{number:,.0f}" if number == int(number) else f"{number:,.1f}"


def several(number: int, thing: str) -> str:
    """A number with what is counted.

    >>> several(1, "interval"), several(1200, "interval")
    ('1 interval', '1,200 intervals')
    """
    return f"{count(number)} {thing}{'' if number == 1 else 's'}"


def decimal(value: object, digits: int) -> str:
    """A number with so many digits after the point.

    >>> decimal(0.56170, 4), decimal(float("nan"), 4), decimal(-0.125, 2)
    ('0.5617', '–', '−0.12')
    """
    number = finite(value)
    return ABSENT if number is None else f"{number:,.{digits}f}".replace("-", "−")


def percent(value: object) -> str:
    """A share in per cent.

    >>> percent(0.5617), percent(0.99994), percent(None)
    ('56.2 %', '99.99 %', '–')
    """
    number = finite(value)
    if number is None:
        return ABSENT
    return f"{decimal(number * 100, 2 if 0.99 <= number < 1 else 1)} %"


def milliseconds(value: object) -> str:
    """A short time.

    >>> milliseconds(0.8), milliseconds(219.4), milliseconds(2098.91), milliseconds(196963)
    ('0.80 ms', '219 ms', '2.10 s', '197 s')
    """
    number = finite(value)
    if number is None:
        return ABSENT
    size, unit = (number, "ms") if number < 1000 else (number / 1000, "s")
    return f"{decimal(size, 2 if size < 10 else 1 if size < 100 else 0)} {unit}"


def duration(value: object) -> str:
    """A time since the start, or the length of a run.

    >>> duration(7.5), duration(125), duration(7384), duration(None)
    ('7.5 s', '2 min 05 s', '2 h 03 min', '–')
    """
    number = finite(value)
    if number is None:
        return ABSENT
    if number < 60:
        return f"{decimal(number, 1)} s"
    minutes, seconds = divmod(round(number), 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
