"""The results of two queries, to the row, with Penstock attached and without.

    python benchmarks/attach_rows.py --json rows.json
    python benchmarks/attach_rows.py --short

A Python function without state, and a count by window with state, both into files, run on a Spark Standalone cluster of
this machine. First with Penstock attached: rows come slowly until one executor is left, then fast until there are the
most; some are killed, each when another has taken the place of the one before; then slowly again until one is left.
Then, in a process of its own, the same rows without Penstock, on executors that stay. What the sinks hold is compared
with each other, and with what it must be.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--rate", type=float, default=60.0, help="rows a second while they come fast")
    arguments.add_argument("--most", type=int, default=4, help="executors, of two slots each")
    arguments.add_argument("--kills", type=int, default=3, help="executors, one after another")
    arguments.add_argument("--short", action="store_true", help="one kill, three executors")
    arguments.add_argument("--json", type=Path, help="also write the result here")
    arguments.add_argument("--one", help=argparse.SUPPRESS)  # "attached", or how many rows without it
    options = arguments.parse_args()
    if options.short:
        options.kills, options.most, options.rate = 1, 3, 45.0
    if options.one:
        from attach_rows_scenarios import Comparison

        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # rows may come still
            print(json.dumps(Comparison(Path(folder), options.most, options.rate).run(options.one, options.kills)))
        return
    attached = alone("attached")
    found = judged(attached, alone(str(attached["rows"])))
    text = json.dumps(found, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


def alone(way: str) -> dict[str, Any]:
    """A run in a process of its own."""
    done = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--one", way], check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def judged(attached: dict[str, Any], plain: dict[str, Any]) -> dict[str, Any]:
    """Both, and whether their results are the same, and right."""
    same = attached["digests"] == plain["digests"]
    right = not any(one[wrong] for run in (attached, plain) for one in run["wrong"].values() for wrong in one)
    return {"same": same, "right": right, "attached": attached, "without": plain}


if __name__ == "__main__":
    main()
