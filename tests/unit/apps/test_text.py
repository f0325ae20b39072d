"""Texts: cleaned, cut into words, scored."""

from __future__ import annotations

import pytest

from penstock.apps.text import clean_text, hits, polarity, stance, tokens, topics


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("RT @user: Help &amp; hope", "help & hope"),
        ("see http://t.co/abc now", "see now"),
        ("cut off http:…", "cut off"),
        ("@user you said RT @other", "you said rt"),
        ("#PrayForBoston  now", "prayforboston now"),
        ("Метеорит в #Челябинск", "метеорит в челябинск"),
        ("http://t.co/x", ""),
        ("", ""),
    ],
)
def test_clean_text(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned


def test_tokens_of_any_script() -> None:
    assert tokens("can’t stop: метеорит, 7 km_h!") == ["can't", "stop", "метеорит", "7", "km", "h"]
    assert tokens("...") == []


def test_hits_know_the_plural() -> None:
    assert hits(["flood", "floods", "dry"], {"flood": 2.0}) == 4.0
    assert hits([], {"flood": 2.0}) == 0.0


def test_topics_come_with_the_highest_score_first_and_by_name_on_a_tie() -> None:
    assert list(topics(["killed", "destroyed", "bridge"]).items()) == [("damage", 3.0), ("casualties", 2.0)]
    assert list(topics(["killed", "donate"])) == ["casualties", "donations"]
    assert topics(["morning"]) == {}


@pytest.mark.parametrize(
    ("words", "score"),
    [
        ("brave good people", 1.0),
        ("awful news", -1.0),
        ("not good", -1.0),
        ("never sad", 1.0),
        ("good but sad", 0.0),
        ("good good sad", pytest.approx(1 / 3)),
        ("bridge", 0.0),
        ("", 0.0),
    ],
)
def test_polarity(words: str, score: float) -> None:
    assert polarity(words.split()) == score


def test_stance() -> None:
    assert [stance(score) for score in (0.1, 0.0, -0.1)] == ["positive", "neutral", "negative"]
