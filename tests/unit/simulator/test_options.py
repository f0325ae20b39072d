from __future__ import annotations

import re

import pytest

from penstock.errors import InputError
from penstock.simulator.options import SimulationOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"actuation": "restrat"}, "actuation: no such name 'restrat'; known: pool, restart, restart-lossy; did you"),
        ({"hop_s": -0.1}, "hop_s must be at least 0; got -0.1"),
        ({"hop_s": float("nan")}, "hop_s must be at least 0; got nan"),
        ({"activation_delay_s": -1}, "activation_delay_s must be at least 0; got -1"),
        ({"restart_s": float("inf")}, "restart_s must be at least 0; got inf"),
        ({"first_step_s": -2.0}, "first_step_s must be at least 0; got -2.0"),
        ({"td_s": 0}, "td_s must be above 0; got 0"),
        ({"target_s": 0.0}, "target_s must be above 0; got 0.0"),
        ({"t_out_s": 0.0}, "t_out_s must be above 0; got 0.0"),
        ({"q_size": 0}, "q_size must be at least 1; got 0"),
        ({"overhead_s": {"clean": -0.5}}, "overhead_s of 'clean' must be at least 0; got -0.5"),
    ],
)
def test_a_bad_option_is_named_with_its_rule_and_value(options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        SimulationOptions(**options)


def test_bounds_are_off_by_default():
    options = SimulationOptions()
    assert (options.t_out_s, options.q_size, options.actuation) == (None, None, "pool")
    assert SimulationOptions(hop_s=0.0, activation_delay_s=0.0, restart_s=0.0, q_size=1).q_size == 1
