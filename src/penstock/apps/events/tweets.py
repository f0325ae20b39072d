"""Tweets of a crisis: real ones of CrisisLex where the file is present, otherwise made ones with the same fields."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import msgspec

from penstock.apps.app import Payload, PayloadOptions
from penstock.apps.events.draw import weighted
from penstock.apps.events.tweet_words import (
    CRISES,
    OPENINGS,
    PLACES,
    SOURCES,
    TEXTS,
    THINGS,
    TYPES_BY_SOURCE,
    UNRELATED_TEXTS,
)
from penstock.errors import InputError
from penstock.workload.data import find_file, read_bytes

FILE = "tweets_crisislex_4_events.jsonl"
_RELATED = 0.87
_START = datetime(2013, 4, 15, 18, 50, tzinfo=UTC)


class Tweet(msgspec.Struct):
    """The fields of a tweet, all of them text."""

    event: str
    time: str
    text: str
    source: str
    type: str
    informativeness: str


def tweets(options: PayloadOptions) -> list[Payload]:
    """The real tweets if the folder has them, otherwise made ones."""
    file = find_file(options.folder, FILE)
    if file is not None:
        return read_tweets(file)
    random = Random(options.seed)
    return [msgspec.to_builtins(_made(random, number)) for number in range(options.count)]


def read_tweets(file: Path) -> list[Payload]:
    """Tweets from a file of JSON lines."""
    decode = msgspec.json.Decoder(Tweet).decode
    rows: list[Payload] = []
    for number, line in enumerate(read_bytes(file).splitlines(), start=1):
        try:
            rows.append(msgspec.to_builtins(decode(line)))
        except msgspec.DecodeError as error:
            raise InputError(f"tweets ({file.name}:{number}): each line must be a tweet in JSON; {error}") from None
    if not rows:
        raise InputError(f"tweets ({file.name}): the file must hold at least one tweet; got none")
    return rows


def _made(random: Random, number: int) -> Tweet:
    time = (_START + timedelta(seconds=2 * number)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    crisis = random.choice(CRISES)
    if random.random() > _RELATED:
        return Tweet(crisis, time, random.choice(UNRELATED_TEXTS), "Not labeled", "Not labeled", "Not related")
    source = weighted(random, SOURCES)
    kind = weighted(random, TYPES_BY_SOURCE.get(source, TYPES_BY_SOURCE["Outsiders"]))
    told = "Related - but not informative" if kind == "Sympathy and support" else "Related and informative"
    return Tweet(crisis, time, _text(random, kind, crisis), source, kind, told)


def _text(random: Random, kind: str, crisis: str) -> str:
    words = {"place": random.choice(PLACES), "thing": random.choice(THINGS), "number": random.randint(2, 900)}
    text = random.choice(TEXTS[kind]).format(**words)
    opening = weighted(random, OPENINGS)
    link = f" http://t.co/{random.getrandbits(50):010x}" if random.random() < 0.45 else ""
    return f"{opening}{text} #{crisis.title().replace('_', '')}{link}"
