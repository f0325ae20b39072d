"""The applications of the papers, by name, and the way to a user's own topology."""

from __future__ import annotations

from pathlib import Path

from penstock.apps import averages, complex_sensitive, dns, insensitive, sensitive, twitter, wordcount
from penstock.apps import complex as complex_app
from penstock.apps.app import App, Payload, PayloadOptions
from penstock.apps.events.opinions import opinions
from penstock.apps.events.queries import queries
from penstock.apps.events.sentences import sentences
from penstock.apps.events.tweets import tweets
from penstock.apps.events.values import values
from penstock.apps.options import AppOptions, SinkFactory
from penstock.apps.user import load_topology
from penstock.common.names import hint
from penstock.errors import InputError

APPS = {
    app.name: app
    for app in (
        App("twitter", "Tweets cleaned, classified by content and by author, stored", twitter.build, tweets),
        App("complex", "Tweets split into news and opinions, each analysed and stored", complex_app.build, opinions),
        App("dns", "DNS queries parsed, measured, classified and stored", dns.build, queries),
        App(
            "wordcount",
            "Sentences split into words that are counted by key, counts published to a queue",
            wordcount.build,
            sentences,
            wordcount.DEPLOYED,
            publishes=True,
        ),
        App("insensitive", "One bolt with the same time for every value", insensitive.build, values),
        App("sensitive", "One bolt whose time depends on the value", sensitive.build, values),
        App("complex_sensitive", "Opinions grouped by place and by age", complex_sensitive.build, opinions),
        App("averages", "Opinions without repeats, averaged by city with state", averages.build, opinions),
    )
}


def find_app(name: str) -> App:
    """The shipped application of that name."""
    if name not in APPS:
        own = "or module:topology of your own"
        raise InputError(f"app {name!r}: no such application; known: {', '.join(APPS)}, {own}{hint(name, APPS)}")
    return APPS[name]


def payloads(app: str, folder: Path | None = None, seed: int = 0, *, skew: float | None = None) -> list[Payload]:
    """Events for the application: real ones from the folder where it has them, otherwise made by seed."""
    return find_app(app).payloads(PayloadOptions(folder, seed, skew))


__all__ = [
    "APPS",
    "App",
    "AppOptions",
    "Payload",
    "PayloadOptions",
    "SinkFactory",
    "find_app",
    "load_topology",
    "payloads",
]
