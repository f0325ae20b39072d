"""Options of several commands: how pairs and Spark's settings are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.cli.options import parse_pairs, parse_settings
from penstock.errors import InputError


@pytest.mark.parametrize(
    ("text", "kind", "pairs"),
    [
        (None, int, {}),
        ("", int, {}),
        ("clean=2", int, {"clean": 2}),
        ("clean=2,store=4", int, {"clean": 2, "store": 4}),
        (" clean = 2 , store=4,", int, {"clean": 2, "store": 4}),
        ("clean=2.5", float, {"clean": 2.5}),
    ],
)
def test_pairs(text: str | None, kind: Any, pairs: dict[str, Any]) -> None:
    assert parse_pairs("--pool", text, kind) == pairs


@pytest.mark.parametrize(
    ("text", "kind", "part"),
    [("clean", int, "clean"), ("clean=", int, "clean="), ("clean=two", int, "clean=two"), ("a=1,b=x", float, "b=x")],
)
def test_a_bad_pair_is_named(text: str, kind: Any, part: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_pairs("--pool", text, kind)
    assert str(caught.value) == f"--pool: must be operator={kind.__name__},…; got {part!r}"


def test_settings_given_one_by_one_go_over_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "spark.conf"
    file.write_text("spark.driver.memory 2g\nspark.app.name words\n")
    found = parse_settings(["spark.driver.memory=4g", "spark.executor.extraJavaOptions=-Da=b"], file)
    assert found == {
        "spark.driver.memory": "4g",
        "spark.app.name": "words",
        "spark.executor.extraJavaOptions": "-Da=b",
    }
    assert parse_settings(None, None) == {}


def test_a_setting_without_a_value_is_named() -> None:
    with pytest.raises(InputError, match=r"^--conf: must be KEY=VALUE; got 'spark.driver.memory'$"):
        parse_settings(["spark.driver.memory"], None)
