"""A topology of one's own: messages are cleaned, told apart by a named stream, and stored in a database.

    python examples/topology.py

It sends 600 messages in three seconds and prints

    300 questions, 300 statements stored
"""

import sqlite3
import tempfile
from pathlib import Path

from penstock import DatabaseSink, Run, To, Topology, TraceSource, constant


def clean(message):
    return {"text": " ".join(message["text"].split())}


def dispatch(message):
    return To("questions" if message["text"].endswith("?") else "statements", message)


def mailbox(database):
    topology = Topology("mailbox", pool=2)
    cleaned = topology.operator("clean", clean, inputs=topology.source("messages"))
    told_apart = topology.operator("dispatch", dispatch, inputs=cleaned, outputs=("questions", "statements"))
    for stream in ("questions", "statements"):
        topology.operator(f"store_{stream}", DatabaseSink(database, stream), inputs=told_apart[stream], pool=1)
    return topology


if __name__ == "__main__":
    file = Path(tempfile.mkdtemp()) / "mailbox.db"
    messages = [{"text": "Is the  bridge open?"}, {"text": "The bridge is  open"}]
    with Run(mailbox(f"sqlite:///{file}"), TraceSource(constant(200, duration_s=3), messages)) as run:
        run.set_replicas("clean", 2)  # at once, while events flow
        run.wait()
    with sqlite3.connect(file) as stored:
        ((questions,),) = stored.execute("SELECT count(*) FROM questions")
        ((statements,),) = stored.execute("SELECT count(*) FROM statements")
    print(f"{questions} questions, {statements} statements stored")
