"""The table `[attach]` of `penstock.toml`: what `penstock.attach` takes, but for queries and functions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from penstock.common.toml_options import checked, read_tables
from penstock.errors import InputError

Given = ParamSpec("Given")
Result = TypeVar("Result")

TABLE = "attach"
TYPES: dict[str, Any] = {
    "executors": str | int,
    "target_ms": float,
    "late": float,
    "mode": str,
    "policy": str,
    "forecaster": str,
    "td_s": float,
    "cooldown_s": float,
    "store": str,
    "calendar": str,
}


def attach_options(path: str | Path) -> dict[str, Any]:
    """What a file says in its table `[attach]`; a wrong key is an InputError with the nearest right one.

    The forecaster `none` is none.
    """
    file = Path(path)
    tables = read_tables(file)
    if TABLE not in tables:
        raise InputError(f"{file}: must have a table [{TABLE}]; has {', '.join(tables) or 'none'}")
    return as_keywords(checked(file, TABLE, tables[TABLE], TYPES))


def as_keywords(options: dict[str, Any]) -> dict[str, Any]:
    """The options as `attach` takes them."""
    return {**options, "forecaster": None} if options.get("forecaster") == "none" else options


def from_file(attach: Callable[Given, Result]) -> Callable[Given, Result]:
    """Gives a function the options of the file that its keyword `config` names; what it is given goes before them."""
    signature = inspect.signature(attach)

    @functools.wraps(attach)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        given = signature.bind_partial(*args, **kwargs).arguments
        config = given.get("config")
        found = {} if config is None else attach_options(str(config))
        more: Any = {name: value for name, value in found.items() if name not in given}
        return attach(*args, **{**kwargs, **more})

    return called
