"""Who may steer a run: its token, in a file that only its owner can read, and how an order is sent with it."""

from __future__ import annotations

import getpass
import hmac
import json
import secrets
import ssl
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from penstock.common.files import write_whole
from penstock.control.orders import Order, order_as_json
from penstock.errors import InputError
from penstock.ui.listen import Listen

FILE = "steer.json"  # in the run's folder
ANSWER_S = 30.0


@dataclass(frozen=True, slots=True)
class Access:
    """Where a run listens, and the token that it asks for; made anew at every start of a driver."""

    url: str
    run: str
    token: str
    cert: str | None = None  # the certificate that it shows, where it does

    @staticmethod
    def new(url: str, run: str, listen: Listen) -> Access:
        """With a token that nobody has seen yet."""
        return Access(url, run, secrets.token_urlsafe(32), None if listen.cert is None else str(listen.cert.resolve()))

    def __repr__(self) -> str:
        return f"Access({self.url!r}, {self.run!r})"  # no log shall have the token

    def opens_with(self, token: str) -> bool:
        """Whether this is the token; takes as long wherever they differ."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def write(self, folder: Path) -> Path:
        """Leave it in the run's folder, readable for its owner only."""
        write_whole(folder / FILE, json.dumps(asdict(self), indent=2).encode() + b"\n")
        return folder / FILE


def read_access(place: Path) -> Access:
    """What a run has left in its folder, or in that file."""
    file = place / FILE if place.is_dir() else place
    try:
        return Access(**json.loads(file.read_text()))
    except FileNotFoundError:
        why = f"no file {FILE}; is it the folder of a run that goes on, and was that started with --ui PORT?"
        raise InputError(f"run in {str(place)!r}: {why}") from None
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"file {str(file)!r}: must say where a run listens, and its token; {error}") from error


def send(access: Access, order: Order, who: str) -> dict[str, Any]:
    """Give a run an order; what is in force then. An InputError has the run's own words where it refuses."""
    body = json.dumps({**order_as_json(order), "who": who}).encode()
    path = f"{access.url}api/runs/{quote(access.run, safe='')}/orders"
    headers = {"content-type": "application/json", "authorization": f"Bearer {access.token}"}
    return _answer(urllib.request.Request(path, body, headers, method="POST"), access)


def look(access: Access) -> dict[str, Any]:
    """What is in force."""
    path = f"{access.url}api/runs/{quote(access.run, safe='')}/orders"
    return _answer(urllib.request.Request(path), access)


def this_user() -> str:
    """Whose program this is, as the machine has it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return "somebody"


def _answer(request: urllib.request.Request, access: Access) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_S, context=_trust(access)) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found
    except urllib.error.HTTPError as error:
        with error:
            raise InputError(error.read().decode().strip() or f"{access.url}: {error}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise InputError(f"run '{access.run}': nobody answers at {access.url}; has it ended? {reason}") from error


def _trust(access: Access) -> ssl.SSLContext | None:
    """Just the certificate that the run was given, whatever name is in it."""
    if access.cert is None:
        return None
    context = ssl.create_default_context(cafile=access.cert)
    context.check_hostname = False
    return context
