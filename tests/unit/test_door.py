"""`import penstock`: everything that a program needs, and nothing before it is used."""

from __future__ import annotations

import subprocess
import sys

import penstock


def test_all_names_are_there_and_documented() -> None:
    for name in penstock.__all__:
        assert getattr(penstock, name).__doc__, name
    assert set(dir(penstock)) == set(penstock.__all__) == set(penstock._PLACE_OF)


def test_a_name_that_is_not_there() -> None:
    try:
        penstock.Topologie  # noqa: B018
    except AttributeError as error:
        assert str(error) == "module 'penstock' has no attribute 'Topologie'"
    else:
        raise AssertionError("it should not be there")


def test_importing_it_loads_neither_spark_nor_anything_heavy() -> None:
    heavy = "{'pyspark', 'py4j', 'numba', 'pandas', 'matplotlib', 'sklearn', 'sqlalchemy', 'typer'}"
    code = f"import sys, penstock; penstock.Topology, penstock.InputError; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
