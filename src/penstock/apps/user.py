"""A user's own topology, named as `module:attribute`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from penstock.errors import InputError, PenstockError
from penstock.topology import Topology


def load_topology(reference: str, *, grouping: str | None = None, pools: Mapping[str, int] | None = None) -> Topology:
    """Import the module, from the current folder too, and take its topology or call the function that makes it.

    With another grouping for operators without a key, and other pools, where these are given.
    """
    return _found(reference).tuned(grouping=grouping, pools=pools)


def _found(reference: str) -> Topology:
    module_name, colon, attribute = reference.partition(":")
    if not (colon and module_name and attribute):
        raise InputError(f"topology {reference!r}: must be module:attribute, as in my_app:topology")
    module = _import(reference, module_name)
    try:
        found = getattr(module, attribute)
    except AttributeError:
        public = ", ".join(name for name in vars(module) if not name.startswith("_")) or "nothing"
        raise InputError(f"topology {reference!r}: {module_name} has no {attribute!r}; it has {public}") from None
    if callable(found) and not isinstance(found, type):
        found = _call(reference, found)
    if not isinstance(found, Topology):
        raise InputError(
            f"topology {reference!r}: {attribute} must be a Topology or a function without arguments that returns one; "
            f"got {found!r}"
        )
    return found


def _import(reference: str, name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except PenstockError:
        raise
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{name}.".startswith(f"{missing}."):
            raise InputError(f"topology {reference!r}: no module {missing!r} in {here} or on Python's path") from None
        raise InputError(f"topology {reference!r}: importing {name} failed: {_told(error)}") from error


def _call(reference: str, function: object) -> object:
    try:
        return function()  # type: ignore[operator]
    except PenstockError:
        raise
    except Exception as error:
        raise InputError(f"topology {reference!r}: calling it failed: {_told(error)}") from error


def _told(error: Exception) -> str:
    """`KeyError: 'x' (my_app.py:3)`, at the line that raised it."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error}"  # says the line itself
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})" if trace else ""
    return f"{type(error).__name__}: {error}{place}"
