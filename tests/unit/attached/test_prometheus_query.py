"""A number of Prometheus, asked over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import penstock
from penstock.errors import EngineError, InputError

QUERY = 'kafka_lag{topic="clicks & more"}'


class Answering(BaseHTTPRequestHandler):
    said: Any = None
    code = 200
    heard: list[tuple[str, str | None]] = []  # noqa: RUF012 - one server at a time

    def do_GET(self) -> None:
        self.heard.append((self.path, self.headers.get("Authorization")))
        data = self.said if isinstance(self.said, bytes) else json.dumps(self.said).encode()
        self.send_response(self.code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    Answering.heard, Answering.code = [], 200
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        serving.join()


def vector(*values: str) -> dict[str, Any]:
    result = [{"metric": {"partition": str(n)}, "value": [1.0, one]} for n, one in enumerate(values)]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def test_series_are_summed(url: str) -> None:
    Answering.said = vector("120", "30.5")
    assert penstock.PrometheusQuery(url, QUERY, headers={"Authorization": "Bearer abc"})() == 150.5
    ((path, token),) = Answering.heard
    assert (urlsplit(path).path, token) == ("/api/v1/query", "Bearer abc")
    assert parse_qs(urlsplit(path).query) == {"query": [QUERY]}
    Answering.said = {"status": "success", "data": {"resultType": "scalar", "result": [1.0, "7"]}}
    assert penstock.PrometheusQuery(url, "scalar(x)")() == 7.0


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (vector(), "it has no series"),
        ({"data": {"resultType": "matrix", "result": []}}, "its result must be a vector or a scalar; got a matrix"),
        (b"<html>", "Expecting value"),
        ({"status": "error"}, "'data'"),
    ],
)
def test_an_answer_without_a_number(url: str, said: Any, why: str) -> None:
    Answering.said = said
    with pytest.raises(EngineError, match=rf"^PrometheusQuery\('http.*{why}"):
        penstock.PrometheusQuery(url, "up")()


def test_who_refuses_or_is_not_there(url: str) -> None:
    Answering.said, Answering.code = b"no", 400
    with pytest.raises(EngineError, match="Prometheus answers 400 Bad Request"):
        penstock.PrometheusQuery(url, "up{")()
    with pytest.raises(EngineError, match="refused"):
        penstock.PrometheusQuery("http://127.0.0.1:9", "up", within_s=5.0)()


def test_wrong_options() -> None:
    with pytest.raises(InputError, match=r"^Prometheus: within_s must be .*; got 0"):
        penstock.PrometheusQuery("http://localhost:9090", "up", within_s=0)
