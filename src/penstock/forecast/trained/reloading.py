"""A forecaster that was trained elsewhere, and is replaced by a newer one while the loop runs."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from penstock.common.checks import whole
from penstock.errors import InputError
from penstock.forecast.base import Forecaster, HasQuantiles, NotReady, Rates, checked_horizon, checked_rate
from penstock.forecast.trained.model_file import Header, Trained
from penstock.forecast.trained.model_folder import Mark, ModelFolder

KEPT = 4096  # rates that a new model can catch up with
AT_ONCE = 256  # of those in one interval, so that the loop is not held up
FALLBACK = "auto"

log = logging.getLogger(__name__)


class Models(Protocol):
    """Where trained models are found: a ModelFolder, or what a test puts in its place."""

    def changed_since(self, series: str, mark: Mark | None) -> Mark | None:
        """The mark of the series' best model where it is another than this; an InputError where there is none."""

    def read(self, series: str) -> Trained:
        """The best model of the series."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The series that is followed, the run it is of, and how many of its intervals make a day."""

    series: str
    run: str | None = None
    day: int = 288


class Reloading:
    """The best trained model of a series forecasts: ŷ = that of the model, which has learnt every rate since.

    On the first rate, and then on every `every`-th, it looks for a newer model. A new one first learns the rates that
    it has not seen: of the same run, those of later intervals than it was trained up to; otherwise all that are kept,
    4,096 at most. Only then does it take over. A model that cannot be read leaves the old one in its place, and is said
    once in the log. Before there is one, `fallback` forecasts. Its quantiles are the model's, where that has any.

    >>> import tempfile
    >>> from penstock.forecast.drift import Drift
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     forecaster = Reloading(ModelFolder(empty), Followed("tweets"), fallback=Drift())
    ...     for rate in (10, 20):
    ...         forecaster.learn(rate)
    >>> forecaster.forecast(1).tolist()
    [30.0]

    Mu et al., "BGElasor: elastic-scaling framework for distributed streaming processing with deep neural network",
    NPC 2019: models are trained off line and rebuilt periodically.
    """

    def __init__(
        self, models: Models, followed: Followed, *, every: int = 60, fallback: Forecaster | None = None
    ) -> None:
        self.every = whole("forecaster 'trained'", "every", every)
        self.followed = followed
        self._models = models
        self._current = fallback
        self._header: Header | None = None  # of the current model; None while it is the fallback
        self._mark: Mark | None = None
        self._coming: _Coming | None = None
        self._learnt = _Recent(KEPT)
        self._said = ""

    @property
    def ready(self) -> bool:
        """As soon as the model is, or the fallback."""
        return self._current is not None and self._current.ready

    @property
    def header(self) -> Header | None:
        """What the model that forecasts is; None before there is one."""
        return self._header

    def learn(self, rate: float) -> None:
        """Follow the series; look for a newer model if it is time to."""
        rate = checked_rate(rate)
        self._learnt.append(rate)
        if self._current is not None:
            self._current.learn(rate)
        if self._coming is not None:
            self._coming.behind.append(rate)
        if (self._learnt.count - 1) % self.every == 0:
            self._look()
        if self._coming is not None:
            self._catch_up(self._coming)

    def forecast(self, horizon: int) -> Rates:
        """What the model forecasts, or the fallback."""
        horizon = checked_horizon(horizon)
        return self._at_work().forecast(horizon)

    def quantiles(self, horizon: int, levels: Sequence[float]) -> Rates:
        """Those of the model, or of the fallback; NotReady while the one at work has none."""
        horizon = checked_horizon(horizon)
        model = self._at_work()
        if not isinstance(model, HasQuantiles):
            raise NotReady(f"forecaster 'trained': needs a model with quantiles; {self._what()} has none")
        return model.quantiles(horizon, levels)

    def _at_work(self) -> Forecaster:
        if self._current is None or not self._current.ready:
            why = f" ({self._said})" if self._said else ""
            raise NotReady(f"forecaster 'trained': needs a model of series '{self.followed.series}'; has none yet{why}")
        return self._current

    def _look(self) -> None:
        """Begin with a newer model if there is one."""
        try:
            mark = self._models.changed_since(self.followed.series, self._mark)
            if mark is not None:
                found = self._models.read(self.followed.series)
                self._mark = mark  # whatever comes of it, it is not read again
                self._coming = _Coming(_of_this_day(found, self.followed), deque(self._unseen(found.header)))
            self._said = ""
        except Exception as why:  # whatever is wrong with a file, the loop goes on
            self._say(f"{why}")

    def _unseen(self, header: Header) -> Iterator[float]:
        same_run = header.run is not None and header.run == self.followed.run
        return self._learnt.after(header.interval) if same_run and header.interval is not None else self._learnt.kept()

    def _catch_up(self, coming: _Coming) -> None:
        """Let the new model learn some of what it has not seen; the last time, let it take over."""
        model = coming.trained.forecaster
        try:
            for _ in range(min(AT_ONCE, len(coming.behind))):
                model.learn(coming.behind.popleft())
            if coming.behind or not model.ready:
                return
            model.forecast(1)  # one that cannot forecast must not take over
        except Exception as why:  # it was pickled elsewhere: it may raise anything
            self._coming = None
            self._say(f"the model of {coming.trained.header.trained_at} cannot go on: {type(why).__name__}: {why}")
            return
        self._current, self._header, self._coming = model, coming.trained.header, None
        log.info("series '%s': now with %s", self.followed.series, self._what())

    def _say(self, what: str) -> None:
        if what != self._said:
            log.warning("series '%s': %s; goes on with %s", self.followed.series, what, self._what())
        self._said = what

    def _what(self) -> str:
        if self._header is not None:
            return f"model '{self._header.spec}' of {self._header.trained_at}"
        return "no forecast" if self._current is None else type(self._current).__name__


