"""A streaming query in the hands of a test."""

from __future__ import annotations

from typing import Any


class FakeQuery:
    """It lives until it is killed or stopped."""

    def __init__(self, program: Any = None) -> None:
        self.program = program
        self.isActive = True
        self.stopped = False
        self.error: Exception | None = None

    def kill(self, error: Exception | None) -> None:
        self.error = error
        self.isActive = False

    def exception(self) -> Exception | None:
        return self.error

    def stop(self) -> None:
        self.stopped = True
        self.isActive = False
