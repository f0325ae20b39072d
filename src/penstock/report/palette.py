"""Colours that people with any colour vision can tell apart, the same for an operator in every plot and table.

Okabe and Ito, "Color Universal Design", 2008; without its yellow, which is hard to see on white.
"""

from __future__ import annotations

BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
INK = "#1f2933"
GREY = "#7b8794"
FAINT = "#cbd2d9"

POLICIES = (BLUE, ORANGE, GREEN, PURPLE, VERMILLION, INK)
_OPERATORS = (BLUE, ORANGE, GREEN, PURPLE, VERMILLION, SKY, INK)
_DASHES = ("-", "--", ":", "-.")


def operator_style(index: int) -> dict[str, str]:
    """Colour and dashes of the operator at this place in the topology's order: other dashes when colours start over.

    >>> operator_style(0), operator_style(7)
    ({'color': '#0072B2', 'linestyle': '-'}, {'color': '#0072B2', 'linestyle': '--'})
    """
    place, again = index % len(_OPERATORS), index // len(_OPERATORS)
    return {"color": _OPERATORS[place], "linestyle": _DASHES[again % len(_DASHES)]}
