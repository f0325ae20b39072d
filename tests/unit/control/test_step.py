from __future__ import annotations

from penstock.control.step import Step, interval_record
from penstock.metrics.rows import TimetableRow
from penstock.policy.base import Plan, Target
from penstock.testing.loads import load, snapshot

SEEN = snapshot({"in": 10}, [load("a", {"in": 10})])


def test_timetables_become_rows_counted_from_the_next_interval():
    plan = Plan({"a": Target(3, "needs 3")}, timetables={"a": (3, 5)})
    record = interval_record(Step(number=7, time_s=1.0, snapshot=SEEN, plan=plan), SEEN)
    assert record.timetables == (
        TimetableRow(number=7, operator="a", step=1, replicas=3),
        TimetableRow(number=7, operator="a", step=2, replicas=5),
    )


def test_a_source_that_cannot_be_trusted_is_not_recorded():
    seen = snapshot({"x": 0, "y": 7}, [], incomplete={"x": "stale"})
    assert interval_record(Step(number=3, time_s=6.0, snapshot=seen), seen).interval.source_input == {"y": 7}


def test_no_plan_no_timetable():
    assert interval_record(Step(number=7, time_s=1.0, snapshot=SEEN), SEEN).timetables == ()
