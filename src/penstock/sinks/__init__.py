"""Where events end: operators that store them."""

from penstock.sinks.collect import CollectSink, collected
from penstock.sinks.database import DatabaseSink

__all__ = ["CollectSink", "DatabaseSink", "collected"]
