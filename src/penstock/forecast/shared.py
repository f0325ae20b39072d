"""Forecasts that are made once and shared: of the same series, by the same forecaster, for several policies."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from penstock.forecast.base import Forecaster, HasQuantiles, Rates

Make = Callable[[], Forecaster]
Ask = Callable[[Any], Any]


class SharedForecasts:
    """Remembers what forecasters said after which rates, and lets others go the same way without doing the work again.

    Who comes first works, and the others follow for as long as they learn the same rates and ask the same questions.
    From then on they have a forecaster of their own, which has learnt what they have learnt: nobody is told anything
    else than without sharing. `expected` has the questions of all who may come, horizons and levels of quantiles (None:
    none): they are asked in time, as a forecaster does not go back.

    >>> from penstock.forecast.last_value import LastValue
    >>> shared, made = SharedForecasts(), []
    >>> def make():
    ...     made.append(LastValue())
    ...     return made[-1]
    >>> first, second = (shared.follow("tweets", make) for _ in range(2))
    >>> for one in (first, second):
    ...     one.learn(50.0)
    ...     print(one.forecast(1).tolist(), len(made))
    [50.0] 1
    [50.0] 1
    >>> first.learn(60.0), second.learn(70.0), second.forecast(1).tolist(), len(made)
    (None, None, [70.0], 2)
    """

    def __init__(self, expected: Iterable[tuple[int, float | None]] = ()) -> None:
        self._expected = sorted({(horizon, level or 0.0) for horizon, level in expected})
        self._ways: dict[Hashable, _Way] = {}

    def follow(self, key: Hashable, make: Make) -> Forecaster:
        """A forecaster for what the key stands for: a series, and all that matters for how it is forecast."""
        if key not in self._ways:
            self._ways[key] = _Way(make(), self._expected)
        way = self._ways[key]
        kind = _FollowsQuantiles if way.knows_quantiles else _Follows
        return kind(way, make)


class _Way:
    """One forecaster, the rates that it has learnt, and what it said after how many of them."""

    def __init__(self, forecaster: Forecaster, expected: Sequence[tuple[int, float]]) -> None:
        self.forecaster = forecaster
        self.knows_quantiles = isinstance(forecaster, HasQuantiles)
        self.rates: list[float] = []
        self.said: dict[tuple[int, Hashable], Any] = {}
        self._expected = [_mean(horizon) for horizon, _ in expected]
        if self.knows_quantiles:
            self._expected += [_quantiles(horizon, [level]) for horizon, level in expected if level]

    def learn(self, rate: float) -> None:
        """Go on, once all has been said that somebody may want to know here."""
        for question in self._expected if self.rates else ():
            self.say(*question)
        self.forecaster.learn(rate)
        self.rates.append(rate)

    def say(self, question: Hashable, ask: Ask) -> None:
        """Ask the forecaster where it is, unless it has been asked; what it refuses it refuses to all."""
        key = len(self.rates), question
        if key not in self.said:
            try:
                self.said[key] = ask(self.forecaster)
            except Exception as refused:
                self.said[key] = refused


class _Follows:
    """Goes along a way; beside it, with a forecaster of its own, once it has left it."""

    def __init__(self, way: _Way, make: Make) -> None:
        self._way: _Way | None = way
        self._make = make
        self._learnt: list[float] = []
        self._own: Forecaster | None = None

    @property
    def ready(self) -> bool:
        """Whether it has learnt enough to forecast."""
        return bool(self._asked("ready", lambda one: one.ready))

    def learn(self, rate: float) -> None:
        """Take in a rate; the first to come here lets the shared forecaster learn it."""
        if self._way is None:
            self._alone().learn(rate)
            return
        place, rates = len(self._learnt), self._way.rates
        if place == len(rates):
            self._way.learn(rate)
        elif not _same(rates[place], rate):
            self._leave().learn(rate)
            return
        self._learnt.append(rate)

    def forecast(self, horizon: int) -> Rates:
        """The rates of the next intervals."""
        found: Rates = self._asked(*_mean(horizon))
        return found

    def _asked(self, question: Hashable, ask: Ask) -> Any:
        """The answer that is known, or that of the forecaster; one that it refused is refused again."""
        if self._way is None:
            return ask(self._alone())
        key = len(self._learnt), question
        if key not in self._way.said:
            if len(self._learnt) < len(self._way.rates):  # it has gone on
                return ask(self._leave())
            self._way.say(question, ask)
        answer = self._way.said[key]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _leave(self) -> Forecaster:
        """Go on alone, with all that was learnt so far."""
        own = self._own = self._make()
        for rate in self._learnt:
            own.learn(rate)
        self._way, self._learnt = None, []
        return own

    def _alone(self) -> Forecaster:
        assert self._own is not None
        return self._own


class _FollowsQuantiles(_Follows):
    """The same where the forecaster knows how sure it is."""

    def quantiles(self, horizon: int, levels: Sequence[float]) -> Rates:
        """The rates that the next intervals stay under with these probabilities."""
        found: Rates = self._asked(*_quantiles(horizon, levels))
        return found


def _mean(horizon: int) -> tuple[Hashable, Ask]:
    return ("forecast", horizon), lambda one: one.forecast(horizon)


def _quantiles(horizon: int, levels: Sequence[float]) -> tuple[Hashable, Ask]:
    return ("quantiles", horizon, *levels), lambda one: one.quantiles(horizon, levels)


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))
