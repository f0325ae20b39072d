"""Support vector regression on the last rates, one regression for each step ahead."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from penstock.common.checks import whole
from penstock.errors import InputError
from penstock.forecast.base import NotReady, Rates, checked_horizon, checked_rate
from penstock.forecast.parts.windows import padded, remember, windows

_COST = 1.0  # of an error outside the tube, on the scale of standard deviations
_TUBE = 0.05  # of a standard deviation: errors within it are none


@dataclass(frozen=True, slots=True)
class Machine:
    """The fitted regressions: ŷ_k = Σ_i c_ik · exp(−γ·‖x − x_i‖²) + b_k, over the windows x_i that any of them uses."""

    windows: Rates
    weights: Rates
    offsets: Rates
    gamma: float
    middle: float
    spread: float

    def rates(self, recent: Rates) -> Rates:
        """The rates after a window."""
        x = (recent - self.middle) / self.spread
        near = np.exp(-self.gamma * ((self.windows - x) ** 2).sum(axis=1))
        return np.asarray((near @ self.weights + self.offsets) * self.spread + self.middle, dtype=np.float64)


@dataclass(kw_only=True, eq=False)
class Svr:
    """Support vector regression with a radial kernel on the last `window` rates, one for each of `horizon` steps.

        ŷ(t+k) = Σ_i c_ik · exp(−γ·‖x(t) − x_i‖²) + b_k      x(t) = the last rates in standard deviations

    Fitted off line with scikit-learn, on at most `rows` windows spread evenly over the training part, so that it takes
    seconds. Beyond `horizon` it reads its own forecasts. A missing rate is taken as the last known one.

    >>> wave = 100 + 50 * np.sin(np.arange(300) / 5)
    >>> svr = Svr(window=8, horizon=2)
    >>> svr.fit(wave[:250], wave[250:298])
    >>> bool(abs(svr.forecast(2) - wave[298:]).max() < 5)
    True

    Smola and Schölkopf, "A tutorial on support vector regression", Statistics and Computing 14, 2004.
    """

    window: int = 36
    horizon: int = 12
    rows: int = 3000

    def __post_init__(self) -> None:
        for option in ("window", "horizon", "rows"):
            whole("forecaster 'svr'", option, getattr(self, option), least=10 if option == "rows" else 1)
        self._recent: deque[float] = deque(maxlen=self.window)
        self._machine: Machine | None = None

    @property
    def ready(self) -> bool:
        """After it has been fitted."""
        return self._machine is not None

    def fit(self, rates: Rates, validation: Rates) -> None:
        """Fit to the first part, then follow both: nothing is chosen on the second."""
        rates = np.asarray(rates, dtype=np.float64)
        seen, after = windows(rates, self.window, self.horizon)
        if len(seen) < 2:
            least = self.window + self.horizon + 1
            known = np.count_nonzero(~np.isnan(rates))
            raise InputError(f"forecaster 'svr': training needs at least {least} rates in a row; got {known}")
        kept = np.unique(np.linspace(0, len(seen) - 1, min(self.rows, len(seen))).astype(int))
        self._machine = fitted(seen[kept], after[kept])
        for rate in np.concatenate((rates, validation)):
            self.learn(float(rate))

    def learn(self, rate: float) -> None:
        """Take in a rate and forget the one that leaves the window; the regressions stay as they are."""
        remember(self._recent, checked_rate(rate))

    def forecast(self, horizon: int) -> Rates:
        """What the regressions expect, none below 0."""
        horizon = checked_horizon(horizon)
        if self._machine is None:
            raise NotReady("forecaster 'svr': needs to be trained before use; has no support vectors yet")
        seen = padded(self._recent, self.window)
        while len(seen) < self.window + horizon:
            seen = np.concatenate((seen, self._machine.rates(seen[-self.window :])))
        return np.maximum(seen[self.window : self.window + horizon], 0.0)


def fitted(seen: Rates, after: Rates) -> Machine:
    """The regressions of what came after these windows; γ is 1 / (window · variance), as scikit-learn's `scale`."""
    from sklearn.svm import SVR

    middle, spread = float(seen.mean()), float(seen.std()) or 1.0
    x, y = (seen - middle) / spread, (after - middle) / spread
    gamma = 1.0 / (x.shape[1] * (float(x.var()) or 1.0))
    weights, offsets = np.zeros(y.shape), np.zeros(y.shape[1])
    for step in range(y.shape[1]):
        machine = SVR(C=_COST, epsilon=_TUBE, gamma=gamma).fit(x, y[:, step])
        weights[machine.support_, step] = machine.dual_coef_[0]
        offsets[step] = machine.intercept_[0]
    used = weights.any(axis=1)
    return Machine(x[used], weights[used], offsets, gamma, middle, spread)
