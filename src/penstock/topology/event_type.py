"""The type an operator wants its events in, read off its annotations."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, get_args, get_type_hints, is_typeddict

import msgspec


def event_type(run: object) -> Any:
    """A msgspec Struct, dataclass or TypedDict where the first parameter says so, else plain mappings.

    >>> class Tweet(msgspec.Struct):
    ...     text: str
    >>> def clean(tweet: Tweet) -> Tweet: ...
    >>> event_type(clean).__name__, event_type(lambda e: e)
    ('Tweet', typing.Any)
    """
    many = getattr(run, "process_many", None)
    function = many or getattr(run, "process", run)
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        return Any
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    hint = get_type_hints(function).get(names[0]) if names else None
    if many is not None and get_args(hint):
        hint = get_args(hint)[0]
    return hint if _is_typed(hint) else Any


def _is_typed(hint: object) -> bool:
    if not isinstance(hint, type):
        return False
    return issubclass(hint, msgspec.Struct) or dataclasses.is_dataclass(hint) or is_typeddict(hint)