@dataclass(slots=True)
class _Coming:
    """A new model, and the rates that it has yet to learn."""

    trained: Trained
    behind: deque[float]


class _Recent:
    """The last rates and the number of all of them; as many bytes after a year as after a minute."""

    def __init__(self, most: int) -> None:
        self._rates = np.zeros(most)
        self._count = np.zeros(1, dtype=np.int64)

    @property
    def count(self) -> int:
        """How many there were in all; the last is of the interval with this number."""
        return int(self._count[0])

    def append(self, rate: float) -> None:
        """Add a rate, and forget the oldest if need be."""
        self._rates[self.count % len(self._rates)] = rate
        self._count += 1

    def kept(self) -> Iterator[float]:
        """Those that are not forgotten, oldest first."""
        return self.after(max(0, self.count - len(self._rates)))

    def after(self, interval: int) -> Iterator[float]:
        """Those of later intervals; NaN where one is forgotten, so that the time of day stays right."""
        for number in range(interval, self.count):
            forgotten = number < self.count - len(self._rates)
            yield math.nan if forgotten else float(self._rates[number % len(self._rates)])


def _of_this_day(trained: Trained, followed: Followed) -> Trained:
    """The model, or an InputError where its rows are of another length than the intervals here."""
    header = trained.header
    if header.day != followed.day:
        raise InputError(
            f"model '{header.spec}' of {header.trained_at}: a day must have {followed.day} rows, as it has here; "
            f"got {header.day}: train it with --day {followed.day}"
        )
    return trained


def trained(
    folder: str = "models", every: int = 60, series: str = "", run: str | None = None, day: int = 288
) -> Reloading:
    """The forecaster `trained`: the models of one series in a folder; before there is one, `auto`.

    >>> trained(folder="models", every=10, series="tweets").every
    10
    """
    from penstock.forecast.registry import FORECASTERS, make_forecaster  # where this maker is registered

    followed = Followed(str(series), None if run is None else str(run), whole("forecaster 'trained'", "day", day))
    fallback = make_forecaster(FALLBACK, day=day) if FALLBACK in FORECASTERS.names else None
    return Reloading(ModelFolder(str(folder)), followed, every=every, fallback=fallback)
