"""Training: Adam on the mean squared error, stopped early by a validation part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from penstock.forecast.base import Rates
from penstock.forecast.recurrent.network import Shape, Weights, built, initial_weights, load_keras

_RATE = 0.002  # Adam's learning rate
_PATIENCE = 8  # epochs without a better validation error
_LEAST_GAIN = 1e-4  # of the error: a smaller one is none

Examples = tuple[Rates, Rates]  # scaled windows, and what came after each


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long to train, how many windows to take at a time, and the seed of all draws."""

    epochs: int
    batch: int
    seed: int


@dataclass(frozen=True)
class Steps:
    """One epoch from state to state (weights and Adam's memory), the error on a part, and the memory to start with."""

    epoch: Callable[..., Any]
    error: Callable[..., Any]
    memory: list[Any]


def train(shape: Shape, training: Examples, validation: Examples, schedule: Schedule) -> Weights:
    """The weights of the epoch with the least validation error.

    Every epoch sees all windows once, in an order drawn by seed; what does not fill a batch waits for the next epoch.
    """
    steps = _compiled(shape)
    state = (list(initial_weights(shape, schedule.seed)), steps.memory)
    x, y = (np.asarray(part, dtype=np.float32) for part in training)
    held_out = tuple(np.asarray(part, dtype=np.float32) for part in validation)
    draw = np.random.default_rng(schedule.seed)
    best, least, waited = state[0], float("inf"), 0
    for _ in range(schedule.epochs):
        state = steps.epoch(state, x, y, _batches(len(x), schedule.batch, draw))
        reached = float(steps.error(state[0], *held_out))
        if reached < least * (1 - _LEAST_GAIN):
            best, least, waited = state[0], reached, 0
        elif (waited := waited + 1) >= _PATIENCE:
            break
    return tuple(np.asarray(weights, dtype=np.float32) for weights in best)


def _batches(rows: int, batch: int, draw: np.random.Generator) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The rows of an epoch's batches, one batch a line."""
    batch = min(batch, rows)
    return draw.permutation(rows)[: rows // batch * batch].reshape(-1, batch)


@lru_cache(maxsize=16)
def _compiled(shape: Shape) -> Steps:
    """An epoch as one call, for this shape; kept, because compiling takes longer than a small training."""
    keras = load_keras()
    import jax

    network = built(shape)
    adam = keras.optimizers.Adam(learning_rate=_RATE)
    adam.build(network.model.trainable_variables)

    def error(weights: Any, x: Any, y: Any) -> Any:
        return ((network.apply(weights, x) - y) ** 2).mean()

    def epoch(state: Any, x: Any, y: Any, batches: Any) -> Any:
        def step(state: Any, rows: Any) -> tuple[Any, None]:
            slopes = jax.grad(error)(state[0], x[rows], y[rows])
            return adam.stateless_apply(state[1], slopes, state[0]), None

        return jax.lax.scan(step, state, batches)[0]

    return Steps(jax.jit(epoch), jax.jit(error), [variable.value for variable in adam.variables])
