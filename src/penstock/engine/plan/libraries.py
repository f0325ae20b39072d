"""Which libraries a program needs: its workers' daemon imports them once, before any worker is forked."""

from __future__ import annotations

import ast
import inspect
import pickletools
import site
import sys
import sysconfig
from collections.abc import Iterable
from importlib.util import resolve_name
from types import ModuleType

PRELOAD = "PENSTOCK_PRELOAD"  # the variable by which the daemon is told, names with commas between them
_PLACES = tuple({*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()})


def libraries_of(blobs: Iterable[bytes]) -> list[str]:
    """Installed modules that pickled operators and sources use, also by way of the user's own modules.

    The user's own are left out: what such a module holds may have to be another in every process, such as a connection,
    a random number generator or an id.
    """
    open_ = [name for blob in blobs for name in _named(blob)]
    seen: set[str] = set()
    found: set[str] = set()
    while open_:
        name = open_.pop()
        module = sys.modules.get(name)
        if module is None or name in seen:
            continue
        seen.add(name)
        if _is_library(name, module):
            found.add(name)
        else:
            open_ += _used_by(module)
    return sorted(found - {"__main__"})


def _named(blob: bytes) -> set[str]:
    """Every text in it that is the name of a module: those of classes and functions, and of modules they use."""
    return {text for _, text, _ in pickletools.genops(blob) if isinstance(text, str) and text in sys.modules}


def _is_library(name: str, module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return name.partition(".")[0] == "penstock" or (file or "").startswith(_PLACES) or name in sys.builtin_module_names


def _used_by(module: ModuleType) -> set[str]:
    """The modules that a module of the user's imports, as its source says."""
    try:
        nodes = list(ast.walk(ast.parse(inspect.getsource(module))))
    except (OSError, TypeError, SyntaxError):  # it has none that could be read
        return set()
    used = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            base = (
                resolve_name("." * node.level + (node.module or ""), module.__package__) if node.level else node.module
            )
            used |= {str(base), *(f"{base}.{alias.name}" for alias in node.names)}
    return used
