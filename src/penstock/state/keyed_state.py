"""The state of one replica: a value for each key, kept by key group, with what changed since the last segment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from penstock.errors import InputError
from penstock.state.codec import KEY_TYPES, Codec, Part

SAMPLE_EVERY = 256  # events between two looks at the size of a value
SAMPLE_WEIGHT = 1 / 16


class Group:
    """The keys of one group: their values, and the event time at which each was last touched."""

    __slots__ = ("changed", "deleted", "newest_s", "touched_s", "values")

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}
        self.touched_s: dict[Any, float] = {}
        self.changed: set[Any] = set()
        self.deleted: set[Any] = set()
        self.newest_s = float("-inf")


class Saved(NamedTuple):
    """The state of a key before an event."""

    value: bytes | None  # None: there was none
    touched_s: float
    newest_s: float  # of the group
    changed: bool
    deleted: bool


class KeyedState:
    """Values by group and key; a key that is new, or has expired, starts with a new value.

    Time is the events' own, so that it is the same when events are repeated. A key expires for an event that comes more
    than `expire_after_s` after its last one; it is forgotten with a segment once it has not been touched for twice that
    long, so that an event which is late finds what it would have found without the segment.

    >>> state = KeyedState(Codec("operator 'count'"))
    >>> state.own(3)
    >>> state.value(3, "dam", 17.0)["count"] = 1
    >>> state.value(3, "dam", 18.0)
    {'count': 1}
    """

    def __init__(self, codec: Codec, expire_after_s: float | None = None) -> None:
        self.codec = codec
        self._expire_s = expire_after_s
        self._groups: dict[int, Group] = {}
        self._key_type: type | None = None
        self._keys = 0
        self._looks = 0
        self._mean_bytes = 0.0

    @property
    def owned(self) -> frozenset[int]:
        """The groups whose state is here."""
        return frozenset(self._groups)

    def __len__(self) -> int:
        return self._keys

    @property
    def about_bytes(self) -> int:
        """The size of all values and keys, by a sample of them."""
        return round(self._mean_bytes * len(self))

    def own(self, group: int, parts: Iterable[bytes | memoryview] = ()) -> None:
        """Keep this group from now on, with the state that these parts hold, the oldest first."""
        kept = self._groups[group] = Group()
        for data in parts:
            self._apply(kept, self.codec.decode(data))
        self._keys += len(kept.values)
        for key in kept.values:
            self._key_type = type(key)
            self._look(key, kept.values[key])
            break

    def _apply(self, kept: Group, part: Part[Any]) -> None:
        if part.whole:
            kept.values.clear()
            kept.touched_s.clear()
        kept.values.update(zip(part.keys, part.values, strict=True))
        kept.touched_s.update(zip(part.keys, part.touched_s, strict=True))
        for key in part.deleted:
            kept.values.pop(key, None)
            kept.touched_s.pop(key, None)
        kept.newest_s = max([kept.newest_s, *part.touched_s])

    def value(self, group: int, key: Any, born_s: float) -> Any:
        """The value of a key, to be changed in place by an event of that time."""
        kept = self._groups[group]
        touched_s = kept.touched_s.get(key)
        if touched_s is None or (self._expire_s is not None and born_s - touched_s > self._expire_s):
            self._check_key(key)
            kept.values[key] = self.codec.new()
            self._keys += touched_s is None
            kept.touched_s[key] = born_s
            kept.deleted.discard(key)
        elif born_s > touched_s:
            kept.touched_s[key] = born_s
        if born_s > kept.newest_s:
            kept.newest_s = born_s
        kept.changed.add(key)
        return kept.values[key]

    def save(self, group: int, key: Any) -> Saved:
        """The state of a key as it is now."""
        kept = self._groups[group]
        touched_s = kept.touched_s.get(key)
        value = None if touched_s is None else self.codec.encode_value(key, kept.values[key])
        return Saved(value, touched_s or 0.0, kept.newest_s, key in kept.changed, key in kept.deleted)

    def restore(self, group: int, key: Any, saved: Saved) -> None:
        """Have the state of a key as it was."""
        kept = self._groups[group]
        if saved.value is not None:
            kept.values[key], kept.touched_s[key] = self.codec.decode_value(saved.value), saved.touched_s
        elif kept.touched_s.pop(key, None) is not None:
            del kept.values[key]
            self._keys -= 1
            self._key_type = self._key_type if self._keys else None
        kept.newest_s = saved.newest_s
        (kept.changed.add if saved.changed else kept.changed.discard)(key)
        (kept.deleted.add if saved.deleted else kept.deleted.discard)(key)

    def look(self, group: int, key: Any) -> None:
        """After an event: look at the size of its value now and then; the first time, at whether it can be kept."""
        if self._looks % SAMPLE_EVERY == 0:
            value = self._groups[group].values[key]
            if self._looks == 0:
                self.codec.check(key, value)
            self._look(key, value)
        self._looks += 1

    def _look(self, key: Any, value: Any) -> None:
        size = self.codec.size(key, value)
        self._mean_bytes += (size - self._mean_bytes) * (SAMPLE_WEIGHT if self._mean_bytes else 1.0)

    def _check_key(self, key: Any) -> None:
        kind = type(key)
        if kind is self._key_type:
            return
        if kind not in KEY_TYPES:
            known = ", ".join(one.__name__ for one in KEY_TYPES)
            raise InputError(f"a key must be one of {known}; got {key!r} ({kind.__name__})")
        if self._key_type is not None:
            raise InputError(
                f"all keys must have one type, and the first was {self._key_type.__name__}; "
                f"got {key!r} ({kind.__name__})"
            )
        self._key_type = kind

    def expire(self, group: int) -> None:
        """Forget the keys of a group that no event in time can find any more."""
        if self._expire_s is None:
            return
        kept = self._groups[group]
        limit_s = kept.newest_s - 2 * self._expire_s
        for key in [key for key, touched_s in kept.touched_s.items() if touched_s < limit_s]:
            del kept.values[key], kept.touched_s[key]
            kept.changed.discard(key)
            kept.deleted.add(key)
            self._keys -= 1

    def whole(self, group: int) -> bytes:
        """All of a group, as bytes."""
        kept = self._groups[group]
        keys = list(kept.values)
        return self.codec.encode(Part(True, keys, list(kept.values.values()), [kept.touched_s[key] for key in keys]))

    def change(self, group: int) -> bytes | None:
        """What changed in a group since the last segment, as bytes; None if nothing did."""
        kept = self._groups[group]
        if not kept.changed and not kept.deleted:
            return None
        keys = list(kept.changed)
        values, touched_s = [kept.values[key] for key in keys], [kept.touched_s[key] for key in keys]
        return self.codec.encode(Part(False, keys, values, touched_s, list(kept.deleted)))

    def settle(self, group: int) -> None:
        """What is here of a group is in a segment: nothing has changed since."""
        kept = self._groups[group]
        kept.changed.clear()
        kept.deleted.clear()

    def forget(self, group: int) -> None:
        """The group is somebody else's."""
        self._keys -= len(self._groups.pop(group).values)
