"""Opinions: tweets with the age and the city of a person, which no real tweet carries, made by seed."""

from __future__ import annotations

from random import Random

from penstock.apps.app import Payload, PayloadOptions
from penstock.apps.cities import CITIES
from penstock.apps.events.draw import zipf_ranks
from penstock.apps.events.tweets import tweets

YOUNGEST, OLDEST, USUAL = 13, 90, 28


def opinions(options: PayloadOptions) -> list[Payload]:
    """Tweets, each with an `age` in years and the `code` of a city; codes are uniform, or Zipf by skew."""
    rows = tweets(options)
    random = Random(options.seed + 1)  # apart from the seed that made the tweets
    codes = zipf_ranks(random, len(CITIES), options.skew or 0.0, len(rows))
    ages = [round(random.triangular(YOUNGEST, OLDEST, USUAL)) for _ in rows]
    return [{**row, "age": age, "code": code} for row, age, code in zip(rows, ages, codes, strict=True)]
