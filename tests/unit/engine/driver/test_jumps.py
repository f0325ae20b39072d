"""Who is told of a jump, and of what rate."""

from penstock.engine.driver.jumps import JumpListeners
from penstock.engine.protocol.messages import Report, Reports
from penstock.metrics.counters import ReplicaCounters


def reports(**jumps: float) -> Reports:
    said = [Report(0, 0, source, 0, ReplicaCounters(), jump=jump) for source, jump in jumps.items()]
    return Reports("here", 1, 0, said)


def test_the_jump_of_one_slot_counts_for_all_slots_of_its_source():
    listeners, told = JumpListeners({"texts": 4}.__getitem__), []
    listeners.subscribe(told.append)
    listeners.subscribe(told.append)
    listeners.hear(reports(texts=25.0, clicks=0.0))
    assert told == [{"texts": 100.0}] * 2


def test_nobody_is_told_where_nothing_jumps():
    listeners, told = JumpListeners(lambda _: 1), []
    listeners.subscribe(told.append)
    listeners.hear(reports(texts=0.0))
    assert told == []
