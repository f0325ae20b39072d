"""Benchmarks are programs beside the package: their parts are found where they are."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
