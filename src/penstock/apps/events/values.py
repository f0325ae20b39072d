"""Plain values from 0 to 63, for the DABS topologies."""

from __future__ import annotations

from random import Random

from penstock.apps.app import Payload, PayloadOptions
from penstock.apps.events.draw import zipf_ranks
from penstock.apps.waiting import DISTINCT_TIMES


def values(options: PayloadOptions) -> list[Payload]:
    """Values drawn uniformly, or by Zipf's law with the given skew (1.5 in the paper).

    >>> values(PayloadOptions(seed=1, count=2))
    [{'number': 0, 'value': 8}, {'number': 1, 'value': 54}]
    """
    drawn = zipf_ranks(Random(options.seed), DISTINCT_TIMES, options.skew or 0.0, options.count)
    return [{"number": number, "value": value} for number, value in enumerate(drawn)]
