"""The Kafka source where offsets have expired or a topic was made anew: it says so, or goes on as chosen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.errors import InputError
from penstock.sources.kafka import KafkaSource

from ...services.kafka import Kafka
from .kafka_topics import expire, opened, put


@pytest.mark.parametrize(("on_reset", "expected"), [("earliest", [3, 4, 5]), ("latest", [5])])
def test_offsets_that_have_expired_are_gone_on_from_as_chosen(
    kafka: Kafka, new_topic: Callable[..., str], on_reset: str, expected: list[int]
) -> None:
    topic = new_topic()
    put(kafka, topic, list(range(5)))
    expire(kafka, topic, 3)
    source = KafkaSource(kafka.address, topic, on_reset=on_reset, begin={topic: {0: 1}})
    with opened(source) as tap:
        assert tap.until(lambda: tap.next.get(topic, {"0": 1})["0"] >= 3)
        put(kafka, topic, [5])
        assert tap.events(len(expected)) == expected


@pytest.mark.parametrize(("on_reset", "expected"), [("earliest", [3, 4]), ("latest", [])])
def test_it_says_when_it_has_caught_up_also_where_offsets_have_expired(
    kafka: Kafka, new_topic: Callable[..., str], on_reset: str, expected: list[int]
) -> None:
    """A slot that owes events that have expired must hear that they will not come, or a stop waits for them."""
    topic = new_topic(2)
    put(kafka, topic, list(range(5)))
    with opened(KafkaSource(kafka.address, topic, on_reset=on_reset)) as tap:
        assert not tap.reader.caught_up
        tap.until(lambda: tap.reader.caught_up)
        assert len(tap.take(5)) == 5
        cursor = tap.reader.cursor
        put(kafka, topic, [5])
        assert tap.until(lambda: len(tap.polled) > 0)
    expire(kafka, topic, 3)
    cursor["topics"][topic]["next"]["0"] = 1
    with opened(KafkaSource(kafka.address, topic, on_reset=on_reset), cursor) as tap:
        assert tap.until(lambda: tap.reader.caught_up)
        assert [one.event for one in tap.polled] == [*expected, *([5] if expected else [])]


def test_offsets_that_have_expired_end_the_run_unless_told_otherwise(
    kafka: Kafka, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    put(kafka, topic, list(range(5)))
    expire(kafka, topic, 3)
    with opened(KafkaSource(kafka.address, topic, begin={topic: {0: 1}})) as tap:
        told = (
            f"kafka source '{topic}': topic '{topic}', partition 0: it holds offsets 3 to 5, and not the next; on_reset"
        )
        with pytest.raises(InputError, match=told):
            tap.take(1)


def test_a_topic_made_anew_is_noticed_and_has_other_ids(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    put(kafka, topic, ["old"])
    with opened(KafkaSource(kafka.address, topic)) as tap:
        assert tap.events(1) == ["old"]
        cursor = tap.reader.cursor
    kafka.delete(topic)
    kafka.create(topic)
    put(kafka, topic, ["new", "newer"])  # the old offset is there, too
    told = f"topic '{topic}' was made anew; on_reset says fail"
    with opened(KafkaSource(kafka.address, topic), cursor) as tap, pytest.raises(InputError, match=told):
        tap.take(1)
    with opened(KafkaSource(kafka.address, topic, on_reset="earliest"), cursor) as tap:
        assert [(one.id, one.event) for one in tap.take(2)] == [
            (f"{topic}~1-0-0", "new"),
            (f"{topic}~1-0-1", "newer"),
        ]


def test_a_topic_made_anew_while_it_is_read(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    put(kafka, topic, ["old"])
    with opened(KafkaSource(kafka.address, topic, on_reset="earliest")) as tap:
        assert tap.events(1) == ["old"]
        kafka.delete(topic)
        kafka.create(topic)
        put(kafka, topic, ["new", "newer"])
        assert tap.until(lambda: len(tap.polled) >= 2 and tap.polled[-1].id == f"{topic}~1-0-1")
        assert [one.event for one in tap.polled if "~1-" in one.id] == ["new", "newer"]
