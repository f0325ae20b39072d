"""The networks themselves: Keras on JAX, loaded when one is first used.

Nothing of Keras is kept in a forecaster: a network is its shape and its weights as arrays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from penstock.errors import InputError
from penstock.forecast.base import Rates

Weights = tuple[np.ndarray[Any, np.dtype[np.float32]], ...]
_BACKEND = "KERAS_BACKEND"


@dataclass(frozen=True, slots=True)
class Shape:
    """What a network looks like: `layers` of `units` cells over `window` rates, then a dense layer of `horizon`."""

    cell: str  # LSTM or GRU
    both_ways: bool
    window: int
    horizon: int
    units: int
    layers: int


@dataclass(frozen=True)
class Built:
    """A network ready to compute; its weights are given with each call."""

    model: Any
    apply: Callable[[Sequence[Any], Any], Any]


def installed() -> bool:
    """Whether the libraries of the extra `deep` are there."""
    return all(find_spec(name) is not None for name in ("keras", "jax"))


def check_installed(name: str) -> None:
    """An InputError where they are not."""
    if not installed():
        raise InputError(
            f"forecaster '{name}': needs the extra 'deep' (Keras on JAX), which is not installed; "
            "to install it: pip install 'penstock[deep]'"
        )


def load_keras() -> Any:
    """Keras on JAX; an InputError where it is loaded already on something else."""
    if "keras" not in sys.modules:
        os.environ[_BACKEND] = "jax"
    keras = import_module("keras")
    if keras.backend.backend() != "jax":
        raise InputError(
            f"recurrent forecasters need Keras on jax; it is loaded already on {keras.backend.backend()}: "
            f"set {_BACKEND}=jax before it is imported"
        )
    return keras


def initial_weights(shape: Shape, seed: int) -> Weights:
    """Weights to start from, drawn by seed."""
    drawn = _model(shape, seed).trainable_variables
    return tuple(np.asarray(variable.value, dtype=np.float32) for variable in drawn)


@lru_cache(maxsize=16)
def built(shape: Shape) -> Built:
    """The network of this shape, compiled on its first call; kept, because compiling takes seconds."""
    load_keras()
    import jax

    model = _model(shape, 0)
    rest = [variable.value for variable in model.non_trainable_variables]

    def apply(weights: Sequence[Any], scaled: Any) -> Any:
        return model.stateless_call(list(weights), rest, scaled[..., None], training=False)[0]

    return Built(model, jax.jit(apply))


class Network:
    """Trained weights in their shape; a pickle has arrays only."""

    def __init__(self, shape: Shape, weights: Weights) -> None:
        self.shape = shape
        self.weights = weights
        self._placed: Any = None  # the weights where JAX computes

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_placed": None}

    def outputs(self, scaled: Rates) -> Rates:
        """The next `horizon` scaled rates after each window, a row each."""
        network = built(self.shape)
        if self._placed is None:
            from jax import device_put

            self._placed = device_put(self.weights)
        return np.asarray(network.apply(self._placed, np.asarray(scaled, dtype=np.float32)), dtype=np.float64)


def _model(shape: Shape, seed: int) -> Any:
    """The Keras model with weights drawn by seed, another draw for every layer and direction."""
    keras = load_keras()
    layers = [keras.Input((shape.window, 1))]
    for level in range(shape.layers):
        first, second = (_cells(shape, level, 1000 * seed + 100 * level + way) for way in (0, 50))
        layers.append(keras.layers.Bidirectional(first(), backward_layer=second(True)) if shape.both_ways else first())
    layers.append(keras.layers.Dense(shape.horizon, kernel_initializer=_glorot(1000 * seed + 999)))
    return keras.Sequential(layers)


def _cells(shape: Shape, level: int, draw: int) -> Callable[..., Any]:
    """What makes one direction of a layer."""
    keras = load_keras()

    def make(backwards: bool = False) -> Any:
        return getattr(keras.layers, shape.cell)(
            shape.units,
            return_sequences=level < shape.layers - 1,
            go_backwards=backwards,
            kernel_initializer=_glorot(draw),
            recurrent_initializer=keras.initializers.Orthogonal(seed=draw + 1),
        )

    return make


def _glorot(draw: int) -> Any:
    return load_keras().initializers.GlorotUniform(seed=draw)
