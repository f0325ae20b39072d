"""Where events end: operators that store or publish them."""

from penstock.sinks.collect import CollectSink, collected
from penstock.sinks.database import DatabaseSink
from penstock.sinks.kafka import KafkaSink
from penstock.sinks.queue import QueueSink
from penstock.sinks.queue_table import published

__all__ = ["CollectSink", "DatabaseSink", "KafkaSink", "QueueSink", "collected", "published"]
