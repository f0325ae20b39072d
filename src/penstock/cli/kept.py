"""What `penstock train` has trained so far: in the folder, as tables for people, as JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from penstock.forecast.models import ERRORS, ModelFolder, best_of

if TYPE_CHECKING:
    from penstock.engine.training import Outcome

SHOWN = 40  # rows of a table


@dataclass
class Kept:
    """What has come out so far; models go to the folder as they arrive."""

    folder: ModelFolder
    trained_at: str
    wanted: int  # models of each series
    series: dict[str, dict[str, Outcome]] = field(default_factory=dict)  # by series and spec

    def keep(self, arrived: Sequence[Outcome]) -> None:
        """Write the models among these, all at once."""
        models = []
        for one in arrived:
            series, spec = one.job.whose
            self.series.setdefault(series, {})[spec] = one
            if one.fitted is not None:
                models.append((one.job.header(one.fitted.errors, self.trained_at), one.fitted.pickled))
        if models:
            self.folder.write(*models)

    @property
    def done(self) -> int:
        """Series with nothing left to train."""
        return sum(len(outcomes) == self.wanted for outcomes in self.series.values())

    @property
    def trained(self) -> int:
        """Series with a model."""
        return sum(self.best(series) is not None for series in self.series)

    def best(self, series: str) -> Outcome | None:
        """The best model of a series so far; None where all have failed."""
        outcomes = self.series[series]
        headers = [one.job.header(one.fitted.errors, self.trained_at) for one in outcomes.values() if one.fitted]
        return outcomes[best_of(headers).spec] if headers else None


def tell(kept: Kept, console: Console) -> None:
    """The best model of each series, and what could not be trained and why."""
    if kept.trained:
        console.print(_best_table(kept))
    if failed := [one for outcomes in kept.series.values() for one in outcomes.values() if one.failure]:
        console.print(_failures_table(failed))
    where = f"models: {kept.folder.path}" if kept.trained else "nothing could be trained"
    console.print(where, highlight=False, markup=False, soft_wrap=True)


def _best_table(kept: Kept) -> Table:
    table = _table("best models", len(kept.series))
    for name in ("series", "best"):
        table.add_column(name)
    for name in ("sMAPE %", "RMSE", "MAE", "CPU s"):
        table.add_column(name, justify="right")
    for series in sorted(kept.series)[:SHOWN]:
        best = kept.best(series)
        cpu_s = sum(one.cpu_s for one in kept.series[series].values())
        errors = best.fitted.errors if best and best.fitted else {}
        spec = escape(best.job.spec) if best else "none"
        table.add_row(escape(series), spec, *(_shown(errors.get(name)) for name in ERRORS), f"{cpu_s:.1f}")
    return table


def _failures_table(failed: Sequence[Outcome]) -> Table:
    table = _table("not trained", len(failed))
    for name in ("series", "model", "why"):
        table.add_column(name)
    for one in failed[:SHOWN]:
        table.add_row(*(escape(text) for text in (*one.job.whose, one.failure or "")))
    return table


def _table(title: str, rows: int) -> Table:
    first = f", the first {SHOWN} of {rows:,}" if rows > SHOWN else ""
    return Table(title=title + first, title_justify="left", header_style="bold")


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def as_json(kept: Kept) -> dict[str, Any]:
    """Everything that came out, with what failed."""
    return {
        "folder": str(kept.folder.path),
        "trained_at": kept.trained_at,
        "series": {series: _series(kept, series) for series in sorted(kept.series)},
    }


def _series(kept: Kept, series: str) -> Mapping[str, Any]:
    best = kept.best(series)
    models: dict[str, Any] = {}
    for spec, one in kept.series[series].items():
        errors = one.fitted.errors if one.fitted else {}
        figures = {name: errors.get(name) for name in ERRORS}
        models[spec] = {**figures, "cpu_s": round(one.cpu_s, 3), "failure": one.failure}
    return {"best": best.job.spec if best else None, "models": models}
