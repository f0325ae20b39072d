"""What a person may tell a run while it goes on: orders as values, in JSON the same words as on the command line.

>>> str(parse_order({"order": "hold", "operator": "clean", "replicas": 4}))
'clean by hand: 4 replicas'
>>> order_as_json(Limit("clean", most=6))
{'order': 'limit', 'operator': 'clean', 'least': None, 'most': 6}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

from penstock.common.checks import positive, whole
from penstock.common.names import hint, one_of
from penstock.errors import InputError


@dataclass(frozen=True, slots=True)
class Freeze:
    """The policy changes nothing any more; what is set by hand still counts."""

    def __str__(self) -> str:
        return "freeze: no change but by hand"


@dataclass(frozen=True, slots=True)
class Unfreeze:
    """The policy decides again."""

    def __str__(self) -> str:
        return "unfreeze: the policy decides again"


@dataclass(frozen=True, slots=True)
class Limit:
    """At least and at most so many replicas of an operator; None for a bound that there is not."""

    operator: str
    least: int | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        _named("limit", self.operator)
        least, most = (None if one is None else whole("order 'limit'", name, one) for name, one in self._bounds)
        if least is not None and most is not None and least > most:
            raise InputError(f"order 'limit': least must be at most {most}, as most is; got {least}")

    @property
    def _bounds(self) -> tuple[tuple[str, int | None], ...]:
        return ("least", self.least), ("most", self.most)

    def __str__(self) -> str:
        given = [f"at {name} {count}" for name, count in self._bounds if count is not None]
        return f"{self.operator}: {' and '.join(given) or 'no bounds but its pool'}"


@dataclass(frozen=True, slots=True)
class Hold:
    """So many replicas of an operator, whatever the policy and its limits say, until it is released."""

    operator: str
    replicas: int

    def __post_init__(self) -> None:
        _named("hold", self.operator)
        whole("order 'hold'", "replicas", self.replicas)

    def __str__(self) -> str:
        return f"{self.operator} by hand: {self.replicas} replicas"


@dataclass(frozen=True, slots=True)
class Release:
    """The policy decides on this operator again."""

    operator: str

    def __post_init__(self) -> None:
        _named("release", self.operator)

    def __str__(self) -> str:
        return f"{self.operator}: the policy decides again"


@dataclass(frozen=True, slots=True)
class UsePolicy:
    """Another policy, by name and options."""

    policy: str

    def __post_init__(self) -> None:
        _text("policy", "policy", self.policy)

    def __str__(self) -> str:
        return f"policy {self.policy}"


@dataclass(frozen=True, slots=True)
class UseShadow:
    """Another policy decides in the shadow of the present one, and is never carried out; `none` for none."""

    policy: str

    def __post_init__(self) -> None:
        _text("shadow", "policy", self.policy)

    def __str__(self) -> str:
        return f"shadow {self.policy}"


@dataclass(frozen=True, slots=True)
class UseCanary:
    """Another policy decides in the shadow until it is better, then takes over; `none` for none."""

    policy: str  # with its minutes among its options

    def __post_init__(self) -> None:
        _text("canary", "policy", self.policy)

    def __str__(self) -> str:
        return f"canary {self.policy}"


@dataclass(frozen=True, slots=True)
class UseForecaster:
    """Another forecaster, by name and options; `none` for none."""

    forecaster: str

    def __post_init__(self) -> None:
        _text("forecaster", "forecaster", self.forecaster)

    def __str__(self) -> str:
        return f"forecaster {self.forecaster}"


@dataclass(frozen=True, slots=True)
class SetTd:
    """Another length of the interval, in seconds."""

    td_s: float

    def __post_init__(self) -> None:
        positive("order 'td'", "td_s", self.td_s)

    def __str__(self) -> str:
        return f"td {self.td_s:g} s"


@dataclass(frozen=True, slots=True)
class Stop:
    """End the run with a savepoint: finish what is in flight within so many seconds, and checkpoint it."""

    within_s: float = 30.0

    def __post_init__(self) -> None:
        positive("order 'stop'", "within_s", self.within_s)

    def __str__(self) -> str:
        return f"stop with a savepoint, within {self.within_s:g} s"


Order = Freeze | Unfreeze | Limit | Hold | Release | UsePolicy | UseShadow | UseCanary | UseForecaster | SetTd | Stop
ORDERS: dict[str, type[Order]] = {
    "freeze": Freeze,
    "unfreeze": Unfreeze,
    "limit": Limit,
    "hold": Hold,
    "release": Release,
    "policy": UsePolicy,
    "shadow": UseShadow,
    "canary": UseCanary,
    "forecaster": UseForecaster,
    "td": SetTd,
    "stop": Stop,
}
_NAMES = {kind: name for name, kind in ORDERS.items()}


def parse_order(value: object) -> Order:
    """The order that a mapping describes; an InputError that names the nearest right key where one is wrong.

    >>> parse_order({"order": "hold", "operator": "clean", "replica": 4})
    Traceback (most recent call last):
    penstock.errors.InputError: order 'hold': no such key 'replica'; known: operator, replicas; did you mean 'replicas'?
    """
    if not isinstance(value, Mapping):
        raise InputError(f"order: must be an object with the key 'order'; got {type(value).__name__}")
    given = dict(value)
    name = one_of("order", str(given.pop("order", "")), ORDERS)
    known = {one.name: one for one in fields(ORDERS[name])}
    for key in given:
        if key not in known:
            raise InputError(
                f"order {name!r}: no such key {key!r}; known: {', '.join(known) or 'none'}{hint(str(key), known)}"
            )
    missing = [one.name for one in known.values() if one.default is MISSING and one.name not in given]
    if missing:
        raise InputError(f"order {name!r}: needs {' and '.join(missing)}")
    return ORDERS[name](**given)


def order_as_json(order: Order) -> dict[str, Any]:
    """The same as a mapping of JSON's values, as it is sent and kept."""
    return {"order": _NAMES[type(order)], **asdict(order)}


def _named(order: str, operator: object) -> None:
    _text(order, "operator", operator)


def _text(order: str, key: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"order {order!r}: {key} must be a name; got {value!r}")
