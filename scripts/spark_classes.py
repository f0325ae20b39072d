"""Has Java keep the classes that a run loads in a file, from which JVMs start in half the time; see the Makefile.

A run of a few seconds loads them: with keyed state and a sink, so that little is left to load.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def counted(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    """Count the events of a key."""
    state["seen"] = state.get("seen", 0) + 1
    return event | state


def main(archive: Path) -> None:
    """Run once, and wait until Java has written the file."""
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit={archive} -XX:+UseSerialGC -Xlog:disable"
    from pyspark import SparkContext

    import penstock

    topology = penstock.Topology("classes", pool=2)
    counts = topology.operator("count", counted, inputs=topology.source("numbers"), key="n", key_groups=4)
    with tempfile.TemporaryDirectory() as folder:
        topology.operator("end", penstock.CollectSink(Path(folder)), inputs=counts)
        source = penstock.TraceSource(penstock.constant(100, duration_s=1), [{"n": 1}])
        with penstock.Run(topology, source, options=penstock.RunOptions(checkpoint_every_s=1)) as run:
            run.wait(60)
    java: Any = SparkContext._gateway
    java.shutdown()
    java.proc.stdin.close()
    java.proc.wait(120)  # the file is written as it ends


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
