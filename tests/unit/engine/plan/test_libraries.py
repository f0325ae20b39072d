"""Which libraries the workers' daemon imports for a program."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import cloudpickle
import pytest

from penstock.engine.plan.libraries import libraries_of
from penstock.sinks import DatabaseSink

OWN = """
import colorsys
import xml.dom.minidom
import own_helper_of_a_test

def shade(event):
    return colorsys.rgb_to_hls(*event)
"""
HELPER = "from statistics import median\n"


@pytest.fixture
def shade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., object]]:
    """A function in a module of the user's own, which uses another, each with a library."""
    (tmp_path / "own_of_a_test.py").write_text(OWN)
    (tmp_path / "own_helper_of_a_test.py").write_text(HELPER)
    monkeypatch.syspath_prepend(tmp_path)
    made: Callable[..., object] = importlib.import_module("own_of_a_test").shade
    yield made
    for name in ("own_of_a_test", "own_helper_of_a_test"):
        del sys.modules[name]


def test_libraries_are_found_through_modules_of_the_users_own_which_are_left_to_workers(
    shade: Callable[..., object],
) -> None:
    """Such a module may hold what every process needs for itself."""
    found = libraries_of([cloudpickle.dumps(shade)])
    assert {"colorsys", "statistics", "xml.dom.minidom"} <= set(found)
    assert not [name for name in found if "own" in name]


def test_a_function_that_travels_by_value_names_the_modules_it_uses() -> None:
    """As all functions of a script do."""
    scope: dict[str, object] = {"__name__": "__main__"}
    exec("import colorsys\ndef shade(event):\n    return colorsys.rgb_to_hls(*event)", scope)
    assert "colorsys" in libraries_of([cloudpickle.dumps(scope["shade"])])


def test_our_own_parts_are_libraries() -> None:
    """A sink's module is imported once for all."""
    assert "penstock.sinks.database" in libraries_of([cloudpickle.dumps(DatabaseSink)])


def test_text_that_names_no_module_is_nothing() -> None:
    """Nor is anything found in plain data."""
    assert libraries_of([cloudpickle.dumps({"a text": ["more", 1]})]) == []
