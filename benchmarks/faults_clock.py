"""Clocks that jump: a small library is loaded before the C library of all processes of a run (faults_clock.c)."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("faults_clock.c")
HOUR_S = 3600


def can_jump() -> bool:
    """Whether there is a compiler for the library."""
    return shutil.which("cc") is not None


class Clock:
    """The time of day of all processes that are started with its environment."""

    def __init__(self, folder: Path) -> None:
        self._file, library = folder / "clock", folder / "clock.so"
        self.jump(0)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": str(library), "FAULTS_CLOCK": str(self._file)}

    def jump(self, seconds: int) -> None:
        """Be so far ahead of the real time from now on."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:  # in place: it is mapped
            file.write(struct.pack("=q", seconds))
