"""The alert rules and the Grafana board: Prometheus understands them, and they ask for metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from penstock.ui import exposition

OPS = Path(__file__).resolve().parents[3] / "ops"
BOARD: dict[str, Any] = json.loads((OPS / "grafana" / "penstock.json").read_text())
SUFFIXES = r"_(total|bucket|count|sum)$"


def queries() -> list[str]:
    """All that the board asks for."""
    return [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]


def asked(text: str) -> set[str]:
    return {re.sub(SUFFIXES, "", name) for name in re.findall(r"\bpenstock_[a-z_]+", text)}


def test_every_metric_that_is_asked_for_is_told() -> None:
    source = Path(exposition.__file__).read_text()
    told = {re.sub(SUFFIXES, "", name) for name in re.findall(r'"(penstock_[a-z_]+)"', source)}
    rules = (OPS / "prometheus" / "alerts.yml").read_text()
    expressions = re.findall(r"expr: (?:\|\n)?(.*?)(?:\n {8}\w+:)", rules, re.DOTALL)
    assert len(expressions) == 11
    wanted = asked(" ".join([*queries(), *expressions])) - {"penstock_"}  # a pattern
    assert len(wanted) > 15
    assert wanted <= told


def test_panels_do_not_lie_on_one_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


@pytest.mark.parametrize(
    "command",
    [("check", "rules", "alerts.yml"), ("check", "config", "prometheus.yml"), ("test", "rules", "alerts_test.yml")],
)
def test_promtool_finds_nothing_wrong(command: tuple[str, ...]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run([promtool, *command], cwd=OPS / "prometheus", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
