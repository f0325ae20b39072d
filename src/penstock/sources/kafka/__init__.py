"""Kafka's topics as a source; the client is only loaded where one is checked or opened."""

from penstock.sources.kafka.decoding import Avro, KafkaRecord, Protobuf
from penstock.sources.kafka.source import KafkaSource

__all__ = ["Avro", "KafkaRecord", "KafkaSource", "Protobuf"]
