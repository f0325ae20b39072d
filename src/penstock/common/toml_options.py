"""Options in a file in TOML: every key known, every value of its type, and the nearest right key where one is wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from penstock.common.names import hint
from penstock.errors import InputError

JOINED = {"calendar": "; ", "regions": ";"}  # how several texts become one; else with commas


def read_tables(path: Path) -> dict[str, Any]:
    """The tables of a file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: must be a file in TOML; {error}") from error


def checked(path: Path, name: str, table: object, types: Mapping[str, Any]) -> dict[str, Any]:
    """The options of one table, under names without dashes; `types` are those of all that there are."""
    place = f"{path}: [{name}]"
    if not isinstance(table, dict):
        raise InputError(f"{path}: must be tables of options, one for each command; got {name} = {table!r}")
    values: dict[str, Any] = {}
    for given, value in table.items():
        key = given.replace("-", "_")
        if key not in types:
            raise InputError(f"{place}: no such key {given!r}; known: {', '.join(sorted(types))}{hint(key, types)}")
        values[key] = _text(key, types[key], value)
    try:
        msgspec.convert(values, msgspec.defstruct("Options", [(key, types[key]) for key in values]))
    except msgspec.ValidationError as error:
        raise InputError(f"{place}: {str(error).replace(' - at `$.', ', at `')}") from None
    return values


def _text(name: str, kind: Any, value: object) -> object:
    """A table or a list where the command line has one text: `{clean = 4}` is `clean=4`."""
    if kind is not str:
        return value
    if isinstance(value, dict):
        return ",".join(f"{key}={one}" for key, one in value.items())
    if isinstance(value, list):
        return JOINED.get(name, ",").join(map(str, value))
    return value
