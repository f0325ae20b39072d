"""The fault campaign in short: what the sinks hold is one history, and the campaign goes on where it was stopped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CAMPAIGN = Path(__file__).parents[2] / "benchmarks/faults.py"
FAULTS = ("lost", "repeated", "uninvited", "gaps", "twice", "out_of_order", "wrong_final")


def played(folder: Path, *further: str) -> dict[str, Any]:
    kinds = ["--faults", "3", "--only", "kill_worker,channel_cut,poison", "--longest-s", "2"]
    scene = ["--ends", "sqlite:committed", "--rate", "100", "--folder", str(folder)]
    command = [sys.executable, str(CAMPAIGN), "--seed", "25", *kinds, *scene, *further]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=580)
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_a_round_is_one_history_and_is_not_played_again(tmp_path: Path) -> None:
    found = played(tmp_path)
    assert found["by_kind"] == {"kill_worker": 1, "channel_cut": 1, "poison": 1}
    assert found["survived"] == 3
    assert found["dead_lettered"] + found["dropped"] == 20
    assert {name: found[name] for name in FAULTS} == dict.fromkeys(FAULTS, 0)
    assert found["processes_left_behind"] == 0
    assert played(tmp_path, "--resume") == found
