"""A server of the tests' own: started, waited for until it answers, killed as a crash would, and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from ..waiting import LONG_S

START_S = LONG_S


class Server(ABC):
    """Its processes have a session each; what they say is in the file `out` of its folder, for when it does not start.

    Used with `with`, it has started within the block, and is killed at the end.
    """

    name = "the server"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []

    @abstractmethod
    def start(self) -> None:
        """Start its processes, and wait until it answers."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether it does what it is there for."""

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self.end(signal.SIGKILL)

    def end(self, sign: signal.Signals) -> None:
        """Have its processes end by this signal, the last one first."""
        for process in reversed(self._processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
            process.wait(START_S)
        self._processes.clear()

    def launch(self, command: Sequence[str], **surroundings: Any) -> None:
        """Start one process, in its folder unless told otherwise."""
        alone: dict[str, Any] = {"cwd": self._folder, "stdin": subprocess.DEVNULL, "start_new_session": True}
        with (self._folder / "out").open("ab") as out:
            self._processes.append(subprocess.Popen(command, stdout=out, stderr=out, **alone | surroundings))

    def await_answer(self) -> None:
        """Wait until it answers; if its last process ends before, or it takes too long, say what it has said."""
        deadline_s = time.monotonic() + START_S
        while not self.answers():
            if time.monotonic() > deadline_s or self._processes[-1].poll() is not None:
                self.kill()
                raise RuntimeError(f"{self.name} did not start: {(self._folder / 'out').read_text()[-2000:]}")
            time.sleep(0.1)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
