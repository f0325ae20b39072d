"""`--cluster spark://HOST:PORT`: what is asked of Spark, and what is no cluster."""

from __future__ import annotations

import pytest

from penstock.cli.clustered import cluster_request, new_cluster, session_settings
from penstock.errors import InputError
from penstock.topology import Topology

URL = "spark://10.0.0.5:7077"


def topology() -> Topology:
    """A source and two operators with a pool of 3: seven tasks."""
    made = Topology("chain", pool=3)
    made.operator("b", len, inputs=made.operator("a", len, inputs=made.source("in")))
    return made


def test_the_session_has_executors_for_all_pools_on_the_fewest_workers():
    request = cluster_request(URL, "2..4", replicas=9)
    assert request is not None
    assert (request.url, request.capacity) == (URL, 3)
    assert new_cluster(request, topology(), None) is None  # type: ignore[arg-type]
    settings = session_settings(request, topology(), None)
    cores = int(settings["spark.executor.cores"])
    assert cores * 2 >= 2 * 7  # two shifts
    assert settings["spark.cores.max"] == str(4 * cores)
    assert settings["spark.master"] == URL
    assert settings["spark.decommission.enabled"] == "true"
    assert session_settings(None, topology(), None) == {}


@pytest.mark.parametrize("kind", ["spark://host", "spark://host:x", "yarn", "spark:/host:7077", "spark://a b:7077"])
def test_no_such_cluster(kind):
    with pytest.raises(InputError, match=r"--cluster: no such name .*; known: local, spark://HOST:PORT"):
        cluster_request(kind, None, replicas=9)


def test_workers_need_a_cluster():
    with pytest.raises(InputError, match="--workers needs --cluster local or spark://HOST:PORT"):
        cluster_request(None, "2", replicas=9)
