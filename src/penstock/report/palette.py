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

_OPERATORS = (BLUE, ORANGE, GREEN, PURPLE, VERMILLION, SKY, INK)
_DASHES = ("-", "--", ":", "-.")


def operator_colour(index: int) -> str:
    """The colour of the operator at this place in the topology's order.

    >>> operator_colour(0), operator_colour(7) == operator_colour(0)
    ('#0072B2', True)
    """
    return _OPERATORS[index % len(_OPERATORS)]


def operator_dashes(index: int) -> str:
    """Its line style: another one each time the colours start over.

    >>> operator_dashes(0), operator_dashes(7)
    ('-', '--')
    """
    return _DASHES[index // len(_OPERATORS) % len(_DASHES)]
