from __future__ import annotations

from penstock.forecast.trained.on_spark import _cause


def test_what_spark_says_is_cut_to_the_cause() -> None:
    message = (
        "An error occurred while calling collectAndServe.\n: org.apache.spark.SparkException: Job aborted due to stage "
        "failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 (TID 3) (host): "
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider setting things.\n\tat x"
    )
    assert _cause(message) == "Python worker exited unexpectedly (crashed)"
    assert _cause("out of memory\nand more") == "out of memory"
