"""Orders over HTTP: only with the run's token, only from its own page or from no page at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request

from penstock.control.orders import Order, parse_order
from penstock.control.steering import Steering, in_words
from penstock.errors import PenstockError
from penstock.ui.access import Access

MOST_BYTES = 10_000  # of an order
MOST_NAME = 80
NOT_HERE = "orders are for a run that goes on: start it with `penstock run … --ui PORT`, and send them to that port"


class Steerable(Protocol):
    """A run that takes orders."""

    @property
    def steering(self) -> Steering:
        """What is in force."""

    def steer(self, order: Order, who: str) -> Steering:
        """Have an order carried out; an InputError where that cannot be."""


@dataclass(frozen=True, slots=True)
class Bridge:
    """The one run that can be steered from here, and what opens it."""

    run: Steerable
    access: Access

    def told(self) -> dict[str, Any]:
        """What is in force, for pages and programs."""
        return in_words(self.run.steering)

    async def take(self, request: Request) -> dict[str, Any]:
        """An order, if it may be given."""
        self._open(request)
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        if kind != "application/json":
            raise HTTPException(415, f"an order must be application/json; got {kind!r}")
        order = await _read(request)
        who = f"{_name(order)} ({request.client.host if request.client else 'unknown'})"
        try:
            await run_in_threadpool(lambda: self.run.steer(parse_order(order), who))
        except PenstockError as error:
            raise HTTPException(400, str(error)) from error
        return self.told()

    def _open(self, request: Request) -> None:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not self.access.opens_with(token.strip()):
            why = "an order needs the run's token, which was shown at its start and is in steer.json of its folder"
            raise HTTPException(401, why, {"www-authenticate": "Bearer"})


async def _read(request: Request) -> dict[str, Any]:
    """The body, if it is a short JSON object."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise HTTPException(413, f"an order must be at most {MOST_BYTES:,} bytes")
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise HTTPException(400, f"an order must be a JSON object; {error}") from error


def _name(order: dict[str, Any]) -> str:
    """Who says that he gives it; whoever has the token may say anything."""
    name = order.pop("who", None)
    shown = "".join(one for one in str(name or "") if one.isprintable()).strip()
    return shown[:MOST_NAME] or "somebody"
