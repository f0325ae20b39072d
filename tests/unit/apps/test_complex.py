"""The complex application: split, filter, branches that meet, edges that skip a level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from penstock.apps import payloads
from penstock.apps.complex import dispatch, headline, opinion, profile, sentiment, topics, urgency
from penstock.topology import To, Topology

TWEET = {
    "event": "valley_quake",
    "text": "BREAKING: police confirm 7 killed, bridge destroyed http://t.co/x",
    "source": "Media",
    "informativeness": "Related and informative",
    "age": 40,
    "code": 48,
}
SAID = {**TWEET, "text": "I feel so sad, no hope", "source": "Outsiders"}


def sent_to(sent: To | None) -> str | None:
    return sent.stream if sent else None


def test_two_of_the_three_ends_skip_a_level(build: Callable[..., Topology]) -> None:
    topology = build("complex")
    assert len(topology.operators) == 8
    assert topology.predecessors("store") == ("topics", "urgency", "profile")
    ends = {name: topology.level("store") - topology.level(name) for name in topology.predecessors("store")}
    assert ends == {"topics": 2, "urgency": 2, "profile": 1}


def test_every_event_is_accounted_for(build: Callable[..., Topology], run_in_memory: Callable[..., Any]) -> None:
    events = payloads("complex", seed=5)
    run = run_in_memory(build("complex"), events)
    news, opinions = run.emitted["dispatch.news"], run.emitted["dispatch.opinions"]
    unrelated = sum(event["informativeness"] in ("Not related", "Not applicable") for event in events)
    assert news + opinions + unrelated == len(events)
    kinds = Counter(row["kind"] for row in run.stored["store"])
    assert kinds["opinion"] == opinions
    assert kinds["topic"] == run.emitted["topics.out"] > news
    assert 0 < kinds["alert"] < news


def test_dispatch_by_who_speaks_and_in_what_words() -> None:
    assert sent_to(dispatch(TWEET)) == "news"
    assert sent_to(dispatch(SAID)) == "opinions"
    assert sent_to(dispatch({**TWEET, "source": "Outsiders"})) == "news"
    assert dispatch({**TWEET, "informativeness": "Not related"}) is None


def test_news_give_an_event_for_each_topic() -> None:
    found = topics(headline(TWEET))
    assert [event["topic"] for event in found] == ["inquiry", "damage", "casualties"]
    assert {event["headline"] for event in found} == {"breaking: police confirm 7 killed, bridge destroyed"}
    assert [event["topic"] for event in topics({"text": "nothing much"})] == ["general"]


def test_only_urgent_news_pass() -> None:
    alert = urgency(headline(TWEET))
    assert alert is not None
    assert (alert["kind"], alert["score"]) == ("alert", 6.0)
    assert urgency({"text": "a map of the valley"}) is None


def test_opinions_get_a_stance_and_a_profile() -> None:
    stored = profile(sentiment(opinion(SAID)))
    assert stored == {
        "kind": "opinion",
        "event": "valley_quake",
        "text": "i feel so sad, no hope",
        "score": -1.0,
        "stance": "negative",
        "age_band": "35-49",
        "city": "Boston",
        "region": "north_america",
    }
