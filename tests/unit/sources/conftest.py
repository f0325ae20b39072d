"""Topics for tests of sources, on a Kafka of the tests' own."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from penstock.sources.kafka import partitions

from ...services.kafka import Kafka

_numbers = itertools.count()


@pytest.fixture
def new_topic(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Makes topics with names of their own, on which readers look often for what is new."""
    monkeypatch.setattr(partitions, "REFRESH_S", 0.3)
    return lambda count=1, name="topic": kafka.create(f"{name}-{next(_numbers)}", count)
