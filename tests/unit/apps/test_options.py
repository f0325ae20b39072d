"""Options of an application that make no sense are refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from penstock.apps import PayloadOptions
from penstock.errors import InputError, TopologyError
from penstock.grouping import GROUPINGS
from penstock.topology import Topology

Build = Callable[..., Topology]
KNOWN = "known: clean, classify, author, store"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"service_ms": {"clan": 1.0}}, f"app 'twitter': service_ms: no operator 'clan'; {KNOWN}"),
        ({"pools": {"clan": 2}}, f"app 'twitter': pools: no operator 'clan'; {KNOWN}"),
        ({"service_ms": {"clean": -1.0}}, "app 'twitter': service_ms of 'clean' must not be negative; got -1.0"),
        ({"service_ms": {"clean": math.nan}}, "app 'twitter': service_ms of 'clean' must not be negative; got nan"),
        ({"service_ms": {"clean": math.inf}}, "app 'twitter': service_ms of 'clean' must not be negative; got inf"),
    ],
)
def test_refused(build: Build, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        build("twitter", **options)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"pool": 0}, "pool must be at least 1; got 0"),
        ({"pools": {"clean": 0}}, "pool must be at least 1; got 0"),
        ({"grouping": "random"}, f"grouping must be one of {', '.join(GROUPINGS)}; got 'random'"),
        ({"grouping": "fields"}, "grouping 'fields' needs a key; got none"),
    ],
)
def test_refused_by_the_topology(build: Build, options: dict[str, Any], rule: str) -> None:
    with pytest.raises(TopologyError) as caught:
        build("twitter", **options)
    assert str(caught.value).startswith("operator 'clean' (twitter.py:")
    assert str(caught.value).endswith(f": {rule}")


@pytest.mark.parametrize("skew", [-0.5, math.nan, math.inf])
def test_a_skew_is_not_negative(skew: float) -> None:
    with pytest.raises(InputError, match=f"payloads: skew must not be negative; got {skew}"):
        PayloadOptions(skew=skew)


def test_at_least_one_event() -> None:
    with pytest.raises(InputError, match="payloads: count must be whole and at least 1; got 0"):
        PayloadOptions(count=0)
