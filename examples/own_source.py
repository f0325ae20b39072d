"""A source of one's own: the rows of a table to which others append, read from a cursor on.

    python examples/own_source.py

It appends 300 orders in three seconds while a run reads them, and prints

    300 orders, 45150 pieces
"""

import sqlite3
import tempfile
import time

from penstock import CollectSink, Reader, Run, Source, Topology, collected


class TableSource(Source):
    def __init__(self, file):
        self.file = file

    def open(self, slot, cursor):  # in the slot's own process
        return TableReader(self.file, slot, cursor or 0)


class TableReader(Reader):
    cursor = 0  # the last row that was read: a reader opened there reads the next one

    def __init__(self, file, slot, cursor):
        self.table, self.slot, self.cursor = sqlite3.connect(file), slot, cursor

    def poll(self, most, wait_s):
        query = "SELECT id, at_s, pieces FROM orders WHERE id > ? AND id % ? = ? ORDER BY id LIMIT ?"
        rows = self.table.execute(query, (self.cursor, self.slot.slots, self.slot.number, most)).fetchall()
        if rows:
            self.cursor = rows[-1][0]
        else:
            time.sleep(wait_s)
        return [(f"order-{number}", at_s, {"pieces": pieces}) for number, at_s, pieces in rows]


def shop(folder):
    topology = Topology("shop")
    topology.operator("collect", CollectSink(folder), inputs=topology.source("orders"))
    return topology


if __name__ == "__main__":
    folder, results = tempfile.mkdtemp(), tempfile.mkdtemp()
    table = sqlite3.connect(f"{folder}/shop.db", isolation_level=None)
    table.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, at_s REAL, pieces INTEGER)")
    with Run(shop(results), TableSource(f"{folder}/shop.db")) as run:
        for pieces in range(1, 301):
            table.execute("INSERT INTO orders (at_s, pieces) VALUES (?, ?)", (time.time(), pieces))
            time.sleep(0.01)
        while len(orders := list(collected(results))) < 300:
            time.sleep(0.1)
    print(f"{len(orders)} orders, {sum(order['pieces'] for _, order in orders)} pieces")
