"""`penstock.toml`: the options of commands in a file; and `penstock config`, which checks and shows it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer

from penstock.attached.config import TABLE as ATTACH
from penstock.attached.config import TYPES as ATTACH_TYPES
from penstock.cli.console import clear_errors, console
from penstock.common.names import one_of
from penstock.common.secrets import masked_url
from penstock.common.toml_options import checked, read_tables
from penstock.errors import InputError

FILE = "penstock.toml"
ENVIRONMENT = "PENSTOCK_CONFIG"  # names another file

config = typer.Typer(no_args_is_help=True, help=f"Check and show {FILE}.")
Place = Annotated[Path | None, typer.Argument(metavar="FILE", help=f"{FILE} of this folder by default.")]


@dataclass(frozen=True, slots=True)
class Configured:
    """A file's options: by command, and within it by the names of its parameters."""

    path: Path
    commands: Mapping[str, Mapping[str, Any]]


def found_config() -> Path | None:
    """The file that counts here: the one that the environment names, or this folder's, if there is one."""
    if named := os.environ.get(ENVIRONMENT):
        return Path(named)
    return Path(FILE) if Path(FILE).is_file() else None


def read_config(path: Path, commands: Mapping[str, Any]) -> Configured:
    """The file, with every key known and every value of its type; an InputError names the nearest right key."""
    tables = read_tables(path)
    known = {name: one for name, one in commands.items() if not hasattr(one, "commands")}
    for name in tables:
        one_of(f"{path}, table", name, [*known, ATTACH])
    return Configured(path, {name: _read(path, name, known.get(name), table) for name, table in tables.items()})


def _read(path: Path, name: str, command: Any | None, table: object) -> dict[str, Any]:
    """One command's table, or that of `penstock.attach`, which is none."""
    if command is None:
        return checked(path, name, table, ATTACH_TYPES)
    names = {_key(one): str(one.name) for one in command.params if _key(one) != "help"}
    types = _types(command)
    found = checked(path, name, table, {key: types[parameter] for key, parameter in names.items()})
    return {names[key]: value for key, value in found.items()}


def _key(parameter: Any) -> str:
    """What an option is called in the file: `target_ms` for `--target-ms`."""
    named = next((one for one in parameter.opts if one.startswith("--")), parameter.name or "")
    return named.lstrip("-").replace("-", "_")


def _types(command: Any) -> dict[str, Any]:
    """What each parameter is in TOML, by the annotations of the command's function; a path is a text."""
    signature = inspect.signature(command.callback, eval_str=True)
    return {name: _plain(one.annotation) for name, one in signature.parameters.items()}


def _plain(annotation: Any) -> Any:
    """`Annotated[float | None, Option(…)]` is `float`.

    >>> _plain(Annotated[Path | None, "a file"]), _plain(list[str] | None)
    (<class 'str'>, list[str])
    """
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    choices = [one for one in get_args(annotation) if one is not type(None)]
    if type(None) in get_args(annotation) and choices:
        annotation = choices[0]
    return str if annotation is Path else annotation


@config.command()
def check(context: typer.Context, file: Place = None) -> None:
    """Say whether the file is right; if not, what is wrong with it, and where."""
    with clear_errors():
        found = read_config(_there(file), _commands(context))
        for name, options in found.commands.items():
            _check_words(f"{found.path}: [{name}]", options)
        told = ", ".join(f"{name} ({len(options)})" for name, options in found.commands.items()) or "nothing"
        console.print(f"{found.path}: right; has options of {told}", highlight=False, soft_wrap=True)


@config.command()
def show(context: typer.Context, file: Place = None) -> None:
    """All options of the commands that the file has, with their values; * for those of the file."""
    with clear_errors():
        commands = _commands(context)
        found = read_config(_there(file), commands)
        for name, given in found.commands.items():
            typer.echo(f"[{name}]")
            for key, parameter, value in _all(commands.get(name), given):
                shown = "" if value is None or "UNSET" in repr(value) else _masked(value)
                typer.echo(f"{'*' if parameter in given else ' '} {key} = {shown}")


def _check_words(place: str, options: Mapping[str, Any]) -> None:
    """Whether calendar, policies and forecaster are known; what depends on the topology the command itself says."""
    from penstock.forecast.registry import FORECASTERS  # these take their time to load
    from penstock.policy.guards.calendar import parse_calendar
    from penstock.policy.registry import POLICIES

    try:
        parse_calendar(options.get("calendar"))
        for key in ("policy", "shadow", "canary", "forecaster"):
            known = FORECASTERS.names if key == "forecaster" else POLICIES.names
            one_of(key, str(options.get(key) or "none").partition(":")[0].strip(), ["none", *known])
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


def _all(command: Any | None, given: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """Every option: its key in the file, its parameter, and its value; of `attach`, defaults are where it is."""
    if command is None:
        return [(name, name, given.get(name)) for name in ATTACH_TYPES]
    options = [(_key(one), str(one.name), one.default) for one in command.params if _key(one) != "help"]
    return [(key, parameter, given.get(parameter, default)) for key, parameter, default in options]


def _there(file: Path | None) -> Path:
    found = file or found_config()
    if found is None:
        raise InputError(f"no {FILE} in this folder; name one, or set {ENVIRONMENT}")
    return found


def _commands(context: typer.Context) -> dict[str, Any]:
    commands: dict[str, Any] = vars(context.find_root().command)["commands"]
    return commands


def _masked(value: object) -> str:
    """A value without the passwords in its URLs."""
    several = value if isinstance(value, (list, tuple)) else [value]
    return ", ".join(masked_url(str(one)) if "://" in str(one) else str(one) for one in several)
