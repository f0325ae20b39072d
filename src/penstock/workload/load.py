"""Traces from CSV files, plain or compressed: one row per step, `time_s,rate` or `date,rate`."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from penstock.errors import InputError
from penstock.workload._rules import FloatArray
from penstock.workload.data import plain_name, read_bytes
from penstock.workload.trace import Trace, broken_rate

_JITTER = 0.01  # of a step: times that were rounded when they were written


def load_trace(path: str | Path) -> Trace:
    """Read a trace and name it like the file (`rates` from `rates.csv.gz`); its first time, whatever it is, becomes 0.

    The header is `time_s,rate` or `date,rate` (ISO dates; without a zone, UTC). Times increase by a regular step; rows
    that are left out are its `missing` steps.
    """
    path = Path(path)
    thing = f"trace '{path}'"
    try:
        text = io.StringIO(read_bytes(path).decode("utf-8-sig"), newline="")
        lines, times, rates = _columns(thing, text)
    except FileNotFoundError:
        raise InputError(f"{thing}: the file must exist; nothing is there") from None
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise InputError(f"{thing}: the file must be readable as CSV; got {problem}") from problem
    if len(lines) < 2:
        raise InputError(f"{thing}: a trace must have at least 2 rows; got {len(lines)}")
    broken = broken_rate(rates) or _broken_time(times)
    if broken:
        raise InputError(f"{thing} line {lines[broken[0]]}: {broken[1]}")
    known = _steps(times)
    count = known[-1] + 1
    if len(known) < count / 2:
        raise InputError(f"{thing}: at most half of its rows may be missing; got {len(known)} of {count}")
    missing = tuple(sorted(set(range(count)).difference(known)))
    filled = np.interp(np.arange(count), known, rates) if missing else rates
    return Trace(plain_name(path).stem, float(times[-1] - times[0]) / (count - 1), filled, missing)


def _steps(times: FloatArray) -> list[int]:
    """The step that each row is of, where rows may be missing between two."""
    lengths = np.diff(times)
    between = np.rint(lengths / np.sort(lengths)[(len(lengths) - 1) // 2])
    return [0, *np.cumsum(between).astype(np.int64).tolist()]


def _columns(thing: str, text: Iterable[str]) -> tuple[list[int], FloatArray, FloatArray]:
    """Line numbers, times in seconds and rates of all rows; empty lines are passed over."""
    lines: list[int] = []
    times: list[float] = []
    rates: list[float] = []
    reader = csv.reader(text)
    to_seconds = _time_parser(thing, next(reader, []))
    for row in reader:
        if row:
            try:
                time, rate = row
                times.append(to_seconds(time))
                rates.append(float(rate))
            except ValueError:
                raise InputError(f"{thing} line {reader.line_num}: {_broken_row(row, to_seconds)}") from None
            lines.append(reader.line_num)
    return lines, np.array(times), np.array(rates)


def _time_parser(thing: str, header: list[str]) -> Callable[[str], float]:
    """What turns the first column into seconds."""
    names = [field.strip() for field in header]
    if names == ["time_s", "rate"]:
        return float
    if names == ["date", "rate"]:
        return _seconds
    raise InputError(f"{thing} line 1: the header must be 'time_s,rate' or 'date,rate'; got {','.join(header)!r}")


def _seconds(date: str) -> float:
    """Seconds since 1970 of an ISO date."""
    when = datetime.fromisoformat(date.strip())
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _broken_row(row: list[str], to_seconds: Callable[[str], float]) -> str:
    """The rule that a row which could not be read breaks."""
    if len(row) != 2:
        return f"a row must have 2 fields; got {len(row)}"
    try:
        to_seconds(row[0])
    except ValueError:
        rule = "time_s must be a number" if to_seconds is float else "date must be an ISO date"
        return f"{rule}; got {row[0]!r}"
    return f"rate must be a number; got {row[1]!r}"


def _broken_time(times: FloatArray) -> tuple[int, str] | None:
    """Which row's time breaks a rule first, and the rule."""
    finite = np.isfinite(times)
    if not finite.all():
        at = int(finite.argmin())
        return at, f"time must be a finite number; got {float(times[at])}"
    steps = np.diff(times)
    if (steps <= 0).any():
        at = int((steps <= 0).argmax())
        return at + 1, f"time must be after that of the row before; got a step of {steps[at]:g} s"
    usual = float(np.sort(steps)[(len(steps) - 1) // 2])
    odd = np.abs(steps - np.maximum(1, np.rint(steps / usual)) * usual) > _JITTER * usual
    if odd.any():
        at = int(odd.argmax())
        rule = f"time must grow by the same step, {usual:g} s here, or several where rows are missing"
        return at + 1, f"{rule}; got a step of {steps[at]:g} s"
    return None


def save_trace(trace: Trace, path: Path) -> Path:
    """Write a trace as `load_trace` reads it; the path."""
    rows = "".join(f"{number * trace.step_s:.9g},{rate:.9g}\n" for number, rate in enumerate(trace.rates))
    path.write_text("time_s,rate\n" + rows)
    return path
