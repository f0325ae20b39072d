"""A user's own topology by `module:attribute`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.apps import load_topology
from penstock.errors import InputError, TopologyError

MODULE = """
from penstock.topology import Topology

def build():
    topology = Topology("mine")
    topology.operator("end", print, inputs=topology.source("events"))
    return topology

topology = build()
number = 7

def with_arguments(pool):
    return build()

def wrong():
    return number
"""


@pytest.fixture(autouse=True)
def user_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with a module of the user's; what it imports is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    (tmp_path / "my_app.py").write_text(MODULE)
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def refusal(reference: str) -> str:
    with pytest.raises(InputError) as caught:
        load_topology(reference)
    return str(caught.value)


@pytest.mark.parametrize("attribute", ["topology", "build"])
def test_a_topology_or_a_function_that_makes_one(attribute: str) -> None:
    assert load_topology(f"my_app:{attribute}").name == "mine"


def test_a_module_in_a_package(user_folder: Path) -> None:
    (user_folder / "jobs").mkdir()
    (user_folder / "jobs" / "daily.py").write_text(MODULE)
    assert load_topology("jobs.daily:build").levels() == [("end",)]


@pytest.mark.parametrize("reference", ["my_app", "my_app:", ":topology", ":", ""])
def test_no_colon_or_nothing_beside_it(reference: str) -> None:
    expected = f"topology {reference!r}: must be module:attribute, as in my_app:topology"
    assert refusal(reference) == expected


@pytest.mark.parametrize(("module", "missing"), [("nowhere", "nowhere"), ("nowhere.deep", "nowhere")])
def test_no_such_module(module: str, missing: str, user_folder: Path) -> None:
    expected = f"topology '{module}:topology': no module '{missing}' in {user_folder} or on Python's path"
    assert refusal(f"{module}:topology") == expected


def test_no_such_attribute() -> None:
    expected = (
        "topology 'my_app:topologie': my_app has no 'topologie'; "
        "it has Topology, build, topology, number, with_arguments, wrong"
    )
    assert refusal("my_app:topologie") == expected


RULE = "must be a Topology or a function without arguments that returns one"


@pytest.mark.parametrize(("attribute", "got"), [("number", "7"), ("wrong", "7")])
def test_something_else(attribute: str, got: str) -> None:
    assert refusal(f"my_app:{attribute}") == f"topology 'my_app:{attribute}': {attribute} {RULE}; got {got}"


def test_the_class_itself() -> None:
    assert RULE in refusal("my_app:Topology")


def test_a_function_that_wants_arguments() -> None:
    message = refusal("my_app:with_arguments")
    assert message.startswith(
        "topology 'my_app:with_arguments': calling it failed: TypeError: with_arguments() missing"
    )


def test_an_exception_in_the_module_is_told_with_its_line(user_folder: Path) -> None:
    (user_folder / "broken.py").write_text("settings = {}\nsettings['pool']\n")
    expected = "topology 'broken:topology': importing broken failed: KeyError: 'pool' (broken.py:2)"
    assert refusal("broken:topology") == expected


def test_a_module_that_the_users_module_lacks(user_folder: Path) -> None:
    (user_folder / "needy.py").write_text("\nimport not_installed_anywhere\n")
    message = refusal("needy:topology")
    assert message.startswith("topology 'needy:topology': importing needy failed: ModuleNotFoundError: ")
    assert message.endswith("(needy.py:2)")


def test_a_module_with_a_syntax_error(user_folder: Path) -> None:
    (user_folder / "slip.py").write_text("topology = (\n")
    expected = "topology 'slip:topology': importing slip failed: SyntaxError: '(' was never closed (slip.py, line 1)"
    assert refusal("slip:topology") == expected


def test_an_exception_in_the_function_is_told_with_its_line(user_folder: Path) -> None:
    (user_folder / "fails.py").write_text("def build():\n    return 1 / 0\n")
    expected = "topology 'fails:build': calling it failed: ZeroDivisionError: division by zero (fails.py:2)"
    assert refusal("fails:build") == expected


@pytest.mark.parametrize("call", ["", "build()"], ids=["in the function", "in the module"])
def test_a_rule_the_topology_breaks_is_told_as_it_is(user_folder: Path, call: str) -> None:
    (user_folder / "bad_pool.py").write_text(
        MODULE.replace("topology = build()", call).replace("print,", "print, pool=0,")
    )
    with pytest.raises(TopologyError, match=r"^operator 'end' \(bad_pool.py:6\): pool must be at least 1; got 0$"):
        load_topology("bad_pool:build")
