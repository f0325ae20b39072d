"""An HDFS of the tests' own: a NameNode and a DataNode in one process; it can be killed and started again."""

from __future__ import annotations

from pathlib import Path

from . import free_port
from .kafka import QUICK_START, runtime
from .server import Server

JARS = Path(__file__).parents[2] / ".hdfs" / "jars"  # scripts/hdfs.sh puts them there
MAIN = "org.apache.hadoop.test.MiniDFSClusterManager"


def java() -> str | None:
    """The program that runs it, if both it and Hadoop are there."""
    return runtime() if JARS.with_name("pom.xml").is_file() else None


class Hdfs(Server):
    """Starts, is killed, and starts again with what it has on disk."""

    name = "HDFS"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.port = free_port()

    def start(self) -> None:
        """Start it, and wait until it takes a file."""
        log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
        new = [] if (self._folder / "data").exists() else ["-format"]
        command = [str(java()), "-Xmx256m", *QUICK_START, log, "-cp", f"{JARS}/*", MAIN, *new, "-datanodes", "1"]
        place = ["-nnport", str(self.port), "-D", f"hdfs.minidfs.basedir={self._folder}/data"]
        self.launch([*command, *place])
        self.await_answer()

    def uri(self, folder: str) -> str:
        """Of a folder, which need not be there."""
        return f"hdfs://127.0.0.1:{self.port}/{folder}"

    def answers(self) -> bool:
        """Whether a file can be written: the DataNode reports some seconds after the NameNode listens."""
        from hdfs_native import Client, WriteOptions

        client = Client(self.uri("").rstrip("/"), {"dfs.client.failover.max.attempts": "1"})
        try:
            with client.create("/is-it-there", WriteOptions(overwrite=True)) as file:
                file.write(b"yes")
        except (OSError, RuntimeError):
            return False
        return True
