"""One history at the sink, through changes of replicas and kills of workers, driver and broker: a short scene."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.services.kafka import java

SCENE = Path(__file__).parents[2] / "benchmarks/history.py"


def play(sink: str) -> str:
    numbers = ("--events", "2000", "--rate", "100", "--worker-kills", "2", "--driver-kills", "1", "--changes", "6")
    command = [sys.executable, str(SCENE), "--sink", sink, *numbers]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=580)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_at_a_database() -> None:
    assert "one history: every sequence is 1, 2, …, n" in play("database")


@pytest.mark.skipif(java() is None, reason="Kafka is not installed")
def test_at_a_topic() -> None:
    said = play("kafka")
    assert "killed: 2 workers, 1 drivers, 1 brokers" in " ".join(said.split())
    assert "one history: every sequence is 1, 2, …, n" in said
