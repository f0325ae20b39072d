"""What is known of people."""

from __future__ import annotations

from bisect import bisect_right

_BOUNDS = (18, 25, 35, 50, 65)
_BANDS = ("under 18", "18-24", "25-34", "35-49", "50-64", "65 and over")


def age_band(age: int) -> str:
    """The band an age falls in.

    >>> age_band(17), age_band(18), age_band(80)
    ('under 18', '18-24', '65 and over')
    """
    return _BANDS[bisect_right(_BOUNDS, age)]
