"""What a query died of, read out of what Spark, Java and Python say."""

from __future__ import annotations

import pytest

from penstock.engine.driver.causes import Cause, Kind, cause_of, failed_event, kind_of

WORKER_LOG = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure:
Task 1 in stage 3.0 failed 1 times: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/pyspark/worker.py", line 3117, in main
    process()
  File "/x/penstock/engine/replica.py", line 200, in _fail
    raise EngineError(
penstock.errors.EngineError: operator 'clean' (app.py:12): KeyError: 'text'; on event 7: {'t': 1}
\tat org.apache.spark.api.python.BasePythonRunner
"""
PLAIN_LOG = """Job aborted
Traceback (most recent call last):
  File "x.py", line 1
ZeroDivisionError: division by zero
\tat org.apache.spark"""
EXITED_LOG = """Job aborted due to stage failure: Lost task 0.0
org.apache.spark.SparkException: Python worker exited unexpectedly (crashed): java.io.EOFException
\tat org.apache.spark.api.python.BasePythonRunner"""

LOST_LOG = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task 0.0
ExecutorLostFailure (executor 1 exited unrelated to the running tasks)
Driver stacktrace:"""


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (RuntimeError(WORKER_LOG), "operator 'clean' (app.py:12): KeyError: 'text'; on event 7: {'t': 1}"),
        (RuntimeError(PLAIN_LOG), "ZeroDivisionError: division by zero"),
        (RuntimeError(EXITED_LOG), "Python worker exited unexpectedly (crashed): java.io.EOFException"),
        (RuntimeError(LOST_LOG), "ExecutorLostFailure (executor 1 exited unrelated to the running tasks)"),
        (RuntimeError("the checkpoint is locked\nby somebody"), "the checkpoint is locked"),
        (RuntimeError("x" * 2000), "x" * 500),
        (RuntimeError("\n  late \n"), "late"),
        (None, "it ended without saying why"),
        (TimeoutError(), "TimeoutError()"),
    ],
    ids=["ours", "python", "killed", "lost", "first-line", "long", "blank", "none", "empty"],
)
def test_the_cause_is_the_sentence_that_a_person_wants(error: Exception | None, cause: str) -> None:
    """An exception without a message used to raise another one here, which ended the watch."""
    assert cause_of(error).text == cause


OURS = "operator 'parse' (app.py:3): open failed: KeyError: 'x'"
BAD_EVENT = "operator 'parse' (app.py:3): ValueError: no such number; on event 41: {'n': 'x'}"
FOLDER = "worker home-2 on vm does not see what the run keeps in the folder /data/run: share it with all workers"

KINDS = {
    Kind.ENVIRONMENT: (
        "Lost task 0.0 in stage 1.0 (TID 1): java.io.IOException: Broken pipe",  # a killed worker was written to
        "Python worker exited unexpectedly (crashed): java.io.EOFException",
        "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: worker lost",
        "operator 'store' (app.py:3): open failed: OperationalError: connection to server at 127.0.0.1 failed",
        "operator 'store' (app.py:3): OperationalError: server closed the connection unexpectedly; on event 3: {}",
        "it could not be started again: [Errno 28] No space left on device: '/data/run.json.new'",
        "TimeoutError: the driver did not answer within 30 s: StartQuery(generation=3)",
        "OSError: When uploading part for key 'run/1.json': AWS Error NETWORK_CONNECTION during UploadPart: curlCode 7",
        "source 'in' (app.py:1): KafkaException: KafkaError{code=_TRANSPORT,val=-195,str=\"broker down\"}",
    ),
    Kind.CONSEQUENCE: (
        "Lost task 3.0: Connection to streaming shuffle writer 5 closed before termination",
        "Lost task 0.0 in stage 0.0 (TID 0): io.netty.channel.StacklessClosedChannelException",
    ),
    Kind.EVENT: (
        BAD_EVENT,
        "operator 'store' (app.py:3): OperationalError: no such table: events; on event 3: {}",
        "operator 'parse' (app.py:3): ValueError: no; on event 41: 'Connection refused'",
        "operator 'parse' (app.py:3): ValueError: no; on event 41: 'ClosedChannelException'",
    ),
    Kind.UNSEEN: (FOLDER,),
    Kind.PROGRAM: (
        OURS,
        "ZeroDivisionError: division by zero",
        "operator 'parse' (app.py:3): ValueError: no; on event 41 or one of the 3 after it: 'Connection refused'",
        "it ended without saying why",
        f"it could not be started again: {FOLDER}",  # the driver's own complaint, which may go better the next time
    ),
}


@pytest.mark.parametrize(("kind", "sentence"), [(kind, one) for kind, said in KINDS.items() for one in said])
def test_the_kind_is_read_out_of_what_is_said(kind: Kind, sentence: str) -> None:
    assert kind_of(sentence) is kind


def test_the_environments_are_what_it_did_and_what_came_of_that() -> None:
    assert {kind for kind in Kind if Cause(kind, "").outside} == {Kind.ENVIRONMENT, Kind.CONSEQUENCE}


def test_only_an_event_that_failed_is_known_again() -> None:
    away = "operator 'store' (app.py:3): ConnectionRefusedError: [Errno 111] Connection refused; on event 41: {}"
    assert cause_of(RuntimeError(BAD_EVENT)).event == BAD_EVENT.partition(": {")[0]
    assert cause_of(RuntimeError(away)).event is None


def test_what_comes_before_the_sentence_is_part_of_it() -> None:
    cause = cause_of(OSError(28, "No space left on device"), before="it could not be started again: ")
    assert cause == Cause(Kind.ENVIRONMENT, "it could not be started again: [Errno 28] No space left on device")


def test_the_same_event_is_known_again_whatever_python_shows_of_it() -> None:
    """An object without a representation of its own is shown with its place in memory."""
    said = "operator 'parse' (app.py:3): ValueError: no; on event topic-3-17: <Event object at 0x7f{}>"
    assert failed_event(said.format(1)) == failed_event(said.format(2)) == said.partition(": <")[0]
