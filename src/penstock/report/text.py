"""Numbers, times and settings as people read them; what is not known is a dash."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.common.checks import is_number
from penstock.workload import DAY_S

ABSENT = "–"
NO_BREAK = "\N{NO-BREAK SPACE}"


def decimal(value: object, digits: int) -> str:
    """A number with so many digits after the point.

    >>> decimal(0.56170, 4), decimal(float("nan"), 4), decimal(-0.125, 2)
    ('0.5617', '–', '−0.12')
    """
    return f"{value:,.{digits}f}".replace("-", "−") if is_number(value) else ABSENT


def count(value: object) -> str:
    """A number of things, rounded.

    >>> count(1234567), count(None), count(12.7)
    ('1,234,567', '–', '13')
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
    """A share in per cent: exact about zero, and fine near none and all.

    >>> percent(0.5617), percent(0.99994), percent(0.00997), percent(0.0), percent(0.00001), percent(None)
    ('56.2 %', '99.99 %', '1.00 %', '0 %', '<0.01 %', '–')
    """
    if not is_number(value) or value == 0:
        return ABSENT if not is_number(value) else "0 %"
    if 0 < value < 0.0001:
        return "<0.01 %"
    return f"{decimal(100 * value, 2 if 0 < value < 0.02 or 0.99 <= value < 1 else 1)} %"


def milliseconds(value: object) -> str:
    """A short time.

    >>> milliseconds(0.8), milliseconds(219.4), milliseconds(2098.91), milliseconds(196963)
    ('0.80 ms', '219 ms', '2.10 s', '197 s')
    """
    if not is_number(value):
        return ABSENT
    size, unit = (value, "ms") if value < 1000 else (value / 1000, "s")
    return f"{decimal(size, 2 if size < 10 else 1 if size < 100 else 0)} {unit}"


def duration(value: object) -> str:
    """A time since the start, or how long something took; in days where there are many.

    >>> duration(7.5), duration(125), duration(7384), duration(400000), duration(5270400), duration(None)
    ('7.5 s', '2 min 05 s', '2 h 03 min', '4.6 days', '61 days', '–')
    """
    if not is_number(value):
        return ABSENT
    if value < 60:
        return f"{decimal(value, 1)} s"
    if value >= 2 * DAY_S:
        return f"{value / DAY_S:,.1f}".removesuffix(".0") + " days"
    minutes, seconds = divmod(round(value), 60)
    return f"{minutes} min {seconds:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def causes(dropped: Mapping[str, int] | None) -> str:
    r"""Events dropped, by cause.

    >>> causes({"t_out": 1200, "q_size": 0}), causes({})
    ('1,200\xa0t_out', '0')
    """
    return ", ".join(f"{count(number)}{NO_BREAK}{cause}" for cause, number in (dropped or {}).items() if number) or "0"


def setting(value: object) -> str:
    """A setting as a person would write it.

    >>> setting({"clean": 2.50, "store": True}), setting([1, "a"])
    ('clean 2.5, store yes', '1, a')
    """
    match value:
        case Mapping():
            return ", ".join(f"{name} {setting(one)}" for name, one in value.items())
        case list() | tuple():
            return ", ".join(map(setting, value))
        case bool():
            return "yes" if value else "no"
        case _:
            return f"{value:g}" if isinstance(value, float) else str(value)
