"""`[attach]` of penstock.toml."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from penstock.attached.attach import attach
from penstock.attached.config import TYPES, attach_options, from_file
from penstock.errors import InputError

RIGHT = """
[attach]
executors = "2..6"
target-ms = 5000
forecaster = "none"
calendar = ["freeze daily 08:00-10:00", "freeze sat,sun 20:00-22:00"]

[run]
td = 2
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "penstock.toml"
    path.write_text(text)
    return path


def test_it_has_all_that_attach_takes_but_queries_and_functions() -> None:
    assert set(TYPES) == set(inspect.signature(attach).parameters) - {"query", "lag", "config"}


def test_options_are_read(tmp_path: Path) -> None:
    assert attach_options(write(tmp_path, RIGHT)) == {
        "executors": "2..6",
        "target_ms": 5000,
        "forecaster": None,
        "calendar": "freeze daily 08:00-10:00; freeze sat,sun 20:00-22:00",
    }


def test_what_is_given_goes_before_the_file(tmp_path: Path) -> None:
    @from_file
    def seen(
        query: str,
        executors: str = "1..8",
        target_ms: float = 10_000,
        late: float = 0.01,
        *,
        forecaster: str | None = "auto",
        calendar: str | None = None,
        config: Path | None = None,
    ) -> tuple[object, ...]:
        return query, executors, target_ms, forecaster, late

    path = write(tmp_path, RIGHT)
    assert seen("q", "1..3", late=0.1, config=path) == ("q", "1..3", 5000, None, 0.1)
    assert seen("q", late=0.1) == ("q", "1..8", 10_000, "auto", 0.1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[attach]\nexecutor = 3", "[attach]: no such key 'executor'; known: calendar,"),
        ("[attach]\nexecutor = 3", "did you mean 'executors'?"),
        ("[attach]\nlate = 'few'", "[attach]: Expected `float`, got `str`, at `late`"),
        ("[run]\ntd = 2", "must have a table [attach]; has run"),
        ("attach = 3", "must be tables of options"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        attach_options(write(tmp_path, text))
    assert told in str(caught.value)
