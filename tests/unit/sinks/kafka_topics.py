"""What tests of the Kafka sink have in common: what readers of its topics see."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from tests.waiting import LONG_S

from ...services.kafka import Kafka


def seen(kafka: Kafka, topic: str, partitions: int = 2) -> list[Any]:
    """All messages of a topic, as a reader with `read_committed` has them."""
    ours = {"bootstrap.servers": kafka.address, "group.id": "test", "isolation.level": "read_committed"}
    reader = Consumer({**ours, "enable.partition.eof": True, "auto.offset.reset": "earliest", "log_level": 0})
    reader.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found, ended = [], set()
    while len(ended) < partitions:
        message = reader.poll(LONG_S)
        assert message is not None
        if message.error():
            ended.add(message.partition())
        else:
            found.append(message)
    reader.close()
    return found


def told(messages: list[Any]) -> list[tuple[str, Any]]:
    """Id and event of each."""
    return sorted((dict(one.headers())["penstock-id"].decode(), json.loads(one.value())) for one in messages)
