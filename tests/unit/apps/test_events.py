"""Events: real ones from files where present, made ones by seed otherwise, with the same fields."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.apps import PayloadOptions, payloads
from penstock.apps.cities import CITIES, find_city
from penstock.apps.events.queries import FILE as QUERIES_FILE
from penstock.apps.events.tweets import FILE as TWEETS_FILE
from penstock.apps.events.values import values
from penstock.apps.people import age_band
from penstock.errors import InputError
from penstock.workload import data_folder

TWEET = {
    "event": "river_flood",
    "time": "2013-04-15T18:50:00.000Z",
    "text": "stay safe",
    "source": "Media",
    "type": "Caution and advice",
    "informativeness": "Related and informative",
}
HEADER = "time_s,client,server,proto,query,qtype,rcode,rtt_s,n_answers"


def tweets_file(folder: Path, *lines: str) -> Path:
    (folder / TWEETS_FILE).write_text("\n".join(lines), encoding="utf-8")
    return folder


def queries_file(folder: Path, *lines: str) -> Path:
    (folder / QUERIES_FILE).write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("app", "fields"),
    [
        ("twitter", "event time text source type informativeness"),
        ("complex", "event time text source type informativeness age code"),
        ("complex_sensitive", "event time text source type informativeness age code"),
        ("dns", "time_s client server proto query qtype rcode answered rtt_s n_answers"),
        ("wordcount", "sentence"),
        ("insensitive", "number value"),
        ("sensitive", "number value"),
    ],
)
def test_fields_of_made_events(app: str, fields: str) -> None:
    events = payloads(app)
    assert len(events) == 4000
    assert list(events[0]) == fields.split()


def test_real_tweets_are_read(tmp_path: Path) -> None:
    folder = tweets_file(tmp_path, json.dumps(TWEET), json.dumps({**TWEET, "text": "метеорит"}))
    read = payloads("twitter", folder)
    assert [event["text"] for event in read] == ["stay safe", "метеорит"]
    assert read[0] == TWEET


def test_opinions_are_real_tweets_with_a_made_age_and_place(tmp_path: Path) -> None:
    folder = tweets_file(tmp_path, *[json.dumps(TWEET)] * 300)
    opinions = payloads("complex", folder, seed=1)
    assert all({**event, **TWEET} == event for event in opinions)
    assert {event["code"] for event in opinions} <= set(range(64))
    assert all(13 <= event["age"] <= 90 for event in opinions)
    assert opinions == payloads("complex", folder, seed=1) != payloads("complex", folder, seed=2)


def test_real_queries_are_read(tmp_path: Path) -> None:
    folder = queries_file(
        tmp_path,
        "0.5,10.0.0.1,10.0.0.2,udp,www.example.com,A,NOERROR,0.002,2",
        "0.7,10.0.0.1,10.0.0.2,udp,*,NBSTAT,-,,0",
    )
    first, second = payloads("dns", folder)
    assert first == {
        "time_s": 0.5,
        "client": "10.0.0.1",
        "server": "10.0.0.2",
        "proto": "udp",
        "query": "www.example.com",
        "qtype": "A",
        "rcode": "NOERROR",
        "answered": True,
        "rtt_s": 0.002,
        "n_answers": 2,
    }
    assert (second["answered"], second["rtt_s"]) == (False, 0.0)
    assert list(second) == list(payloads("dns")[0]), "real and made ones have the same fields"


def test_compressed_files_are_read_the_same(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    for folder in (plain, packed):
        folder.mkdir()
    tweets_file(plain, json.dumps(TWEET))
    queries_file(plain, "0.5,10.0.0.1,10.0.0.2,udp,www.example.com,A,NOERROR,0.002,2")
    for file in plain.iterdir():
        (packed / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    for app in ("twitter", "dns", "complex"):
        assert payloads(app, packed) == payloads(app, plain) != payloads(app)


def test_the_real_queries_that_come_with_the_project() -> None:
    queries = payloads("dns", data_folder("events"))
    assert len(queries) == 12_937
    assert list(queries[0]) == list(payloads("dns")[0])
    assert payloads("twitter", data_folder("events")) == payloads("twitter"), "there are no real tweets"


@pytest.mark.parametrize("app", ["twitter", "dns", "complex"])
def test_made_events_where_the_folder_has_no_file(app: str, tmp_path: Path) -> None:
    assert payloads(app, tmp_path, seed=4) == payloads(app, seed=4)


@pytest.mark.parametrize("line", ["{", "[]", json.dumps({**TWEET, "text": 5}), '{"text": "a"}', ""])
def test_a_line_that_is_no_tweet(line: str, tmp_path: Path) -> None:
    folder = tweets_file(tmp_path, json.dumps(TWEET), line, json.dumps(TWEET))
    with pytest.raises(InputError, match=rf"tweets \({TWEETS_FILE}:2\): each line must be a tweet in JSON; "):
        payloads("twitter", folder)


@pytest.mark.parametrize(
    "line", ["x,a,b,udp,n,A,NOERROR,0.1,2", "0.1,a,b,udp,n,A,NOERROR,0.1,two", "0.1,a,b,udp,n,A,NOERROR,0.1"]
)
def test_a_line_that_is_no_query(line: str, tmp_path: Path) -> None:
    folder = queries_file(tmp_path, "0.1,a,b,udp,n,A,NOERROR,0.1,2", line)
    with pytest.raises(InputError, match=rf"queries \({QUERIES_FILE}:3\): each line must be a DNS query; "):
        payloads("dns", folder)


def test_files_without_events(tmp_path: Path) -> None:
    tweets_file(tmp_path)
    queries_file(tmp_path)
    with pytest.raises(InputError, match="the file must hold at least one tweet; got none"):
        payloads("twitter", tmp_path)
    with pytest.raises(InputError, match="the file must hold at least one query; got none"):
        payloads("dns", tmp_path)


def test_made_queries_look_ordinary_random_and_like_tunnels() -> None:
    names = [str(event["query"]) for event in payloads("dns", seed=1)]
    assert sum(len(name) > 90 for name in names) > 20
    assert sum(name.endswith(".in-addr.arpa") for name in names) > 50
    assert "*" in names
    assert Counter(names).most_common(1)[0][1] > 40


def drawn(app: str, field: str, **options: Any) -> Counter[Any]:
    return Counter(event[field] for event in payloads(app, seed=7, **options))


@pytest.mark.parametrize(("app", "field"), [("sensitive", "value"), ("insensitive", "value"), ("complex", "code")])
def test_values_are_uniform_or_zipf(app: str, field: str) -> None:
    even, skewed = drawn(app, field), drawn(app, field, skew=1.5)
    assert set(even) == set(range(64))
    assert max(even.values()) < 2 * 4000 / 64
    assert skewed[0] / 4000 == pytest.approx(0.42, abs=0.03), "1 / Σ k^-1.5 over 64 values"
    assert skewed[0] / skewed[1] == pytest.approx(2**1.5, rel=0.2)


def test_words_follow_zipf() -> None:
    sentences = [str(event["sentence"]).split() for event in payloads("wordcount", seed=1)]
    assert {len(words) for words in sentences} == {5}
    counts = Counter(word for words in sentences for word in words)
    assert [word for word, _ in counts.most_common(2)] == ["the", "of"]
    assert counts["the"] / counts["of"] == pytest.approx(2.0, rel=0.15)


def test_as_many_as_asked_for() -> None:
    assert [event["number"] for event in values(PayloadOptions(count=3))] == [0, 1, 2]


def test_64_cities_each_once() -> None:
    assert len({city for city, _ in CITIES}) == len(CITIES) == 64
    assert find_city(64) == find_city(0) == ("Cairo", "africa")


def test_ages_fall_in_bands() -> None:
    bands = [age_band(age) for age in (13, 17, 18, 24, 25, 64, 65, 90)]
    assert bands == ["under 18", "under 18", "18-24", "18-24", "25-34", "50-64", "65 and over", "65 and over"]
