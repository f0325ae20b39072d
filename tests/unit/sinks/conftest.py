"""Ends for tests of sinks, a test's own: tables in SQLite and PostgreSQL, topics in Kafka."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from penstock.sinks.database import table_of
from penstock.sinks.tables import connect, database_url

from ...services.kafka import Kafka


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'events.db'}"
    return str(request.getfixturevalue("database").url)


@pytest.fixture
def table(url: str) -> Iterator[str]:
    """The name of a table of this test's own."""
    name = f"events_{uuid.uuid4().hex[:8]}"
    yield name
    engine = connect(database_url(url))
    table_of(name).drop(engine, checkfirst=True)
    engine.dispose()


@pytest.fixture
def stored(url: str, table: str) -> Callable[[], list[tuple[str, str, Any]]]:
    """The rows in the table: run, id, event."""

    def read() -> list[tuple[str, str, Any]]:
        engine = sql.create_engine(database_url(url))
        with engine.connect() as connection:
            rows = connection.execute(sql.select(table_of(table)).order_by("run", "id")).all()
        engine.dispose()
        return [(row.run, row.id, json.loads(row.event)) for row in rows]

    return read


@pytest.fixture
def topic(kafka: Kafka) -> str:
    """The name of a topic of this test's own."""
    return kafka.create(f"out-{uuid.uuid4().hex[:8]}", partitions=2)
