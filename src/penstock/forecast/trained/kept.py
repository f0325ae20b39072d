"""What a training has come to so far: which models arrived, and which of them are in the folder."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.forecast.trained.job import Outcome
from penstock.forecast.trained.model_file import Header
from penstock.forecast.trained.model_folder import ERRORS, ModelFolder, best_of


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

    def keep_all(self, arriving: Iterable[Sequence[Outcome]], watch: Callable[[Kept], None] = lambda _: None) -> None:
        """Take in all that arrives, and tell `watch` each time; what is there is kept, however it ends."""
        try:
            for arrived in arriving:
                self.keep(arrived)
                watch(self)
        finally:
            self.keep_rest()

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

    @property
    def failed(self) -> list[Outcome]:
        """What could not be trained."""
        return [one for outcomes in self.series.values() for one in outcomes.values() if one.failure]

    def errors(self, series: str) -> tuple[float | None, ...]:
        """sMAPE, RMSE and MAE of the best model of a series, where they are known."""
        best = self.best(series)
        return _figures(best) if best else (None,) * len(ERRORS)

    def as_json(self) -> dict[str, Any]:
        """Everything that came out, with what failed."""
        return {
            "folder": str(self.folder.path),
            "trained_at": self.trained_at,
            "series": {series: self._as_json(series) for series in sorted(self.series)},
        }

    def _as_json(self, series: str) -> Mapping[str, Any]:
        models: dict[str, Any] = {}
        for spec, one in self.series[series].items():
            figures = dict(zip(ERRORS, _figures(one), strict=True))
            models[spec] = {**figures, "cpu_s": round(one.cpu_s, 3), "failure": one.failure}
        return {"best": self.written.get(series), "models": models}


def _figures(one: Outcome) -> tuple[float | None, ...]:
    errors = one.fitted.errors if one.fitted else {}
    return tuple(errors.get(name) for name in ERRORS)
