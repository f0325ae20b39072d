"""Workers that do not see the run's folder: the run says so at once, and does not begin with empty state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.engine.driver.attempts import Attempts
from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.errors import EngineError
from penstock.sinks import CollectSink
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant


def count(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    state["count"] = state.get("count", 0) + 1
    return event


def test_a_run_whose_workers_do_not_see_its_folder_ends_at_once(
    tmp_path: Path, collected_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if they had another folder of the same name: the token is removed before they look."""
    leave = Attempts.leave_token

    def hidden(attempts: Attempts) -> str:
        token = leave(attempts)
        (tmp_path / "run" / token).unlink()
        return token

    monkeypatch.setattr(Attempts, "leave_token", hidden)
    topology = Topology("words", pool=2)
    counts = topology.operator("count", count, inputs=topology.source("words"), key="word", key_groups=8)
    topology.operator("end", CollectSink(collected_in), inputs=counts)
    source = TraceSource(constant(100.0, 900.0), [{"word": "w"}])
    run = Run(topology, source, options=RunOptions(folder=tmp_path / "run", retries=50))
    told = r"^worker .* does not see what the run keeps in the folder .*/run: share it with all workers, or"
    with pytest.raises(EngineError, match=told):
        run.start()
    assert run.counters().restarts == 0
