"""A Prometheus that scrapes one target every second, on a port of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from ..waiting import LONG_S
from . import free_port

START_S = LONG_S
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: penstock
    static_configs: [{{targets: ["{target}"]}}]
"""


def program() -> str | None:
    """The program, if it is installed."""
    return shutil.which("prometheus")


class Prometheus:
    """Scrapes `target`, host and port, and goes by the rules; use it with `with`."""

    def __init__(self, folder: Path, target: str, rules: str) -> None:
        self._folder = folder
        (folder / "rules.yml").write_text(rules)
        (folder / "prometheus.yml").write_text(CONFIG.format(rules=folder / "rules.yml", target=target))

    def __enter__(self) -> Prometheus:
        self._port = free_port()
        command = [str(program()), f"--config.file={self._folder / 'prometheus.yml'}"]
        command += [f"--storage.tsdb.path={self._folder / 'data'}", f"--web.listen-address=127.0.0.1:{self._port}"]
        self._log = (self._folder / "prometheus.log").open("wb")
        self._process = subprocess.Popen(command, cwd=self._folder, stdout=self._log, stderr=subprocess.STDOUT)
        end_s = time.monotonic() + START_S
        while not self._ready():
            assert self._process.poll() is None, (self._folder / "prometheus.log").read_text()
            assert time.monotonic() < end_s, "Prometheus has not started"
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(START_S)
        self._log.close()

    def _ready(self) -> bool:
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=5).status == 200
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
