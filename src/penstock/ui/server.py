"""Serves the dashboard: in this thread until it is stopped, or beside a run in a thread of its own."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import uvicorn

from penstock.errors import InputError
from penstock.metrics.store import Store
from penstock.ui.app import Dashboard, Exposition
from penstock.ui.listen import Listen
from penstock.ui.steer import Bridge

MOST_CONNECTIONS = 128
START_WITHIN_S = 10.0
STOP_WITHIN_S = 3.0


def serve(place: str, listen: Listen, told: Callable[[str], None]) -> None:
    """Show a store until Ctrl-C; `told` gets the address once it listens."""
    with closing(Store(place, must_exist=True)) as store, listen.bind() as taken:
        listen = dataclasses.replace(listen, port=taken.getsockname()[1])
        server = _Server(Dashboard(store), listen)
        told(listen.url)
        server.run(sockets=[taken])


@contextmanager
def serving(
    kept: Store,
    listen: Listen,
    exposition: Exposition | None = None,
    bridge: Callable[[str], Bridge] | None = None,
) -> Iterator[str]:
    """Show a store, and metrics if there are any, while the block runs; gives the address.

    It has a thread and connections of its own, and only reads: nobody waits for a viewer. `bridge` makes, from the
    address, the way by which orders reach a run.
    """
    place = kept.url.render_as_string(hide_password=False)
    with closing(Store(place, must_exist=True)) as store, listen.bind() as taken:
        listen = dataclasses.replace(listen, port=taken.getsockname()[1])
        server = _Server(Dashboard(store, exposition, bridge(listen.url) if bridge else None), listen)
        thread = threading.Thread(target=server.run, args=([taken],), name="penstock-ui", daemon=True)
        thread.start()
        try:
            _wait_for(server, thread)
            yield listen.url
        finally:
            server.should_exit = True
            thread.join(STOP_WITHIN_S + 1)


class _Server(uvicorn.Server):
    """uvicorn, quiet, and letting go of viewers when it stops."""

    def __init__(self, dashboard: Dashboard, listen: Listen) -> None:
        self._dashboard = dashboard
        config = uvicorn.Config(
            dashboard.app(listen.host),
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # who asks is who is connected
            ws="none",
            lifespan="off",
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=int(STOP_WITHIN_S),
            ssl_certfile=listen.cert,
            ssl_keyfile=listen.key,
        )
        try:
            config.load()
        except OSError as error:  # TLS's are among them
            raise InputError(f"dashboard: no certificate and key in {listen.cert} and {listen.key}; {error}") from error
        super().__init__(config)

    async def on_tick(self, counter: int) -> bool:
        """Asked ten times a second whether to stop."""
        ending = await super().on_tick(counter)
        self._dashboard.closing = self._dashboard.closing or ending
        return ending


def _wait_for(server: _Server, thread: threading.Thread) -> None:
    deadline_s = time.monotonic() + START_WITHIN_S
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline_s:
            raise InputError("dashboard: the server has not started")
        time.sleep(0.01)
