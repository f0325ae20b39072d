"""Where events come from: a trace replayed, or a file."""

from penstock.sources.base import Source
from penstock.sources.files import FileSource
from penstock.sources.trace import TraceSource

__all__ = ["FileSource", "Source", "TraceSource"]
