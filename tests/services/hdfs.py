"""An HDFS of the tests' own: a NameNode and a DataNode in one process; it can be killed and started again."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from ..waiting import LONG_S
from . import free_port
from .kafka import QUICK_START, runtime

JARS = Path(__file__).parents[2] / ".hdfs" / "jars"  # scripts/hdfs.sh puts them there
START_S = LONG_S
MAIN = "org.apache.hadoop.test.MiniDFSClusterManager"


def java() -> str | None:
    """The program that runs it, if both it and Hadoop are there."""
    return runtime() if JARS.with_name("pom.xml").is_file() else None


class Hdfs:
    """Starts, is killed, and starts again with what it has on disk."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it takes a file."""
        log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
        new = [] if (self._folder / "data").exists() else ["-format"]
        command = [str(java()), "-Xmx256m", *QUICK_START, log, "-cp", f"{JARS}/*", MAIN, *new, "-datanodes", "1"]
        place = ["-nnport", str(self.port), "-D", f"hdfs.minidfs.basedir={self._folder}/data"]
        with (self._folder / "out").open("ab") as out:
            self._process = subprocess.Popen(
                [*command, *place], stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self._folder
            )
        deadline_s = time.monotonic() + START_S
        while not self._answers():
            if time.monotonic() > deadline_s or self._process.poll() is not None:
                self.kill()
                raise RuntimeError(f"HDFS did not start: {(self._folder / 'out').read_text()[-2000:]}")
            time.sleep(0.2)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def uri(self, folder: str) -> str:
        """Of a folder, which need not be there."""
        return f"hdfs://127.0.0.1:{self.port}/{folder}"

    def _answers(self) -> bool:
        """Whether a file can be written: the DataNode reports some seconds after the NameNode listens."""
        from hdfs_native import Client, WriteOptions

        client = Client(self.uri("").rstrip("/"), {"dfs.client.failover.max.attempts": "1"})
        try:
            with client.create("/is-it-there", WriteOptions(overwrite=True)) as file:
                file.write(b"yes")
        except (OSError, RuntimeError):
            return False
        return True
