"""Simulated runs in the store: the same rows as a run on Spark leaves."""

from __future__ import annotations

from datetime import UTC, datetime

from penstock.cli.simulation import SimulationRequest
from penstock.metrics.rows import IntervalRecord, RunRow
from penstock.metrics.store import Store


class SimulatedRuns:
    """Enters one run for each policy, under the application's and the policy's names and the time."""

    def __init__(self, place: str, request: SimulationRequest) -> None:
        self._store = Store(place)
        self._request = request
        self._kept: list[_Kept] = []

    def keep(self, spec: str) -> _Kept:
        """Where the intervals of this policy go."""
        now, request = datetime.now(UTC), self._request
        run = f"{request.app}-{spec}-{now:%Y%m%d-%H%M%S.%f}"
        settings = {"simulated": True, "trace": request.input.name, "speedup": request.speedup} | {
            name: value for name in ("grouping", "levels", "workers") if (value := getattr(request, name)) is not None
        }
        self._store.start_run(
            RunRow(
                run=run,
                topology=request.app,
                policy=spec,
                td_s=request.options.td_s,
                started_at=now.isoformat(),
                settings={**settings, "seed": request.options.seed},
            )
        )
        self._kept.append(_Kept(self._store, run))
        return self._kept[-1]

    def close(self) -> None:
        """Say of all that they have ended."""
        for one in self._kept:
            self._store.finish_run(one.run, datetime.now(UTC).isoformat())
        self._store.close()


class _Kept:
    """Writes each interval at once: a simulation waits for nothing else."""

    def __init__(self, store: Store, run: str) -> None:
        self.run = run
        self._store = store

    def record(self, record: IntervalRecord) -> None:
        """Keep one interval."""
        self._store.write(self.run, record)
