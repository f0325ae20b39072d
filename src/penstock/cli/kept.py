"""What `penstock train` has trained so far: in the folder, as tables for people, as JSON for programs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from penstock.forecast.model_file import Header
from penstock.forecast.models import ERRORS, ModelFolder, best_of

if TYPE_CHECKING:
    from penstock.engine.training import Outcome

SHOWN = 40  # rows of a table


@dataclass
class Kept:
    """What has come out so far; a series' models go to the folder together, when the last of them has arrived.

    Any sooner, the fastest would be the best of those that are there, and a loop would change to it.
    """

    folder: ModelFolder
    trained_at: str
    wanted: int  # models of each series
    series: dict[str, dict[str, Outcome]] = field(default_factory=dict)  # by series and spec
    written: dict[str, str] = field(default_factory=dict)  # series in the folder, with the spec of the best model

    def keep(self, arrived: Sequence[Outcome]) -> None:
        """Take these in, and write the models of every series that nothing is left to train of."""
        for one in arrived:
            series, spec = one.job.whose
            self.series.setdefault(series, {})[spec] = one
        changed = dict.fromkeys(one.job.history.series for one in arrived)
        self._write([series for series in changed if self._whole(series)])

    def keep_rest(self) -> None:
        """Write what is left when it is stopped; a series that has models of an earlier training keeps those."""
        self._write([series for series in self.series if self._whole(series) or not self.folder.has(series)])

    def _write(self, found: Sequence[str]) -> None:
        models = {series: self._models(series) for series in found if series not in self.written}
        if any(models.values()):
            self.folder.write(*itertools.chain(*models.values()))
            best = {series: best_of([header for header, _ in those]) for series, those in models.items() if those}
            self.written.update({series: header.spec for series, header in best.items()})

    def _models(self, series: str) -> list[tuple[Header, bytes]]:
        """Those that have arrived and did not fail."""
        return [
            (one.job.header(one.fitted.errors, self.trained_at), one.fitted.pickled)
            for one in self.series[series].values()
            if one.fitted is not None
        ]

    def _whole(self, series: str) -> bool:
        return len(self.series[series]) == self.wanted

    @property
    def done(self) -> int:
        """Series with nothing left to train."""
        return sum(map(self._whole, self.series))

    @property
    def trained(self) -> int:
        """Series with a model in the folder."""
        return len(self.written)

    @property
    def given_up(self) -> list[str]:
        """Series with models that have arrived and are not in the folder."""
        return [series for series in self.series if series not in self.written and self._models(series)]

    def best(self, series: str) -> Outcome | None:
        """The best model of a series that is in the folder; None where none is."""
        return self.series[series][self.written[series]] if series in self.written else None


def tell(kept: Kept, console: Console) -> None:
    """The best model of each series, and what could not be trained and why."""
    if kept.trained:
        console.print(_best_table(kept))
    if failed := [one for outcomes in kept.series.values() for one in outcomes.values() if one.failure]:
        console.print(_failures_table(failed))
    if older := kept.given_up:
        more = f" and {len(older) - SHOWN:,} more" if len(older) > SHOWN else ""
        words = f"older models stay, as some of the new ones had not arrived: {', '.join(older[:SHOWN])}{more}"
        console.print(words, highlight=False, markup=False, soft_wrap=True)
    where = f"models: {kept.folder.path}" if kept.trained or older else "nothing could be trained"
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
