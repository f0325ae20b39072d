"""Orders over HTTP: who may give them, what is refused, and that only they change anything."""

from __future__ import annotations

import json
import stat
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import pytest

from penstock.control.orders import Freeze, Hold, Order
from penstock.control.steering import Steering, check_order
from penstock.errors import InputError
from penstock.metrics.store import Store
from penstock.ui.access import Access, look, read_access, send
from penstock.ui.listen import Listen
from penstock.ui.server import serving
from penstock.ui.steer import Bridge
from tests.waiting import LONG_S

from .conftest import RUN

ORDER = {"order": "hold", "operator": "split", "replicas": 4, "who": "Ana"}


class Ship:
    """A run that only notes its orders."""

    def __init__(self) -> None:
        self.steering = Steering()
        self.taken: list[tuple[Order, str]] = []

    def steer(self, order: Order, who: str) -> Steering:
        check_order(order, {"split": 8, "count": 8})
        self.taken.append((order, who))
        self.steering = self.steering.after(order)
        return self.steering


@pytest.fixture
def ship() -> Ship:
    return Ship()


@pytest.fixture
def access(store: Store, ship: Ship) -> Iterator[Access]:
    made: list[Access] = []

    def bridge(url: str) -> Bridge:
        made.append(Access.new(url, RUN, Listen()))
        return Bridge(ship, made[0])

    with serving(store, Listen(port=0), bridge=bridge):
        yield made[0]


def post(access: Access, body: object = ORDER, run: str = RUN, **headers: str) -> tuple[int, str]:
    """What a request with the token answers, unless headers say otherwise."""
    sent = {"content_type": "application/json", "authorization": f"Bearer {access.token}", **headers}
    named = {name.replace("_", "-"): value for name, value in sent.items() if value}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{access.url}api/runs/{run}/orders", data, named, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=LONG_S) as found:
            return found.status, found.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_an_order_with_the_token_is_carried_out(access: Access, ship: Ship) -> None:
    status, told = post(access)
    assert status == 200
    assert json.loads(told)["told"] == ["split by hand: 4 replicas"]
    assert ship.taken == [(Hold("split", 4), "Ana (127.0.0.1)")]


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer wrong", "Basic {}", "Bearer {}x", "Bearer ü"])
def test_without_the_token_nothing_is_done(access: Access, ship: Ship, authorization: str) -> None:
    header = authorization.format(access.token).encode().decode("latin-1")
    status, told = post(access, authorization=header)
    assert status == 401
    assert "needs the run's token" in told
    assert access.token not in told
    assert ship.taken == []


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"host": "evil.example"},
        {"sec_fetch_site": "cross-site", "sec_fetch_mode": "cors"},
        {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"},  # a form that another site's page sends
    ],
)
def test_another_site_is_refused_even_with_the_token(access: Access, ship: Ship, headers: dict[str, str]) -> None:
    assert post(access, **headers)[0] == 403
    assert ship.taken == []


def test_the_runs_own_page_is_let_in(access: Access) -> None:
    own = access.url.rstrip("/")
    assert post(access, origin=own, sec_fetch_site="same-origin", sec_fetch_mode="cors")[0] == 200


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"{", 400, "an order must be a JSON object"),
        (b"[]", 400, "an order must be a JSON object"),
        (b" " * 10_001, 413, "at most 10,000 bytes"),
        ({"order": "hodl"}, 400, "did you mean 'hold'?"),
        ({**ORDER, "replicas": 9}, 400, "operator 'split' has a pool of 8; got 9 replicas"),
        ({**ORDER, "operator": "splt"}, 400, "did you mean 'split'?"),
        ({**ORDER, "replicas": None}, 400, "replicas must be whole and at least 1"),
    ],
)
def test_what_is_no_order_is_said(access: Access, ship: Ship, body: object, status: int, told: str) -> None:
    found = post(access, body)
    assert (found[0], told in found[1]) == (status, True), found
    assert ship.taken == []


def test_only_json_is_read(access: Access, ship: Ship) -> None:
    """What a form of another page can send without being asked for leave is not JSON."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert post(access, content_type=kind)[0] == 415
    assert ship.taken == []


def test_another_run_than_the_one_that_goes_on_here_takes_none(access: Access, url: str) -> None:
    assert post(access, run="other")[0] == 404
    status, told = post(Access(url, RUN, access.token))
    assert (status, "start it with `penstock run" in told) == (404, True)


def test_a_name_is_shortened_and_printable(access: Access, ship: Ship) -> None:
    post(access, {"order": "freeze", "who": "\x1b[31m" + "x" * 200})
    post(access, {"order": "freeze"})
    assert [who for _, who in ship.taken] == [f"[31m{'x' * 76} (127.0.0.1)", "somebody (127.0.0.1)"]


def test_what_is_in_force_can_be_read_without_the_token(access: Access) -> None:
    post(access)
    assert look(Access(access.url, RUN, ""))["by_hand"] == {"split": 4}


def test_the_file_is_the_owners_alone_and_opens_the_run(access: Access, ship: Ship, tmp_path: Path) -> None:
    file = access.write(tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for place in (tmp_path, file):
        assert read_access(place) == access
    assert send(read_access(tmp_path), Freeze(), "Ben")["told"] == ["frozen"]
    assert ship.taken == [(Freeze(), "Ben (127.0.0.1)")]
    assert access.token not in repr(access)


def test_every_token_is_another() -> None:
    tokens = {Access.new("http://127.0.0.1:1/", RUN, Listen()).token for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(one) >= 43 for one in tokens)


def test_refusals_reach_who_sends_an_order(access: Access, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^order, operator: no such name 'clean'; known: split, count"):
        send(access, Hold("clean", 2), "Ana")
    with pytest.raises(InputError, match=r"needs the run's token"):
        send(Access(access.url, RUN, "x"), Freeze(), "Ana")
    with pytest.raises(InputError, match=r"nobody answers at http://127.0.0.1:1/; has it ended\?"):
        send(Access("http://127.0.0.1:1/", RUN, "x"), Freeze(), "Ana")
    with pytest.raises(InputError, match=r"no file steer.json; is it the folder of a run that goes on"):
        read_access(tmp_path)
    (tmp_path / "steer.json").write_text("{}")
    with pytest.raises(InputError, match=r"must say where a run listens, and its token"):
        read_access(tmp_path)


def test_under_tls_only_the_runs_own_certificate_is_trusted(store: Store, ship: Ship, tmp_path: Path) -> None:
    for name in ("own", "other"):
        files = ["-keyout", str(tmp_path / f"{name}.key"), "-out", str(tmp_path / f"{name}.pem")]
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
        subprocess.run([*command, *files], check=True, capture_output=True)
    listen = Listen(port=0, cert=tmp_path / "own.pem", key=tmp_path / "own.key")
    made: list[Access] = []

    def bridge(url: str) -> Bridge:
        made.append(Access.new(url, RUN, listen))
        return Bridge(ship, made[0])

    with serving(store, listen, bridge=bridge):
        assert send(made[0], Freeze(), "Ana")["frozen"]
        wrong = Access(made[0].url, RUN, made[0].token, str(tmp_path / "other.pem"))
        with pytest.raises(InputError, match="nobody answers"):
            send(wrong, Freeze(), "Ana")
    assert len(ship.taken) == 1
