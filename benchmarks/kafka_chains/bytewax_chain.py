"""Bytewax: the four operators with `redistribute` between them; started once for each process, by `bytewax.run`."""

from __future__ import annotations

import orjson
from bytewax import operators as op
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
from bytewax.dataflow import Dataflow
from step import step


def flow(brokers: str, source: str, sink: str) -> Dataflow:
    chain = Dataflow("chain")
    records = op.input("input", chain, KafkaSource([brokers], [source]))
    events = op.map("decode", records, lambda record: orjson.loads(record.value))
    for number in range(4):
        if number:
            events = op.redistribute(f"redistribute-{number}", events)
        events = op.map(f"step-{number}", events, step)
    encoded = op.map("encode", events, lambda event: KafkaSinkMessage(None, orjson.dumps(event)))
    op.output("output", encoded, KafkaSink([brokers], sink))
    return chain
