"""Keeps other sites out: what a browser says of itself is looked at before any page is."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.ui.listen import is_known_host

HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_OWN_SITES = (None, "none", "same-origin")


class Guard:
    """Lets requests through that come from here; all else is refused with a sentence."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app = app
        self._host = host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        why = refusal(Headers(scope=scope), scope["scheme"], self._host, scope["method"])
        app = self._app if why is None else PlainTextResponse(f"{why}\n", status_code=403)
        await app(scope, receive, guarded)


def refusal(headers: Headers, scheme: str, listen_host: str, method: str = "GET") -> str | None:
    """Why a request is not answered; None if it is. From other sites only links lead here, and forms do not.

    >>> refusal(Headers({"host": "localhost:8470", "origin": "http://evil.example"}), "http", "127.0.0.1")
    "the Origin header must be 'http://localhost:8470', as the page's own is; got 'http://evil.example'"
    """
    host, origin = headers.get("host", ""), headers.get("origin")
    if not is_known_host(host, listen_host):
        return f"the Host header must be an address, localhost or {listen_host!r}; got {host!r}"
    own = f"{scheme}://{host}"
    if origin is not None and origin.lower() != own.lower():
        return f"the Origin header must be {own!r}, as the page's own is; got {origin!r}"
    is_link = headers.get("sec-fetch-mode") == "navigate" and method in ("GET", "HEAD")
    if headers.get("sec-fetch-site") not in _OWN_SITES and not is_link:
        return "another site's page asks for this; only links lead here from there"
    return None
