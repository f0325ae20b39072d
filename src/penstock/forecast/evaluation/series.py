"""Series from files, and how they are split into a part to train on, one to validate on and one to test on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import InputError
from penstock.workload import DAY_S, Trace, load_trace

DEFAULT_SPLIT = "40/10/10"
_VALIDATED = 0.2  # of the rows before the test part, where only its start is given
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Split:
    """The rows to train on, those after them to validate on, and those after these to test on."""

    train: int
    validation: int
    test: int

    @property
    def test_start(self) -> int:
        """The first row of the test part."""
        return self.train + self.validation

    @property
    def end(self) -> int:
        """The row after the last one."""
        return self.test_start + self.test

    def __str__(self) -> str:
        parts = f"{self.train:,} rows to train, {self.validation:,} to validate, {self.test:,} to test"
        return f"{parts} (from row {self.test_start:,})"


def load_all(files: Sequence[str | Path]) -> list[Trace]:
    """The series of CSV files, each named like its file; two of the same name are an InputError."""
    found = [load_trace(path) for path in files]
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"series: files must have different names; got {names.count(name)} named {name!r}")
    return found


def rows_per_day(step_s: float) -> int:
    """How many rows make a day, at least 1.

    >>> rows_per_day(300.0), rows_per_day(3600.0)
    (288, 24)
    """
    return max(1, round(DAY_S / step_s))


def split_in_parts(series: Trace, text: str = DEFAULT_SPLIT) -> tuple[Split, str]:
    """The split that `40/10/10` means for this series, and in which unit.

    They are days, of the first 60, where the series has at least so many and its step divides a day; otherwise
    shares of all its rows.

    >>> import numpy as np
    >>> hourly = Trace("hourly", 3600.0, np.ones(24 * 61))
    >>> split_in_parts(hourly)
    (Split(train=960, validation=240, test=240), 'days')
    >>> split_in_parts(hourly.limited(100 * 3600.0), "8/1/1")
    (Split(train=80, validation=10, test=10), 'shares')
    """
    parts, rows, day = _parts(text), len(series.rates), DAY_S / series.step_s
    whole = abs(day - round(day)) <= _ROUNDING * day and round(day) >= 1
    if whole and rows >= sum(parts) * round(day):
        train, validation, test = (round(part * round(day)) for part in parts)
        return _checked(series, Split(train, validation, test)), "days"
    train, before = (round(rows * part / sum(parts)) for part in (parts[0], parts[0] + parts[1]))
    return _checked(series, Split(train, before - train, rows - before)), "shares"


def split_at(series: Trace, test_start: int) -> Split:
    """The test part begins at this row, counted from 0, and ends with the series; the fifth before it validates.

    >>> import numpy as np
    >>> split_at(Trace("t", 60.0, np.ones(100)), 80)
    Split(train=64, validation=16, test=20)
    """
    rows = len(series.rates)
    if not 2 <= test_start < rows:
        raise InputError(
            f"series '{series.name}': --test-start must be a row from 2 to {rows - 1}, its last; got {test_start}"
        )
    validation = round(test_start * _VALIDATED)
    return Split(test_start - validation, validation, rows - test_start)


def _parts(text: str) -> tuple[float, float, float]:
    try:
        train, validation, test = (float(part) for part in text.split("/"))
    except ValueError:
        train = validation = test = -1.0
    if not (train > 0 and validation >= 0 and test > 0 and train + validation + test < float("inf")):
        raise InputError(f"--split: must be TRAIN/VALIDATION/TEST, as in {DEFAULT_SPLIT}; got {text!r}")
    return train, validation, test


def _checked(series: Trace, split: Split) -> Split:
    if split.train < 1 or split.test < 1:
        raise InputError(
            f"series '{series.name}': must be long enough to train and test on; got {len(series.rates)} rows: {split}"
        )
    return split
