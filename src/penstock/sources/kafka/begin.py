"""Where a run begins to read: at the first or the next record, at a time, or at given offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from penstock.common.checks import is_number, is_whole
from penstock.common.kafka import Start
from penstock.errors import InputError

Begin = str | float | datetime | Mapping[str, Mapping[int, int]]
ENDS = ("earliest", "latest")


def check_begin(thing: str, begin: object, topics: Sequence[str]) -> None:
    """Raise an InputError unless it is `earliest`, `latest`, a time, or offsets by topic and partition."""
    if isinstance(begin, Mapping):
        known = all(isinstance(by, Mapping) and _are_offsets(by) for by in begin.values())
    elif isinstance(begin, datetime):
        known = begin.tzinfo is not None
    else:
        known = begin in ENDS if isinstance(begin, str) else is_number(begin) and begin >= 0
    if not known:
        rule = "begin must be earliest, latest, a time with a zone, or offsets by topic and partition"
        raise InputError(f"{thing}: {rule}; got {begin!r}")
    if isinstance(begin, Mapping) and (others := [topic for topic in begin if topic not in topics]):
        raise InputError(f"{thing}: begin names topics that are not read: {', '.join(others)}")


def _are_offsets(by_partition: Mapping[object, object]) -> bool:
    return all(is_whole(number, 0) and is_whole(offset, 0) for number, offset in by_partition.items())


def check_partitions(thing: str, begin: Begin, topic: str, partitions: int) -> None:
    """Raise an InputError if offsets are given for partitions that the topic has not got."""
    given = begin.get(topic, {}) if isinstance(begin, Mapping) else {}
    if unknown := [number for number in given if number >= partitions]:
        rule = f"begin must name partitions from 0 to {partitions - 1}, which topic {topic!r} has"
        raise InputError(f"{thing}: {rule}; got {unknown[0]}")


def first_start(begin: Begin, topic: str, partition: int) -> Start:
    """Where a partition begins that was there before the run; one without a given offset, at its first record."""
    if isinstance(begin, Mapping):
        return begin.get(topic, {}).get(partition, "earliest")
    if isinstance(begin, datetime):
        return begin.timestamp()
    return begin if isinstance(begin, str) else float(begin)


def read_begin(thing: str, text: str, topics: Sequence[str]) -> Begin:
    """As a URL has it: a word, seconds since 1970, ISO 8601 (UTC where it has no zone), or `partition:offset,…`.

    >>> read_begin("source", "0:17,3:4", ["clicks"])
    {'clicks': {0: 17, 3: 4}}
    """
    if text in ENDS:
        return text
    try:
        if text.replace(".", "", 1).isdecimal():
            return float(text)
        pairs = [one.split(":") for one in text.split(",")]
        if len(topics) == 1 and all(len(pair) == 2 and "".join(pair).isdecimal() for pair in pairs):
            return {topics[0]: {int(number): int(offset) for number, offset in pairs}}
        time = datetime.fromisoformat(text)
    except ValueError:
        rule = "begin must be earliest, latest, a time, or, of one topic, partition:offset,…"
        raise InputError(f"{thing}: {rule}; got {text!r}") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
