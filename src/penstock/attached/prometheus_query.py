"""What waits at a query's source, asked of Prometheus."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from penstock.common.checks import positive
from penstock.errors import EngineError, InputError


class PrometheusQuery:
    """What a query of Prometheus comes to now, summed over its series; for `attach(lag={name: …})`.

    `headers` go with every request, as where a token is asked for.

        lag = penstock.PrometheusQuery("http://prometheus:9090", 'kafka_consumergroup_lag{topic="clicks"}')

    >>> PrometheusQuery("prometheus:9090", "up")
    Traceback (most recent call last):
    penstock.errors.InputError: Prometheus: url must begin with http:// or https://; got 'prometheus:9090'
    """

    def __init__(
        self, url: str, query: str, *, within_s: float = 5.0, headers: Mapping[str, str] | None = None
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise InputError(f"Prometheus: url must begin with http:// or https://; got {url!r}")
        positive("Prometheus", "within_s", within_s)
        self.url = url.rstrip("/")
        self.query = query
        self.within_s = within_s
        self.headers = dict(headers or {})

    def __repr__(self) -> str:
        return f"PrometheusQuery({self.url!r}, {self.query!r})"

    def __call__(self) -> float:
        """Ask; an EngineError says why there is no number."""
        request = Request(f"{self.url}/api/v1/query?{urlencode({'query': self.query})}", headers=self.headers)
        try:
            with urlopen(request, timeout=self.within_s) as answer:
                return _summed(json.load(answer)["data"])
        except HTTPError as error:
            with error:
                raise EngineError(f"{self}: Prometheus answers {error.code} {error.reason}") from None
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise EngineError(f"{self}: {error or type(error).__name__}") from None


def _summed(data: Mapping[str, Any]) -> float:
    """Of an instant vector the sum of its values, of a scalar itself.

    >>> _summed({"resultType": "vector", "result": [{"value": [1.0, "3"]}, {"value": [1.0, "4.5"]}]})
    7.5
    """
    kind, result = data["resultType"], data["result"]
    if kind == "scalar":
        return float(result[1])
    if kind != "vector":
        raise ValueError(f"its result must be a vector or a scalar; got a {kind}")
    if not result:
        raise ValueError("it has no series")
    return math.fsum(float(one["value"][1]) for one in result)
