from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession


@pytest.fixture
def collected_in(tmp_path: Path) -> Path:
    return tmp_path / "collected"


@pytest.fixture(autouse=True)
def no_session_left() -> Iterator[None]:
    """Every test starts and ends without Spark."""
    yield
    assert SparkSession.getActiveSession() is None
