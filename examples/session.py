"""A session of one's own: Spark prepares the events and looks at the results, and a run works in between.

    python examples/session.py

It makes 400 orders with Spark, runs them through a topology in the same session, and prints what Spark counts:

    large 100
    small 300
"""

import os
import sys
import tempfile

from pyspark.sql import SparkSession

from penstock import CollectSink, Run, Topology, TraceSource, collected, constant, spark_settings


def size(order):
    return {**order, "size": "large" if order["pieces"] > 75 else "small"}


def orders(folder):
    topology = Topology("orders", pool=2)
    sized = topology.operator("size", size, inputs=topology.source("orders"))
    topology.operator("collect", CollectSink(folder), inputs=sized, pool=1)
    return topology


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need Penstock, too
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    quiet = {"spark.ui.enabled": "false", "spark.log.level": "OFF", "spark.sql.shuffle.partitions": "2"}
    builder = SparkSession.builder.master("local[8]").config(map=spark_settings() | quiet)  # a slot for every replica
    spark = builder.getOrCreate()
    prepared = [row.asDict() for row in spark.range(400).selectExpr("id % 100 + 1 AS pieces").collect()]
    folder = tempfile.mkdtemp()
    with Run(orders(folder), TraceSource(constant(200, duration_s=2), prepared), spark=spark) as run:
        run.wait()
    found = spark.createDataFrame([event for _, event in collected(folder)])
    for row in found.groupBy("size").count().orderBy("size").collect():
        print(row["size"], row["count"])
    spark.stop()
