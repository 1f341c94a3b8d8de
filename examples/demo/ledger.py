# SPDX-License-Identifier: MIT
"""The shop's database: creates it before a phase and audits it after the phase."""

import sqlite3
from collections import namedtuple

ITEMS = 100  # stock at the beginning of a phase

# One turn of a worker: the time in which no other worker must have a turn, and whether it sold an item.
Turn = namedtuple("Turn", "worker from_ns until_ns sold")

# sales: rows of the ledger. oversold: sales above ITEMS. lowest: smallest stock that was ever written. most_per_item:
# largest number of sales that saw the same stock. overlaps: see overlaps().
Audit = namedtuple("Audit", "sales oversold stock lowest most_per_item overlaps")


def create(path):
    """Creates the database with a stock of ITEMS and an empty ledger."""
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE item (stock INTEGER NOT NULL)")
        db.execute(
            "CREATE TABLE sale (id INTEGER PRIMARY KEY, worker INTEGER NOT NULL,"
            " stock_seen INTEGER NOT NULL, from_ns INTEGER NOT NULL, sold_ns INTEGER NOT NULL)"
        )
        db.execute("INSERT INTO item VALUES (?)", (ITEMS,))
    db.close()


def overlaps(turns):
    """Returns the number of turns that began before the end of another worker's turn."""
    count, inside_until = 0, 0
    for turn in sorted(turns, key=lambda turn: turn.from_ns):
        if turn.from_ns < inside_until:
            count += 1
        inside_until = max(inside_until, turn.until_ns)
    return count


def audit(path, turns):
    """Returns the audit: stock and ledger from the database, overlaps from the turns that the workers
    reported, with those that sold nothing."""
    db = sqlite3.connect(path)
    (stock,) = db.execute("SELECT stock FROM item").fetchone()
    sales, lowest = db.execute("SELECT count(*), min(stock_seen - 1) FROM sale").fetchone()
    (most,) = db.execute(
        "SELECT max(n) FROM (SELECT count(*) AS n FROM sale GROUP BY stock_seen)"
    ).fetchone()
    db.close()
    lowest = min(stock, ITEMS if lowest is None else lowest)
    return Audit(sales, max(0, sales - ITEMS), stock, lowest, most or 0, overlaps(turns))


def is_right(audit):
    """True if every item was sold exactly once, the stock was never negative, and no turns overlap."""
    return (
        audit.sales == ITEMS
        and audit.stock == 0
        and audit.lowest == 0
        and audit.most_per_item == 1
        and audit.overlaps == 0
    )
