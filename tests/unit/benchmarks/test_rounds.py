"""Scenarios in processes of their own: their figures, and nothing that is left of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psutil
import pytest
from rounds import measure

from tests.waiting import until

SCRIPT = """
import subprocess, sys, time
contender = subprocess.Popen(["sleep", "600"])
open(sys.argv[1], "w").write(str(contender.pid))
if sys.argv[2] == "hangs":
    time.sleep(600)
print("warming up")
print('{"rate": 12.5}')
sys.exit(sys.argv[2] == "fails")
"""


@pytest.mark.parametrize("how", ["ends", "fails", "hangs"])
def test_what_a_scenario_has_started_ends_with_it(tmp_path: Path, how: str) -> None:
    """A benchmark that was ended by a signal left its contender running."""
    script, told = tmp_path / "scenarios.py", tmp_path / "pid"
    script.write_text(SCRIPT)
    if how == "ends":
        assert measure(script, str(told), how) == {"rate": 12.5}
    else:
        with pytest.raises(SystemExit if how == "fails" else subprocess.TimeoutExpired):
            measure(script, str(told), how, timeout_s=2.0)
    pid = int(told.read_text())
    until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
