"""What the notes of a sink tell of a kill."""

from __future__ import annotations

import pytest
from recovery import Delivered, recoveries, summary

RATE = 10.0
DUE_S = [n / RATE for n in range(1000)]
USUAL_S = 0.1


def steadily(numbers: range, delay_s: float = USUAL_S, attempt: int = 1) -> list[Delivered]:
    return [Delivered(DUE_S[n] + delay_s, n, attempt) for n in numbers]


def killed_at_20_s() -> list[Delivered]:
    """Back after 1 s; from the checkpoint at 15 s on all comes at 25 a second; it has caught up at 25 s."""
    again = [Delivered(21.0 + index / 25, n, 2) for index, n in enumerate(range(150, 250))]
    caught_up_s = again[-1].at_s
    later = [Delivered(max(caught_up_s, DUE_S[n] + USUAL_S), n, 2) for n in range(250, 600)]
    return steadily(range(199)) + again + later


def test_back_new_and_calm_after_a_kill() -> None:
    (found,) = recoveries(killed_at_20_s(), [(20.0, 5.0)], DUE_S)
    assert found.since_checkpoint == 5.0
    assert found.back == pytest.approx(1.0, abs=0.01)
    assert found.new == pytest.approx(1.0 + 49 / 25, abs=0.01)  # 49 events had come before
    assert found.calm is not None
    assert 4.0 < found.calm < 5.5


def test_stragglers_of_the_attempt_that_was_killed_are_not_back() -> None:
    straggler = Delivered(20.01, 199, 1)
    (found,) = recoveries([*killed_at_20_s()[:199], straggler], [(20.0, 5.0)], DUE_S)
    assert (found.back, found.new, found.calm) == (None, None, None)


def test_each_kill_has_its_own_time() -> None:
    notes = steadily(range(200)) + steadily(range(196, 300), 1.0, 2) + steadily(range(296, 400), 2.0, 3)
    first, second = recoveries(notes, [(20.5, 1.0), (31.5, 1.0)], DUE_S)
    assert first.new == pytest.approx(0.5, abs=0.01)
    assert second.new == pytest.approx(0.5, abs=0.01)


def test_the_summary_has_medians_and_halves_and_says_what_never_came() -> None:
    found = recoveries(killed_at_20_s(), [(20.0, 5.0)], DUE_S) * 4
    found[3] = recoveries([], [(20.0, 5.0)], DUE_S)[0]
    told = summary(found, lost=0, delay_ms=1000 * USUAL_S)
    assert (told["kills"], told["lost"], told["delay_ms"]) == (4, 0, 100.0)
    assert told["new"]["p50"] == told["new"]["first_half"] == pytest.approx(2.96, abs=0.01)
    assert told["calm"]["never"] == 1
