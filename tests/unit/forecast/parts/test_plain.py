"""Members that need no fit: what they say, and when they say nothing yet."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.forecast.parts.past import Past
from penstock.forecast.parts.plain import PLAIN, SLOW, plain

DAY = 40


def said(rates, day=DAY):
    past = Past(2000)
    for rate in rates:
        past.add(float(rate))
    return plain(past.window, day)[:, 0]


def test_a_constant_is_expected_to_go_on():
    assert said([7.0] * 130).tolist() == pytest.approx([7.0] * PLAIN)


@pytest.mark.parametrize(("rows", "place"), [(12, 1), (DAY, 2), (3 * DAY, SLOW)])
def test_a_mean_waits_for_its_rows_and_then_weighs_the_latest_most(rows, place):
    assert np.isnan(said(np.ones(rows - 1))[place])
    rates = np.concatenate([np.zeros(10 * DAY), np.ones(rows)])
    assert said(rates)[place] == pytest.approx(1 - ((rows - 1) / (rows + 1)) ** rows, abs=0.001)


@pytest.mark.parametrize(("rows", "place"), [(12, 1), (DAY, 2), (3 * DAY, SLOW)])
def test_on_a_line_it_is_as_old_as_the_plain_mean(rows, place):
    line = np.arange(1200.0)
    assert said(line)[place] == pytest.approx(line[-rows:].mean(), abs=0.01 * rows)
