"""Numbers, times and settings as people read them; what is not known is a dash."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import groupby
from numbers import Real

ABSENT = "–"
DAY_S = 86400.0
NO_BREAK = "\N{NO-BREAK SPACE}"


def finite(value: object) -> float | None:
    """A value as a number; None if it is none, or not finite.

    >>> finite(3), finite(float("inf")), finite("3"), finite(None), finite(True)
    (3.0, None, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        return None
    return float(value)


def decimal(value: object, digits: int) -> str:
    """A number with so many digits after the point.

    >>> decimal(0.56170, 4), decimal(float("nan"), 4), decimal(-0.125, 2)
    ('0.5617', '–', '−0.12')
    """
    number = finite(value)
    return ABSENT if number is None else f"{number:,.{digits}f}".replace("-", "−")


def count(value: object) -> str:
    """A number of things.

    >>> count(1234567), count(None), count(12.5)
    ('1,234,567', '–', '12.5')
    """
    number = finite(value)
    return ABSENT if number is None else decimal(number, 0 if number == int(number) else 1)


def whole(value: object) -> str:
    """A number, rounded.

    >>> whole(78230.4), whole(None)
    ('78,230', '–')
    """
    return decimal(value, 0)


def several(number: float, thing: str) -> str:
    """A number with what is counted.

    >>> several(1, "interval"), several(1200, "interval")
    ('1 interval', '1,200 intervals')
    """
    return f"{count(number)} {thing}{'' if number == 1 else 's'}"


def figure(value: float) -> str:
    """A number with about four digits.

    >>> figure(2.5412), figure(0.0831), figure(7767.47), figure(float("nan"))
    ('2.54', '0.083', '7,767', '–')
    """
    size = abs(value)
    return decimal(value, 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 0.1 or size == 0 else 3)


def percent(value: object) -> str:
    """A share in per cent.

    >>> percent(0.5617), percent(0.99994), percent(None)
    ('56.2 %', '99.99 %', '–')
    """
    number = finite(value)
    return ABSENT if number is None else f"{decimal(number * 100, 2 if 0.99 <= number < 1 else 1)} %"


def late_share(value: object) -> str:
    """A share of late events: exact about zero, and fine around the target.

    >>> late_share(0.0), late_share(0.00001), late_share(0.00997), late_share(0.81836), late_share(None)
    ('0 %', '<0.01 %', '1.00 %', '81.8 %', '–')
    """
    number = finite(value)
    if number is None:
        return ABSENT
    if number == 0:
        return "0 %"
    return "<0.01 %" if number < 0.0001 else f"{decimal(100 * number, 2 if number < 0.1 else 1)} %"


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
    """A time since the start, or how long something took; in days where there are many.

    >>> duration(7.5), duration(125), duration(7384), duration(400000), duration(5270400), duration(None)
    ('7.5 s', '2 min 05 s', '2 h 03 min', '4.6 days', '61 days', '–')
    """
    number = finite(value)
    if number is None:
        return ABSENT
    if number < 60:
        return f"{decimal(number, 1)} s"
    if number >= 2 * DAY_S:
        return f"{number / DAY_S:,.1f}".removesuffix(".0") + " days"
    minutes, seconds = divmod(round(number), 60)
    return f"{minutes} min {seconds:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def causes(dropped: Mapping[str, int] | None) -> str:
    r"""Events dropped, by cause.

    >>> causes({"t_out": 1200, "q_size": 0}), causes({})
    ('1,200\xa0t_out', '0')
    """
    return ", ".join(f"{count(number)}{NO_BREAK}{cause}" for cause, number in (dropped or {}).items() if number) or "0"


def spans(numbers: Iterable[int]) -> str:
    """Interval numbers, those in a row as a span.

    >>> spans([3, 4, 5, 9]), spans([1, 3, 5, 7, 9])
    ('3–5, 9', '1, 3, 5, … (5 intervals)')
    """
    ordered = sorted(set(numbers))
    groups = [[n for _, n in group] for _, group in groupby(enumerate(ordered), key=lambda pair: pair[1] - pair[0])]
    words = [str(group[0]) if len(group) == 1 else f"{group[0]}–{group[-1]}" for group in groups]
    return ", ".join(words) if len(words) <= 3 else f"{', '.join(words[:3])}, … ({len(ordered)} intervals)"


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
