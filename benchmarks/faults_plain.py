"""The other driver of benchmarks/faults.py: plain Structured Streaming, with a checkpoint and the same functions.

    faults_plain.py SETUP     # a file with a `Setup` as JSON

Events come as files in a folder. A name is of one domain only, so one stateful operator by domain counts both. Results
go to the tables in one transaction a batch, with the batch's number, as Spark's guide recommends: a batch that is done
again is not stored again. A query that dies is started again after a second, as whoever runs one in earnest has it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import faults_scenarios
import msgspec
import pandas as pd
import sqlalchemy as sql
from faults_ends import FED
from faults_scenarios import Setup, by_domain, by_name
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from penstock.engine.plan.queries import is_there

EVENTS = "number long, name string, domain string, poison string"
OUTPUT = "kind string, id string, event string"
PARTITIONS = 4
AGAIN_S = 1.0
BUSY_S = 60.0

_tables = sql.MetaData()
STORED = {
    kind: sql.Table(
        kind,
        _tables,
        sql.Column("id", sql.String),
        sql.Column("stored_at", sql.Double),
        sql.Column("event", sql.Text),
    )
    for kind in ("results", "letters")
}
BATCHES = sql.Table("batches", _tables, sql.Column("number", sql.BigInteger, primary_key=True))


def counted(event: dict[str, Any], held: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """What becomes of one event: a result, a dead letter, or nothing; what fails leaves no trace in the state.

    >>> held = {"domain": {}, "names": {}}
    >>> counted({"name": "a", "poison": "dead"}, held)[0], counted({"name": "a", "poison": ""}, held)[1]["of_name"]
    ('letters', 1)
    """
    names, name, domain = held["names"], event["name"], held["domain"]
    before = dict(names.get(name, {}))
    try:
        one = by_name(event, names.setdefault(name, {}))
    except ValueError:
        names[name] = before
        return "letters", {"event": event}
    before = dict(domain)
    try:
        return "results", by_domain(one, domain)
    except ValueError:
        domain.clear()
        domain.update(before)
        return None


def count(_: tuple[str], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """All events of a domain in one batch, in their order."""
    held = json.loads(state.get[0]) if state.exists else {"domain": {}, "names": {}}
    events = sorted((one for frame in frames for one in frame.to_dict("records")), key=lambda one: one["number"])
    all_ = [(event, counted(event, held)) for event in events]
    rows = [(came[0], str(event["number"]), json.dumps(came[1])) for event, came in all_ if came is not None]
    state.update((json.dumps(held),))
    yield pd.DataFrame(rows, columns=["kind", "id", "event"])


def opened(url: str) -> sql.Engine:
    arguments = {"timeout": BUSY_S} if url.startswith("sqlite") else {"connect_timeout": 10}
    return sql.create_engine(url, connect_args=arguments)


def store(url: str, batch: DataFrame, number: int) -> None:
    """One transaction: what is known by its number is there already."""
    rows, engine, now_s = batch.collect(), opened(url), time.time()
    try:
        with engine.begin() as connection:
            if connection.execute(sql.select(BATCHES).where(BATCHES.c.number == number)).first() is not None:
                return
            for kind, table in STORED.items():
                mine = [{"id": row.id, "stored_at": now_s, "event": row.event} for row in rows if row.kind == kind]
                if mine:
                    connection.execute(table.insert(), mine)
            connection.execute(BATCHES.insert(), [{"number": number}])
    finally:
        engine.dispose()


def session(setup: Setup) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    pickles: Any = cloudpickle
    pickles.register_pickle_by_value(faults_scenarios)  # workers do not know this folder
    builder = SparkSession.builder.appName("plain").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", PARTITIONS).config("spark.log.level", "ERROR")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    settings = {"spark.master": f"local[{PARTITIONS},4]", **setup.spark}  # a task is tried four times
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def start(spark: SparkSession, setup: Setup, url: str) -> StreamingQuery:
    frame = spark.readStream.schema(EVENTS).json(setup.source)
    grouped = frame.groupBy("domain").applyInPandasWithState(
        count, OUTPUT, "held string", "append", GroupStateTimeout.NoTimeout
    )
    writer = grouped.writeStream.outputMode("append").foreachBatch(lambda batch, number: store(url, batch, number))
    return writer.option("checkpointLocation", f"file://{setup.folder}/checkpoint").start()


def work(spark: SparkSession, setup: Setup, url: str) -> None:
    """Until all that was fed is stored; raises whatever the query died of."""
    query, fed = start(spark, setup, url), Path(setup.folder).with_name(FED)
    print("began", time.time(), flush=True)
    while not fed.exists():
        query.awaitTermination(1)
    query.processAllAvailable()
    query.stop()


def main(path: str) -> None:
    setup = msgspec.json.decode(Path(path).read_bytes(), type=Setup)
    url = setup.sinks[0].partition("#")[0]
    spark = session(setup)
    while True:
        try:
            engine = opened(url)
            _tables.create_all(engine)
            engine.dispose()
            work(spark, setup, url)
            break
        except Exception as error:
            print("restarting", " ".join(str(error).split())[:300], flush=True)
            if not is_there(spark):
                sys.exit(1)
            time.sleep(AGAIN_S)
    spark.stop()
    print("done 0 0 0", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
