"""Segments: what a replica writes at the end of a batch, which of them a recovery needs, and when a group is whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.state.keyed_state import KeyedState

WHOLE_AFTER = 16  # segments: a group's last whole is at most twice as many segments old,
KEPT_BATCHES = 4  # so that, for so many batches that may be done again, older ones are not needed


class SegmentName(NamedTuple):
    """A segment's file: `<batch>.<generation>.<replica>`."""

    batch: int
    generation: int
    replica: int

    def __str__(self) -> str:
        return ".".join(map(str, self))


def parse_name(name: str) -> SegmentName | None:
    """The segment of a file's name; None if it is not one.

    >>> parse_name("12.0.3"), parse_name("12.0.3.new")
    (SegmentName(batch=12, generation=0, replica=3), None)
    """
    numbers = name.split(".")
    if len(numbers) != 3 or not all(number.isdecimal() for number in numbers):
        return None
    batch, generation, replica = map(int, numbers)
    return SegmentName(batch, generation, replica)


def newest_first(names: Iterable[SegmentName], before: int) -> list[SegmentName]:
    """The segments that count for the batch `before`: of earlier batches, each in its last generation."""
    earlier = [name for name in names if name.batch < before]
    last: dict[int, int] = {}
    for name in earlier:
        last[name.batch] = max(name.generation, last.get(name.batch, 0))
    return sorted((name for name in earlier if name.generation == last[name.batch]), reverse=True)


def unneeded(names: Iterable[SegmentName]) -> list[SegmentName]:
    """The segments that no recovery needs any more: too old, or of a batch that was done again and is long past."""
    known = sorted(names)
    batches = sorted({name.batch for name in known}, reverse=True)
    kept = set(batches[: 2 * WHOLE_AFTER + KEPT_BATCHES])
    in_force = set(newest_first(known, batches[0] + 1)) if batches else set()
    recent = set(batches[:KEPT_BATCHES])
    return [name for name in known if name.batch not in kept or (name not in in_force and name.batch not in recent)]


@dataclass(slots=True)
class Past:
    """What has been written of a group: its last whole, and the changes since."""

    whole_bytes: int = 0
    changes_bytes: int = 0
    segments: int = 0  # since the last whole


@dataclass
class Compaction:
    """Decides, group by group, whether a segment has the whole or what changed.

    It is the whole when the changes since the last one, with this one, would be larger than that, or when it is old.
    So the changes that a recovery reads are never larger than the whole.
    """

    past: dict[int, Past] = field(default_factory=dict)  # groups that are not here are written whole

    def parts(self, state: KeyedState) -> Iterator[tuple[int, bool, bytes]]:
        """(group, whole, bytes) of every group that is to be written."""
        for group in sorted(state.owned):
            past = self.past.get(group)
            changed = state.change(group) if past is not None else None
            if past is not None and past.segments + 1 < WHOLE_AFTER + group % WHOLE_AFTER:
                past.segments += 1
                if changed is None:
                    continue
                if past.changes_bytes + len(changed) <= past.whole_bytes:
                    past.changes_bytes += len(changed)
                    yield group, False, changed
                    continue
            data = state.whole(group)
            self.past[group] = Past(len(data))
            yield group, True, data
