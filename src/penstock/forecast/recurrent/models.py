"""The four recurrent forecasters."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.common.checks import whole
from penstock.errors import InputError
from penstock.forecast.base import NotReady, Rates, checked_horizon, checked_rate
from penstock.forecast.parts.windows import padded, remember, windows
from penstock.forecast.recurrent.fitting import Examples, Schedule, train
from penstock.forecast.recurrent.network import Network, Shape, check_installed
from penstock.forecast.recurrent.scaling import MinMax

_HELD_OUT = 0.2  # of the windows, where no validation part is given


@dataclass(kw_only=True, eq=False)
class Recurrent:
    """A network that reads the last `window` rates and gives the next `horizon` at once; trained off line.

        x = (y − low) / (high − low)      (x̂(t+1) … x̂(t+f)) = D · cells(x(t−b+1) … x(t))      loss (x − x̂)²

    Rates are scaled to 0..1 by the training part. `layers` of `units` cells are followed by a dense layer of
    `horizon` outputs. Training takes at most `epochs`, in batches of `batch` windows, and keeps the weights of the
    least error on the validation part. The same `seed` gives the same network. Beyond `horizon` it reads its own
    forecasts. A missing rate is taken as the last known one. Needs the extra `deep`.
    """

    window: int = 36
    horizon: int = 12
    units: int = 32
    layers: int = 1
    epochs: int = 60
    seed: int = 0
    batch: int = 32

    name: ClassVar[str]
    cell: ClassVar[str]
    both_ways: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_installed(self.name)
        for option in ("window", "horizon", "units", "layers", "epochs", "seed", "batch"):
            least = 0 if option == "seed" else 1
            whole(f"forecaster '{self.name}'", option, getattr(self, option), least)
        self._recent: deque[float] = deque(maxlen=self.window)
        self._scale: MinMax | None = None
        self._network: Network | None = None

    @property
    def ready(self) -> bool:
        """After it has been fitted."""
        return self._network is not None

    def fit(self, rates: Rates, validation: Rates) -> None:
        """Train on the first part and stop by the second; without one, the last fifth of the windows stops it."""
        rates, validation = (np.asarray(part, dtype=np.float64) for part in (rates, validation))
        self._scale = None if np.isnan(rates).all() else MinMax.fitted(rates)
        training, held_out = self._examples(rates, validation)
        schedule = Schedule(self.epochs, self.batch, self.seed)
        weights = train(self._shape, training, held_out, schedule)
        self._network = Network(self._shape, weights)
        for rate in np.concatenate((rates, validation)):
            self.learn(float(rate))
        self.forecast(1)  # compiles it now, not in the first interval

    def learn(self, rate: float) -> None:
        """Take in a rate and forget the one that leaves the window; the network stays as it is."""
        remember(self._recent, checked_rate(rate))

    def forecast(self, horizon: int) -> Rates:
        """The network's outputs as rates, none below 0."""
        horizon = checked_horizon(horizon)
        if self._network is None or self._scale is None:
            raise NotReady(f"forecaster '{self.name}': needs to be trained before use; has no weights yet")
        seen = self._scale.down(padded(self._recent, self.window))
        while len(seen) < self.window + horizon:
            seen = np.concatenate((seen, self._network.outputs(seen[None, -self.window :])[0]))
        return np.maximum(self._scale.up(seen[self.window : self.window + horizon]), 0.0)

    @property
    def _shape(self) -> Shape:
        return Shape(self.cell, self.both_ways, self.window, self.horizon, self.units, self.layers)

    def _examples(self, rates: Rates, validation: Rates) -> tuple[Examples, Examples]:
        """Scaled windows to train on, and those whose targets lie in the validation part."""
        x, y = self._windows(rates)
        held_out = self._windows(np.concatenate((rates[len(rates) - self.window :], validation)))
        if not len(held_out[0]):
            kept = len(x) - max(1, round(_HELD_OUT * len(x)))
            (x, y), held_out = (x[:kept], y[:kept]), (x[kept:], y[kept:])
        if not len(x):
            least = self.window + self.horizon + 1
            raise InputError(
                f"forecaster '{self.name}': training needs at least {least} rates in a row "
                f"(window {self.window}, horizon {self.horizon}); got {np.count_nonzero(~np.isnan(rates))}"
            )
        return (x, y), held_out

    def _windows(self, rates: Rates) -> Examples:
        if self._scale is None:
            return np.empty((0, self.window)), np.empty((0, self.horizon))
        return windows(self._scale.down(rates), self.window, self.horizon)


class Lstm(Recurrent):
    """Long short-term memory: a cell with an input, a forget and an output gate. Options as in `Recurrent`.

    >>> Lstm(window=24, units=16).ready
    False

    Hochreiter and Schmidhuber, "Long short-term memory", Neural Computation 9, 1997.
    """

    name = "lstm"
    cell = "LSTM"


class Gru(Recurrent):
    """Gated recurrent units: as an LSTM, with two gates and no separate memory. Options as in `Recurrent`.

    >>> Gru(window=24).forecast(1)
    Traceback (most recent call last):
    penstock.forecast.base.NotReady: forecaster 'gru': needs to be trained before use; has no weights yet

    Cho et al., "Learning phrase representations using RNN encoder–decoder", EMNLP 2014.
    """

    name = "gru"
    cell = "GRU"


class BiLstm(Recurrent):
    """Two LSTM layers, one of which reads the window from its end. Options as in `Recurrent`.

    >>> BiLstm(seed=3).seed
    3

    Schuster and Paliwal, "Bidirectional recurrent neural networks", IEEE Transactions on Signal Processing 45, 1997.
    """

    name = "bilstm"
    cell = "LSTM"
    both_ways = True


class BiGru(Recurrent):
    """Two GRU layers, one of which reads the window from its end: the predictor of BGElasor. Options as in `Recurrent`.

    >>> BiGru(units=0)
    Traceback (most recent call last):
    penstock.errors.InputError: forecaster 'bigru': units must be whole and at least 1; got 0

    Mu et al., "BGElasor: elastic-scaling framework for distributed streaming processing with deep neural network",
    NPC 2019.
    """

    name = "bigru"
    cell = "GRU"
    both_ways = True
