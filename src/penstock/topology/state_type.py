"""Whether an operator keeps state by key, how its state begins, and the type it wants it in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_origin, get_type_hints, is_typeddict

import msgspec

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def keeps_state(run: object) -> bool:
    """Whether it takes an event and the state of its key: two parameters that must be given.

    >>> keeps_state(lambda event, state: None), keeps_state(lambda event, times=2: None), keeps_state(print)
    (True, False, False)
    """
    return len(_parameters(_function(run))) == 2


def state_type(run: object) -> Any:
    """What the second parameter is annotated with, as msgspec decodes it; Any where it says nothing more than `dict`.

    >>> def count(event, state: dict[str, int]) -> None: ...
    >>> state_type(count), state_type(lambda event, state: None)
    (dict[str, int], typing.Any)
    """
    function = _function(run)
    hint = get_type_hints(function).get(_parameters(function)[1], Any)
    return Any if hint in (dict, Mapping) else hint


def new_state(run: object, kind: Any) -> Callable[[], Any]:
    """What makes the state of a key that is new: `new_state()` where there is one, else the type of it, or dict."""
    given = getattr(run, "new_state", None)
    if given is not None:
        made: Callable[[], Any] = given
        return made
    maker = get_origin(kind) or kind
    return dict if maker is Any or is_typeddict(maker) or not isinstance(maker, type) else maker


def check_state(run: object, kind: Any) -> object:
    """The state of a new key; raises what is wrong with the type, or with making one."""
    msgspec.msgpack.Decoder(kind)
    return new_state(run, kind)()


def _function(run: object) -> Any:
    return getattr(run, "process", run)


def _parameters(function: object) -> list[str]:
    """The positional parameters without a default."""
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        return []
    given = inspect.signature(function).parameters.values()
    return [one.name for one in given if one.kind in _POSITIONAL and one.default is inspect.Parameter.empty]
