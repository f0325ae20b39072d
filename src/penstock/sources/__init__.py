"""Where events come from: a trace replayed, a file, Kafka, or a source of one's own."""

from penstock.sources.base import Polled, Reader, Slot, Source, Undecoded
from penstock.sources.files import FileSource
from penstock.sources.kafka import Avro, KafkaRecord, KafkaSource, Protobuf
from penstock.sources.trace import TraceSource

__all__ = [
    "Avro",
    "FileSource",
    "KafkaRecord",
    "KafkaSource",
    "Polled",
    "Protobuf",
    "Reader",
    "Slot",
    "Source",
    "TraceSource",
    "Undecoded",
]
