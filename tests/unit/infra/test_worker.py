from __future__ import annotations

from pathlib import Path

import pytest

from penstock.infra.worker import executor_here


@pytest.mark.parametrize(
    ("environment", "folder", "executor"),
    [
        ({}, "/spark/worker-2/app-20261116055720-0000/0", "0"),
        ({}, "/spark/app-20261116055720-0000/17", "17"),
        ({"SPARK_EXECUTOR_ID": "4"}, "/opt/spark/work-dir", "4"),
        ({"SPARK_EXECUTOR_ID": "4"}, "/spark/app-20261116055720-0000/17", "4"),
        ({"SPARK_EXECUTOR_ID": ""}, "/spark/app-20261116055720-0000/17", "17"),
        ({}, "/home/me/app-notes/drafts", None),
        ({}, "/home/me/2026/11", None),
        ({}, "/", None),
    ],
)
def test_executor_of_a_process(environment: dict[str, str], folder: str, executor: str | None) -> None:
    assert executor_here(environment, Path(folder)) == executor


def test_a_test_runs_in_no_executor() -> None:
    assert executor_here() is None
