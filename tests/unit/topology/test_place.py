"""Where something was declared: the line of the user's file, however deep inside Penstock it is noticed."""

from __future__ import annotations

import sys

from penstock.topology import Topology
from penstock.topology.place import caller_place


def this_line() -> int:
    return sys._getframe(1).f_lineno


def test_the_line_of_the_caller() -> None:
    assert caller_place() == f"test_place.py:{this_line()}"


def test_an_operator_knows_the_line_that_declared_it() -> None:
    topology = Topology("app")
    source, line = topology.source("events"), this_line()
    assert source.place == f"test_place.py:{line}"
    operator, line = topology.operator("parse", len, inputs=source), this_line()
    assert operator.place == f"test_place.py:{line}"
    assert str(operator) == f"operator 'parse' (test_place.py:{line})"


def test_a_package_whose_name_only_begins_alike_is_the_users() -> None:
    """`penstock_jobs` beside `penstock` used to count as Penstock itself."""
    import penstock.topology.place as module

    code = compile("place = caller_place()", f"{module._PACKAGE.rstrip('/')}_jobs/app.py", "exec")
    names = {"caller_place": caller_place}
    exec(code, names)
    assert names["place"] == "app.py:1"


def test_a_shipped_app_counts_as_the_users_code() -> None:
    import penstock.topology.place as module

    code = compile("\nplace = caller_place()", f"{module._PACKAGE.rstrip('/')}/apps/twitter.py", "exec")
    names = {"caller_place": caller_place}
    exec(code, names)
    assert names["place"] == "twitter.py:2"
