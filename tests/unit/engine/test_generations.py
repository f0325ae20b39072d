from __future__ import annotations

import pytest

from penstock.engine.generations import check_pools, turn_over
from penstock.engine.ledger import Ledger
from penstock.engine.messages import Report, Reports
from penstock.engine.positions import Positions
from penstock.errors import InputError
from penstock.metrics.counters import ReplicaCounters
from penstock.topology import Topology


@pytest.fixture
def topology():
    topology = Topology("t", pool=3)
    topology.operator("o", print, inputs=topology.source("s"))
    return topology


def told(ledger, generation, batch, **processed):
    """Reports of replica 0 of each of these, from one process."""
    reports = [
        Report(generation, batch, name, 0, ReplicaCounters(processed=count, sent={"o": count} if name == "s" else {}))
        for name, count in processed.items()
    ]
    ledger.enter(Reports("host", 1, 0, reports), now_s=0.0)


def processed(ledger):
    counters = ledger.counters(0.0, {"o": (0,)})
    return counters.sources["s"], counters.operators["o"].total.processed, counters.operators["o"].backlog


def test_the_next_generation_goes_on_where_the_last_ended(tmp_path, topology):
    ledger, positions = Ledger(topology), Positions(tmp_path / "positions.json")
    positions.end(0, ("s", 0), 100)
    told(ledger, 0, 0, s=100, o=100)
    told(ledger, 0, 1, s=40, o=40)
    turn_over(topology, ledger, positions, generation=1)
    assert positions.start(1, ("s", 0)) == positions.start(0, ("s", 0)) == 140
    assert Positions(tmp_path / "positions.json").start(1, ("s", 0)) == 140  # on disk
    assert processed(ledger) == (140, 140, 0)


def test_a_batch_that_is_done_again_adds_to_what_was_counted(tmp_path, topology):
    ledger, positions = Ledger(topology), Positions(tmp_path / "positions.json")
    told(ledger, 0, 0, s=40, o=40)
    turn_over(topology, ledger, positions, generation=1)
    told(ledger, 1, 0, s=7, o=5)
    assert processed(ledger) == (47, 45, 2)


def test_late_reports_of_the_last_generation_count_no_more(tmp_path, topology):
    ledger, positions = Ledger(topology), Positions(tmp_path / "positions.json")
    told(ledger, 0, 0, s=40, o=40)
    turn_over(topology, ledger, positions, generation=1)
    told(ledger, 0, 0, s=40, o=40)
    assert processed(ledger) == (40, 40, 0)
    assert ledger.heard(0) == set()


def test_pools_that_cannot_be(topology):
    check_pools(topology, {"o": [0, 2]}, {"o": (2,)})
    with pytest.raises(InputError, match=r"operator 'o'.*missing: \[1\], beyond: \[3\]"):
        check_pools(topology, {"o": [0, 3]}, {"o": (0, 1)})
    with pytest.raises(InputError, match=r"operator 'o'.*missing: \[0\]"):
        check_pools(topology, {}, {"o": (0,)})
