"""A Prometheus that scrapes one target, every second unless told otherwise, on a port of its own."""

from __future__ import annotations

import json
import math
import re
import shutil
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from . import free_port
from .server import START_S, Server

BOARD = Path(__file__).resolve().parents[2] / "ops" / "grafana" / "penstock.json"
CONFIG = """
global: {{scrape_interval: {every_s:g}s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: penstock
    static_configs: [{{targets: ["{target}"]}}]
"""


def program() -> str | None:
    """The program, if it is installed."""
    return shutil.which("prometheus")


def board() -> dict[str, list[str]]:
    """The queries of each panel of the Grafana board, by its title, as Grafana would send them."""
    values = {"$job": "penstock", "$instance": ".*", "$__rate_interval": "1m"}

    def sent(query: str) -> str:
        return re.sub(r"\$\w+", lambda match: values[match[0]], query)

    panels = json.loads(BOARD.read_text())["panels"]
    return {one["title"]: [sent(target["expr"]) for target in one["targets"]] for one in panels}


def has_data(reader: Prometheus, query: str) -> bool:
    """Whether it finds something, and all of it is known."""
    values = [float(one["value"][1]) for one in reader.query(query)]
    return bool(values) and not any(map(math.isnan, values))


def _config(rules: Path, target: str, every_s: float) -> str:
    return CONFIG.format(rules=rules, target=target, every_s=every_s)


class Prometheus(Server):
    """Scrapes `target`, host and port, and goes by the rules."""

    name = "Prometheus"

    def __init__(self, folder: Path, target: str, rules: str, every_s: float = 1.0) -> None:
        super().__init__(folder)
        self._port = free_port()
        (folder / "rules.yml").write_text(rules)
        (folder / "prometheus.yml").write_text(_config(folder / "rules.yml", target, every_s))

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        command = [str(program()), f"--config.file={self._folder / 'prometheus.yml'}"]
        command += [f"--storage.tsdb.path={self._folder / 'data'}", f"--web.listen-address=127.0.0.1:{self._port}"]
        self.launch(command)
        self.await_answer()

    def answers(self) -> bool:
        """Whether it says that it is ready."""
        try:
            return bool(urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=5).status == 200)
        except OSError:
            return False

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What it finds now."""
        found: list[dict[str, Any]] = self._ask("query", query=expression)["result"]
        return found

    def alerts(self) -> set[str]:
        """Those that fire."""
        return {one["labels"]["alertname"] for one in self._ask("alerts")["alerts"] if one["state"] == "firing"}

    def _ask(self, what: str, **parameters: str) -> dict[str, Any]:
        given = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self._port}/api/v1/{what}?{given}", timeout=START_S
            ) as answer:
                found: dict[str, Any] = json.load(answer)["data"]
                return found
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{what} {parameters}: {error.read().decode()}") from None
