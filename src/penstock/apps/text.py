"""Work on short texts: cleaning, tokens, scores against lexicons."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence

from penstock.apps.lexicons import NEGATIONS, POLARITY, TOPICS

_NOISE = re.compile(r"https?:\S*|^\s*RT\s+@\w+:?|@\w+")
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


def clean_text(text: str) -> str:
    """The text without entities, links, handles and retweet marks, in lower case.

    >>> clean_text("RT @user: Stay strong &amp; hope http://t.co/x1")
    'stay strong & hope'
    """
    return " ".join(_NOISE.sub(" ", html.unescape(text)).replace("#", " ").lower().split())


def tokens(text: str) -> list[str]:
    """The words of a text, with what follows an apostrophe.

    >>> tokens("can't sleep, no power!")
    ["can't", 'sleep', 'no', 'power']
    """
    return [token.replace("’", "'") for token in _TOKEN.findall(text)]


def hits(words: Iterable[str], lexicon: Mapping[str, float]) -> float:
    """The sum of the weights of all words that the lexicon has, in the singular or the plural."""
    return sum(lexicon.get(word, 0.0) or lexicon.get(word.removesuffix("s"), 0.0) for word in words)


def topics(words: Sequence[str]) -> dict[str, float]:
    """The topics a text touches, with their scores, the highest first.

    >>> topics(["dozens", "killed", "send", "aid"])
    {'casualties': 3.0, 'donations': 2.0}
    """
    scores = {topic: hits(words, lexicon) for topic, lexicon in TOPICS.items()}
    found = sorted((topic for topic, score in scores.items() if score > 0), key=lambda topic: (-scores[topic], topic))
    return {topic: scores[topic] for topic in found}


def polarity(words: Sequence[str]) -> float:
    """From −1 (against) to 1 (for): (positive − negative) / (positive + negative); a negation turns the next word.

    >>> polarity(["not", "good"]), polarity(["good", "and", "brave"]), polarity(["bridge"])
    (-1.0, 1.0, 0.0)
    """
    signed = [
        -POLARITY[word] if before in NEGATIONS else POLARITY[word]
        for before, word in zip(["", *words], words, strict=False)
        if word in POLARITY
    ]
    total = sum(abs(value) for value in signed)
    return sum(signed) / total if total else 0.0


def stance(score: float) -> str:
    """A polarity in words.

    >>> stance(0.5), stance(-1.0), stance(0.0)
    ('positive', 'negative', 'neutral')
    """
    return "positive" if score > 0 else "negative" if score < 0 else "neutral"
