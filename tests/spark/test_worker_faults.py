"""A worker that never registers with the Master: given up, said, and tried again after a while."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.control.managers.infrastructure_manager import InfrastructureManager, InfrastructureRules
from penstock.control.managers.ledger import SlotLedger
from penstock.control.managers.region_manager import RegionManager, RegionRules
from penstock.infra import standalone
from penstock.infra.processes import Process, start_process
from penstock.infra.standalone import REGION, StandaloneCluster
from tests.waiting import until


def test_a_worker_that_never_registers_is_given_up_and_another_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        rules = InfrastructureRules(most=2, start_within_s=3.0, wait_s=4.0)
        region = RegionManager(REGION, RegionRules(spare=0, least=1))
        manager = InfrastructureManager(cluster, SlotLedger(), [region], [], rules)

        with monkeypatch.context() as patch:
            patch.setattr(standalone, "start_process", start_mute)
            manager.step(0.0)
        (stuck,) = cluster.list()
        pid = cluster.pid(stuck.name)
        os.kill(pid, signal.SIGSTOP)  # nor does it hear that it is to end
        manager.step(2.0)
        assert said(manager, "cancelled") == []
        manager.step(3.0)
        assert said(manager, "cancelled") == [
            "infrastructure cancelled start worker-1: it did not come up within 3 s; none is started for 4 s"
        ]
        assert not psutil.pid_exists(pid)
        assert cluster.list() == []
        assert said(manager, "refused") == [
            "infrastructure refused start a worker of local: waits for another 4 s, as the last start failed"
        ]
        manager.step(7.0)
        assert [worker.name for worker in cluster.list()] == ["worker-2"]
        until(lambda: cluster.list()[0].available)
        manager.step(9.5)
        assert said(manager, "done") == ["infrastructure done start worker-2: available after 2.5 s"]


def start_mute(command: Sequence[str], *how: Any, **more: Any) -> Process:
    """A process that never says a word, however late it is stopped."""
    return start_process(["sleep", "3600"], *how, **more)


def said(manager: InfrastructureManager, word: str) -> list[str]:
    return [str(entry.said) for entry in manager.diary.entries if entry.word == word]
