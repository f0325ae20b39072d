"""Lessons and bins, worked out by hand, and the file they are kept in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.policy.learning import EXPLORED, Knowledge, Lesson, load_knowledge, save_knowledge


def test_an_overload_moves_on_to_one_more():
    """0 + 0.5 · (1 − 0) = 0.5 for two, so 0.5 or more for one; three are hoped to have none."""
    lesson = Lesson(2)
    lesson.learn(2, 1.0)
    assert (lesson.replicas, lesson.pressures) == (3, [0.5, 0.0, 0.0])


def test_idleness_moves_on_to_one_fewer():
    lesson = Lesson(4)
    lesson.learn(4, -0.4)
    assert (lesson.replicas, lesson.pressures) == (3, [0.0, 0.0, -0.2])


def test_no_pressure_stays():
    lesson = Lesson(4)
    lesson.learn(4, 0.0)
    assert (lesson.replicas, lesson.pressures, lesson.visits) == (4, [0.0, 0.0, 0.0], 1)


def test_of_two_numbers_that_are_both_wrong_the_less_wrong_one_stays():
    """One is a little too busy (0.1), two are rather idle (−0.4): 0.05 < 0.2, so one, though it tried two."""
    lesson = Lesson(1)
    lesson.learn(1, 0.1)
    assert lesson.replicas == 2
    lesson.learn(2, -0.4)
    assert (lesson.replicas, lesson.pressures) == (1, [0.05, 0.05, -0.2])
    lesson.learn(1, 0.1)
    assert (lesson.replicas, lesson.pressures[1]) == (1, pytest.approx(0.075))


def test_there_is_no_less_than_one():
    lesson = Lesson(1)
    for _ in range(9):
        lesson.learn(1, -1.0)
    assert lesson.replicas == 1


def test_an_overload_says_it_of_fewer_and_idleness_of_more():
    """One more was tried and is 0.6 too busy: 0.3 for it, and no less for fewer. So it goes on from there."""
    lesson = Lesson(5)
    lesson.learn(6, 0.6)
    assert (lesson.replicas, lesson.pressures) == (6, [0.3, 0.3, 0.0])
    lesson = Lesson(5)
    lesson.learn(4, -0.6)
    assert (lesson.replicas, lesson.pressures) == (4, [0.0, -0.3, -0.3])


@pytest.mark.parametrize(("replicas", "pressure", "after"), [(9, 0.5, 10), (1, -0.5, 1), (2, -0.5, 1)])
def test_what_is_seen_far_away_counts_where_it_proves_the_number_wrong(replicas, pressure, after):
    lesson = Lesson(5)
    lesson.learn(replicas, pressure)
    assert (lesson.replicas, lesson.visits) == (after, 1)


@pytest.mark.parametrize(("replicas", "pressure"), [(9, -0.5), (9, 0.0), (1, 0.5), (2, 0.0)])
def test_what_else_is_seen_far_away_teaches_nothing(replicas, pressure):
    lesson = Lesson(5)
    lesson.learn(replicas, pressure)
    assert lesson == Lesson(5)


def test_visits_are_counted_as_long_as_they_matter():
    lesson = Lesson(1)
    for _ in range(EXPLORED + 9):
        lesson.learn(1, 0.0)
    assert lesson.visits == EXPLORED


@given(st.lists(st.tuples(st.integers(1, 20), st.floats(-1, 1)), max_size=60))
def test_pressures_fall_with_replicas_and_stay_within_one(seen):
    lesson = Lesson(3)
    for replicas, pressure in seen:
        lesson.learn(replicas, pressure)
        low, middle, high = lesson.pressures
        assert 1 >= low >= middle >= high >= -1
        assert 1 <= lesson.replicas <= 21


@pytest.mark.parametrize(
    ("rate", "bin_"),
    [(1.0, 0), (1.24, 0), (1.25, 1), (1.25**7, 7), (100.0, 20), (0.0, -31), (1e-9, -31), (1e9, 92), (1e30, 92)],
)
def test_bins_have_relative_bounds(rate, bin_):
    """ln 100 / ln 1.25 = 20.6; ln 0.001 / ln 1.25 = −30.96; ln 10⁹ / ln 1.25 = 92.9."""
    assert Knowledge(step=1.25).bin(rate) == bin_


def test_the_nearest_bin_is_the_higher_of_two():
    knowledge = Knowledge(step=1.25)
    for bin_, replicas in ((3, 1), (7, 4), (20, 9)):
        knowledge.begin("a", bin_, replicas)
    assert [knowledge.nearest("a", bin_).replicas for bin_ in (-5, 4, 5, 9, 99)] == [1, 1, 4, 4, 9]
    assert knowledge.nearest("b", 5) is None
    assert knowledge.lesson("a", 5) is None


def test_a_file_gives_back_what_was_written(tmp_path):
    knowledge = Knowledge(step=1.25)
    knowledge.begin("a", -3, 2).learn(2, 1.0)
    knowledge.begin("a", 20, 7)
    save_knowledge(knowledge, tmp_path / "known.json")
    assert load_knowledge(tmp_path / "known.json") == knowledge


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "Input data was truncated"),
        ("[]", "Expected `object`, got `array`"),
        ('{"step": 1.25, "operators": {"a": {"3": {"replicas": 0}}}}', "Expected `int` >= 1"),
        ('{"step": 1.25, "operators": {"a": {"3": {"replicas": 1, "pressures": [0]}}}}', "length >= 3"),
        ('{"step": 1.25, "operators": {"a": {"x": {"replicas": 1}}}}', "Expected `int`, got `str`"),
        ('{"step": 1.0}', "Expected `float` >= 1.01"),
        ('{"step": 1.25, "weights": []}', "unknown field `weights`"),
    ],
)
def test_a_file_that_is_something_else(tmp_path, text, told):
    file = tmp_path / "known.json"
    file.write_text(text)
    with pytest.raises(
        InputError, match=r"policy 'learning': knowledge must be what `save` wrote; got '.*known.json'"
    ) as e:
        load_knowledge(file)
    assert told in str(e.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"knowledge must be a file to read; got '.*gone.json' \(No such file"):
        load_knowledge(tmp_path / "gone.json")
