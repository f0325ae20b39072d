"""The checker of the fault campaign finds every way in which what the sinks hold is not one serial history."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from faults_checker import DEAD_LETTER, DROPPED, FAULTS, RESULT, Result, Verdict, Wanted, judge
from hypothesis import given
from hypothesis import strategies as st

Stored = tuple[list[Result], list[int]]

NAMES = {"a": "x", "b": "x", "c": "y"}  # their domains
EVENTS = st.lists(st.tuples(st.sampled_from(sorted(NAMES)), st.sampled_from([RESULT, RESULT, DEAD_LETTER, DROPPED])))


def went_in(drawn: list[tuple[str, str]]) -> list[Wanted]:
    return [Wanted(number, name, NAMES[name], fate) for number, (name, fate) in enumerate(drawn)]


def came_out(wanted: list[Wanted], seed: int = 0) -> Stored:
    """What a serial run stores, whose domains hear of the names in another order; rows lie about in any order."""
    draw, of_name, of_domain = random.Random(seed), Counter[str](), Counter[str]()
    named = []
    for one in wanted:
        if one.fate != DEAD_LETTER:
            of_name[one.name] += 1
            named.append((one, of_name[one.name]))
    results = []
    for one, count in draw.sample(named, len(named)):
        if one.fate == RESULT:
            of_domain[one.domain] += 1
            results.append(Result(one.number, one.name, one.domain, count, of_domain[one.domain]))
    return results, [one.number for one in wanted if one.fate == DEAD_LETTER]


def found(verdict: Verdict) -> set[str]:
    return {name for name in FAULTS if getattr(verdict, name)}


PLAIN = went_in([(name, RESULT) for name in "abcabcaab"] + [("a", DEAD_LETTER), ("b", DROPPED), ("a", RESULT)])


def stored() -> Stored:
    """Results by number, so that tests can name them."""
    results, letters = came_out(PLAIN)
    return sorted(results), letters


def changed(result: Result, **changes: int) -> Result:
    return result._replace(**changes)


@given(EVENTS, st.integers(0, 1000))
def test_a_serial_history_is_one(drawn: list[tuple[str, str]], seed: int) -> None:
    wanted = went_in(drawn)
    verdict = judge(wanted, *came_out(wanted, seed))
    assert verdict.one_history, verdict
    assert verdict.delivered + verdict.dead_lettered + verdict.dropped == len(wanted)


@given(EVENTS.filter(lambda drawn: any(fate == RESULT for _, fate in drawn)), st.integers(0, 1000))
def test_any_result_that_is_missing_or_there_twice_is_found(drawn: list[tuple[str, str]], seed: int) -> None:
    wanted = went_in(drawn)
    results, letters = came_out(wanted, seed)
    one = random.Random(seed).choice(results)
    assert judge(wanted, [other for other in results if other != one], letters).lost == 1
    assert judge(wanted, [*results, one], letters).repeated == 1


def test_a_lost_event() -> None:
    """It leaves a hole in the counts of its name and of its domain, if they counted it."""
    results, letters = stored()
    verdict = judge(PLAIN, results[:4] + results[5:], letters)
    assert verdict.lost == 1
    assert verdict.gaps == 2
    assert verdict.examples["lost"] == ["event 4: no result"]
    assert not verdict.one_history


def test_an_event_that_nobody_has_counted_shows_in_the_last_counts() -> None:
    """Later counts stand where the lost one was to be: only the last of the key is missing."""
    wanted = went_in([("c", RESULT)] * 3)
    kept = [wanted[0], wanted[2]]
    verdict = judge(wanted, *came_out(kept))
    assert found(verdict) == {"lost", "gaps", "wrong_final"}
    assert verdict.wrong_final == 2


def test_a_repeated_event() -> None:
    results, letters = stored()
    verdict = judge(PLAIN, [*results, results[3]], letters)
    assert found(verdict) == {"repeated", "twice"}
    assert verdict.repeated == 1


def test_an_event_that_is_counted_again_under_the_next_number() -> None:
    """As after a restart whose state had counted it already."""
    wanted = went_in([("c", RESULT)] * 2)
    results = [Result(0, "c", "y", 1, 1), Result(1, "c", "y", 3, 3)]
    assert found(judge(wanted, results, [])) == {"gaps", "wrong_final"}


def test_a_gap() -> None:
    results, letters = stored()
    results[0] = changed(results[0], of_name=99)
    verdict = judge(PLAIN, results, letters)
    assert verdict.gaps == 1
    assert verdict.examples["gaps"] == ["name a: 1 is missing"]


def test_a_swap_of_two_events_of_a_name() -> None:
    """All counts are there, each once: only the order of the events tells."""
    results, letters = stored()
    first, second = results[0], results[3]
    results[0], results[3] = changed(first, of_name=second.of_name), changed(second, of_name=first.of_name)
    verdict = judge(PLAIN, results, letters)
    assert found(verdict) == {"out_of_order"}
    assert verdict.examples["out_of_order"] == ["name a: event 0 is number 2, after event 3"]


def test_a_swap_of_two_names_of_a_domain_is_allowed() -> None:
    results, letters = stored()
    first, second = (one for one in results if one.number in (0, 1))
    results[0], results[1] = (
        changed(first, of_domain=second.of_domain),
        changed(second, of_domain=first.of_domain),
    )
    assert judge(PLAIN, results, letters).one_history


def test_a_wrong_last_count() -> None:
    """State that a poisoned event has changed, and that was not undone."""
    results, letters = stored()
    results[-1] = changed(results[-1], of_name=results[-1].of_name + 1)
    assert found(judge(PLAIN, results, letters)) == {"gaps", "wrong_final"}


@pytest.mark.parametrize("fate", [DEAD_LETTER, DROPPED])
def test_a_poisoned_event_that_is_shown_as_a_result(fate: str) -> None:
    results, letters = stored()
    number = next(one.number for one in PLAIN if one.fate == fate)
    verdict = judge(PLAIN, [*results, Result(number, "z", "z", 1, 1)], letters)
    assert verdict.uninvited == 1


def test_dead_letters_are_accounted_for_like_results() -> None:
    results, letters = stored()
    assert found(judge(PLAIN, results, [])) == {"lost"}
    assert found(judge(PLAIN, results, letters * 2)) == {"repeated"}
    assert found(judge(PLAIN, results, [*letters, 0])) == {"uninvited"}


def test_only_a_few_examples_are_shown() -> None:
    verdict = judge(PLAIN, [], [])
    assert verdict.lost == len(PLAIN) - 1
    assert len(verdict.examples["lost"]) == 5
