"""The options of a run, and the rules they keep."""

from __future__ import annotations

import math
from typing import Any

import pytest

from penstock.engine.options import RunOptions
from penstock.errors import InputError


def test_nothing_is_dropped_by_default() -> None:
    options = RunOptions()
    assert (options.mode, options.t_out_s, options.q_size) == ("realtime", None, None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mode": "batch"}, "mode must be one of realtime, microbatch; got 'batch'"),
        ({"t_out_s": 0}, "t_out_s must be above 0; got 0"),
        ({"t_out_s": math.nan}, "t_out_s must be above 0; got nan"),
        ({"t_out_s": math.inf}, "t_out_s must be above 0; got inf"),
        ({"report_every_s": -1.0}, "report_every_s must be above 0; got -1.0"),
        ({"start_timeout_s": 0.0}, "start_timeout_s must be above 0; got 0.0"),
        ({"checkpoint_every_s": 0.9}, "checkpoint_every_s must be at least 1; got 0.9"),
        ({"checkpoint_every_s": math.nan}, "checkpoint_every_s must be at least 1; got nan"),
        ({"silent_s": 4}, "silent_s must be at least 5; got 4"),
        ({"checkpoint_timeout_s": 0.0}, "checkpoint_timeout_s must be above 0; got 0.0"),
        ({"q_size": 0}, "q_size must be whole and at least 1; got 0"),
        ({"q_size": 2.5}, "q_size must be whole and at least 1; got 2.5"),
        ({"queue_bytes": 1000}, "queue_bytes must be whole and at least 1048576; got 1000"),
        ({"source_slots": 0}, "source_slots must be whole and at least 1; got 0"),
        ({"encrypt": "yes"}, "encrypt must be True, False or None; got 'yes'"),
        ({"ports": "40000"}, "ports must be two of 1 to 65535, as 40000-40100; got '40000'"),
        ({"ports": "0-70000"}, "ports must be two of 1 to 65535, as 40000-40100; got '0-70000'"),
        ({"retries": -1}, "retries must be whole and at least 0; got -1"),
        (
            {"standby": True, "mode": "microbatch"},
            "standby goes with mode 'realtime'; in micro-batch mode every batch has its own processes",
        ),
    ],
)
def test_a_broken_rule_names_option_and_value(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        RunOptions(**given)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "given",
    [
        {"mode": "microbatch"},
        {"t_out_s": 0.1, "q_size": 1},
        {"retries": 0},
        {"checkpoint_every_s": 1},
        {"ports": "1-1", "encrypt": False},
    ],
)
def test_the_least_allowed_values(given: dict[str, Any]) -> None:
    options = RunOptions(**given)
    assert {name: getattr(options, name) for name in given} == given
