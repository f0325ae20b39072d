"""The Twitter application, operator by operator."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.apps.twitter import SERVICE_MS, author, classify, clean

TWEET = {
    "event": "coast_typhoon",
    "time": "2013-11-08T01:00:00.000Z",
    "text": "RT @user: At least 10 people killed in Leyte &amp; Samar http://t.co/x #Haiyan",
    "source": "Media",
    "type": "Affected individuals",
    "informativeness": "Related and informative",
}


def test_the_times_of_the_paper() -> None:
    assert SERVICE_MS == {"clean": 10.0, "classify": 20.0, "author": 15.0, "store": 10.0}


def test_clean_keeps_plain_words() -> None:
    cleaned = clean(TWEET)
    assert cleaned == {
        "event": "coast_typhoon",
        "time": "2013-11-08T01:00:00.000Z",
        "source": "Media",
        "text": "at least 10 people killed in leyte & samar haiyan",
        "words": 9,
        "retweet": True,
    }


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("ten killed and dozens injured", "casualties"),
        ("the bridge collapsed, the road is destroyed", "damage"),
        ("donate to the relief fund", "donations"),
        ("praying for you", "sympathy"),
        ("warning, evacuate the danger zone", "caution"),
        ("police arrested a suspect", "inquiry"),
        ("good morning", "other"),
        ("", "other"),
    ],
)
def test_classify_by_content(text: str, topic: str) -> None:
    classified = classify({"text": text})
    assert classified["topic"] == topic
    assert (classified["score"] > 0) == (topic != "other")


@pytest.mark.parametrize(
    ("source", "text", "kind"),
    [
        ("Government", "", "official"),
        ("NGOs", "", "official"),
        ("Media", "i feel so sad", "press"),
        ("Eyewitness", "", "witness"),
        ("Business", "", "business"),
        ("Outsiders", "breaking news", "private"),
        ("Not labeled", "breaking: officials confirm", "press"),
        ("Not labeled", "i feel so sad", "private"),
        ("Not applicable", "one silver coin", "unknown"),
    ],
)
def test_author_by_the_kind_of_source(source: str, text: str, kind: str) -> None:
    authored: dict[str, Any] = author({"source": source, "text": text})
    assert authored["author"] == kind
    assert 0.0 <= authored["credibility"] <= 1.0
