"""State as bytes: values as msgpack, decoded into the type that the operator wants, and what can go wrong with that."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from penstock.errors import EngineError

V = TypeVar("V")

KEY_TYPES = (str, int, float, bool, bytes, tuple)
_encoder = msgspec.msgpack.Encoder()


class Part(msgspec.Struct, Generic[V], array_like=True):
    """A group, whole or only what changed, by column."""

    whole: bool
    keys: list[Any]
    values: list[V]
    touched_s: list[float]  # the newest event of each key, by its own time
    deleted: list[Any] = []


class Codec:
    """How the state of one operator is made, encoded and decoded; `label` is the operator as errors name it."""

    def __init__(self, label: str, new: Callable[[], Any] = dict, kind: Any = Any) -> None:
        self.label = label
        self.new = new
        self._kind = kind
        self._decode = msgspec.msgpack.Decoder(Part[kind]).decode
        self.decode_value = msgspec.msgpack.Decoder(kind).decode

    def encode(self, part: Part[Any]) -> bytes:
        """The part as bytes; an EngineError names the key whose state cannot be encoded."""
        try:
            return _encoder.encode(part)
        except Exception as error:
            for key, value in zip(part.keys, part.values, strict=True):
                self.encode_value(key, value)
            raise EngineError(f"{self.label}: its state cannot be encoded: {error}") from error

    def decode(self, data: bytes | memoryview) -> Part[Any]:
        """The part as it was, with tuples for keys of several fields."""
        try:
            part = self._decode(data)
        except msgspec.MsgspecError as error:
            raise EngineError(f"{self.label}: its state is not {self._kind}, or broken: {error}") from error
        part.keys = [key_as_kept(key) for key in part.keys]
        part.deleted = [key_as_kept(key) for key in part.deleted]
        return part

    def check(self, key: object, value: object) -> int:
        """The size of a value; an EngineError if it cannot be encoded, or would come back as something else."""
        data = self.encode_value(key, value)
        try:
            back = self.decode_value(data)
        except msgspec.MsgspecError as error:
            back = error
        if not alike(value, back):
            raise EngineError(
                f"{self.label}: state must come back from bytes as it was, so annotate the parameter `state` with its "
                f"type; key {key!r}: {value!r} ({type(value).__name__}) would be {back!r}"
            )
        return len(data)

    def size(self, key: object, value: object) -> int:
        """The size of a value with its key and time."""
        return len(self.encode_value(key, value)) + len(_encoder.encode((key, 0.5)))

    def encode_value(self, key: object, value: object) -> bytes:
        """The value of a key as bytes; an EngineError names the key if that cannot be."""
        try:
            return _encoder.encode(value)
        except Exception as error:
            kind = type(value).__name__
            raise EngineError(
                f"{self.label}: the state of key {key!r} ({kind}) cannot be encoded: {error}; got {value!r}"
            ) from error


def key_as_kept(key: Any) -> Any:
    """A key that can be looked up: lists, as msgpack gives them, become tuples.

    >>> key_as_kept(["oslo", [1, 2]])
    ('oslo', (1, 2))
    """
    return tuple(key_as_kept(part) for part in key) if isinstance(key, list | tuple) else key


def alike(one: Any, other: Any) -> bool:
    """Whether two values have the same types throughout.

    >>> alike({"seen": {1, 2}}, {"seen": [1, 2]}), alike([1.0, float("nan")], [2.0, 3.0])
    (False, True)
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(key in other and alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, msgspec.Struct):
        return all(alike(getattr(one, name), getattr(other, name)) for name in one.__struct_fields__)
    if dataclasses.is_dataclass(one):
        return all(alike(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one))
    return True
