"""The plain query of the fault campaign: what it counts is one history, as the checker sees it."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sql
from faults_checker import DEAD, DROP, judge
from faults_ends import as_numbers, as_results
from faults_plain import STORED, _tables, count, opened, store
from faults_plan import wanted


class State:
    """As Spark keeps it between batches."""

    def __init__(self) -> None:
        self.get: tuple[str] | None = None

    @property
    def exists(self) -> bool:
        return self.get is not None

    def update(self, held: tuple[str]) -> None:
        self.get = held


POISON = {3: DEAD, 5: DROP, 11: DEAD}
EVENTS = [
    {"number": n, "name": f"{n % 3} q.{'ab'[n % 2]}.org", "domain": f"{'ab'[n % 2]}.org", "poison": POISON.get(n, "")}
    for n in range(20)
]


def test_what_the_query_counts_is_one_history() -> None:
    """Rows of a batch come in any order, and state goes from batch to batch."""
    states: dict[str, Any] = {}
    found: dict[str, list[Any]] = {"results": [], "letters": []}
    for batch in (EVENTS[:7], EVENTS[7:]):
        for domain in ("a.org", "b.org"):
            mine = [one for one in reversed(batch) if one["domain"] == domain]
            state = states.setdefault(domain, State())
            for frame in count((domain,), [pd.DataFrame(mine)], state):
                for row in frame.itertuples():
                    found[row.kind].append(json.loads(row.event))
    verdict = judge(wanted(EVENTS), as_results(iter(found["results"])), as_numbers(iter(found["letters"])))
    assert (verdict.one_history, verdict.delivered, verdict.dead_lettered) == (True, 17, 2), verdict.examples


@pytest.mark.parametrize("again", [1, 2])
def test_a_batch_that_is_done_again_is_not_stored_again(tmp_path: Path, again: int) -> None:
    url = f"sqlite:///{tmp_path}/{uuid.uuid4().hex}.db"
    engine = opened(url)
    _tables.create_all(engine)
    rows = [SimpleNamespace(kind="results", id="1", event="{}"), SimpleNamespace(kind="letters", id="2", event="{}")]
    for number in [7] * again + [8]:
        store(url, SimpleNamespace(collect=lambda: rows), number)  # type: ignore[arg-type]
    with engine.connect() as connection:
        counts = [connection.scalar(sql.select(sql.func.count()).select_from(table)) for table in STORED.values()]
    engine.dispose()
    assert counts == [2, 2]
