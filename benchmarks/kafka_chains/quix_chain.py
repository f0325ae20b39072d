"""Quix Streams: the four operators with a topic between each two; started once for each process.

    quix_chain.py BROKERS SOURCE SINK FOLDER COMMIT_EVERY_S

A `group_by`, its own way to redistribute, is such a topic, too; there is one at most in a chain.
"""

from __future__ import annotations

import sys
from itertools import pairwise

from quixstreams import Application
from step import step


def main(brokers: str, source: str, sink: str, folder: str, commit_every_s: str) -> None:
    application = Application(
        brokers,
        consumer_group=f"{sink}-quix",
        auto_offset_reset="earliest",
        processing_guarantee="at-least-once",
        commit_interval=float(commit_every_s),
        state_dir=folder,
        loglevel="WARNING",
    )
    names = [source, *(f"{sink}-between-{number}" for number in (1, 2, 3)), sink]
    topics = [application.topic(name) for name in names]
    for taken, given in pairwise(topics):
        application.dataframe(taken).apply(step).to_topic(given)
    application.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
