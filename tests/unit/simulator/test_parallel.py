from __future__ import annotations

from threadpoolctl import threadpool_info

from penstock.simulator.parallel import done


def threads(_: int) -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_each_process_does_linear_algebra_in_one_thread():
    """Forecasters' fits kept the cores of all others busy: their threads waited for each other."""
    assert [found for _, found in done(threads, [0, 1], jobs=2)] == [[1], [1]]
