"""Segments: what a replica writes of its state at a checkpoint, which are needed, and when a group is whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from penstock.state.keyed_state import KeyedState

WHOLE_AFTER = 16  # segments: a group's last whole is at most twice as many segments old,
KEPT_BATCHES = 4  # so that, for so many batches that may be done again, older ones are not needed


class Segment(msgspec.Struct, frozen=True, order=True, array_like=True):
    """A segment and its file, `<number>.<generation>.<replica>`; the number is the checkpoint's or micro-batch's."""

    number: int
    generation: int
    replica: int
    size: int = 0
    crc: int = 0

    @property
    def name(self) -> str:
        """Of the file."""
        return f"{self.number}.{self.generation}.{self.replica}"


def parse_name(name: str) -> Segment | None:
    """The segment of a file's name; None if it is not one.

    >>> parse_name("12.0.3").number, parse_name("12.0.3.new")
    (12, None)
    """
    numbers = name.split(".")
    if len(numbers) != 3 or not all(number.isdecimal() for number in numbers):
        return None
    number, generation, replica = map(int, numbers)
    return Segment(number, generation, replica)


def newest_first(segments: Iterable[Segment], before: int) -> list[Segment]:
    """The segments that count for the micro-batch `before`: of earlier batches, each in its last generation."""
    earlier = [one for one in segments if one.number < before]
    last: dict[int, int] = {}
    for one in earlier:
        last[one.number] = max(one.generation, last.get(one.number, 0))
    return sorted((one for one in earlier if one.generation == last[one.number]), reverse=True)


def unneeded(segments: Iterable[Segment]) -> list[Segment]:
    """The segments that no micro-batch needs any more: too old, or of one that was done again and is long past."""
    known = sorted(segments)
    batches = sorted({one.number for one in known}, reverse=True)
    kept = set(batches[: 2 * WHOLE_AFTER + KEPT_BATCHES])
    in_force = set(newest_first(known, batches[0] + 1)) if batches else set()
    recent = set(batches[:KEPT_BATCHES])
    return [one for one in known if one.number not in kept or (one not in in_force and one.number not in recent)]


@dataclass(slots=True)
class Past:
    """What has been written of a group: its last whole, in which segment, and the changes since."""

    whole_bytes: int = 0
    changes_bytes: int = 0
    segments: int = 0  # since the last whole
    whole_in: int = 0  # the number of the segment with the last whole


@dataclass
class Compaction:
    """Decides, group by group, whether a segment has the whole or what changed.

    It is the whole when the changes since the last one, with this one, would be larger than that, or when it is old.
    So the changes that a recovery reads are never larger than the whole.
    """

    past: dict[int, Past] = field(default_factory=dict)  # groups that are not here are written whole

    def part(self, state: KeyedState, group: int, number: int) -> tuple[int, bool, bytes] | None:
        """(group, whole, bytes) of the group for that segment; None if nothing of it is to be written."""
        past = self.past.get(group)
        state.expire(group)
        changed = state.change(group) if past is not None else None
        if past is not None and past.segments + 1 < WHOLE_AFTER + group % WHOLE_AFTER:
            past.segments += 1
            if changed is None:
                return None
            if past.changes_bytes + len(changed) <= past.whole_bytes:
                past.changes_bytes += len(changed)
                state.settle(group)
                return group, False, changed
        data = state.whole(group)
        self.past[group] = Past(len(data), whole_in=number)
        state.settle(group)
        return group, True, data

    def oldest(self, default: int) -> int:
        """The first segment that some group needs."""
        return min((past.whole_in for past in self.past.values()), default=default)
