#!/usr/bin/python3
"""Adds a sweep and a comparison of made-up points to a results database, for pages that must hold many rows.

usage: make_sweep.py DATABASE POINTS

The points have the metrics, categories and causes of the database's first point, moved by a formula of their
place on three axes; so the tables are as wide as real ones, and a test can say what a chart must show.
"""

import json
import math
import sqlite3
import sys

SERVERS = [2, 4, 8, 16, 32]
INTERVALS = [5, 10, 15, 20, 30, 45, 60, 90, 120, 240]


def goodput(servers, interval, spares):
    lost = 0.02 + 0.004 * interval / 10 + 0.3 / (servers * interval) + 0.02 / (1 + spares)
    return 1 - lost


def main():
    path, count = sys.argv[1], int(sys.argv[2])
    db = sqlite3.connect(path)
    metrics = db.execute("SELECT name, unit, mean FROM point_metrics WHERE point = 1 AND mean IS NOT NULL").fetchall()
    ledger = db.execute("SELECT category, gpu_s, fraction FROM point_ledger WHERE point = 1").fetchall()
    causes = db.execute("SELECT cause, count FROM point_interruptions WHERE point = 1").fetchall()
    version, work = db.execute("SELECT version, work FROM points WHERE point = 1").fetchone()
    run = db.execute("SELECT max(run) FROM runs").fetchone()[0] + 1
    first = db.execute("SELECT max(point) FROM points").fetchone()[0] + 1
    db.execute("INSERT INTO runs VALUES (?, 'sweep', 'made-up', 'made_up.toml', 'Servers, intervals, spares', ?, 1, ?, 20,"
               " NULL, 'complete', 'd1', 't1', NULL, NULL, NULL)", [run, version, count])
    for axis, (key, unit) in enumerate([("storage.servers", ""), ("job.checkpoint.interval", "s"), ("cluster.nodes", "")]):
        db.execute("INSERT INTO axes VALUES (?, ?, ?, ?)", [run, axis, key, unit])
    for i in range(count):
        servers = SERVERS[i % len(SERVERS)]
        interval = INTERVALS[i // len(SERVERS) % len(INTERVALS)]
        spares = i // (len(SERVERS) * len(INTERVALS))
        point = first + i
        good = goodput(servers, interval, spares)
        db.execute("INSERT INTO points VALUES (?, ?, 1, ?, 'made up', ?, 1, 'complete', NULL, 512, 20, NULL, NULL, ?, ?, ?)",
                   [point, f"made-up {i}", json.dumps([f"storage.servers={servers}"]), version, work, f"{i:016x}", f"{i:016x}"])
        db.execute("INSERT INTO run_points VALUES (?, ?, ?, '')", [run, i, point])
        for axis, (text, value) in enumerate([(str(servers), servers), (f"{interval} min", interval * 60), (str(128 + spares), 128 + spares)]):
            db.execute("INSERT INTO axis_values VALUES (?, ?, ?, ?, ?)", [run, i, axis, text, value])
        rows = []
        for k, (name, unit, mean) in enumerate(metrics):
            moved = good if name == "goodput" else mean * (1 + 0.1 * math.sin(i * 0.37 + k))
            rows.append([point, name, unit, moved, 0.001, moved * 0.99, moved * 1.01])
        rows.append([point, "cost", "USD", 1e5 * (servers + 10 * spares + 50), 0, None, None])
        db.executemany("INSERT INTO point_metrics VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        lost = sum(fraction for category, _, fraction in ledger if category != "productive")
        db.executemany("INSERT INTO point_ledger VALUES (?, ?, ?, ?)",
                       [[point, category, gpu_s, good if category == "productive" else fraction / lost * (1 - good)]
                        for category, gpu_s, fraction in ledger])
        db.executemany("INSERT INTO point_interruptions VALUES (?, ?, ?)",
                       [[point, cause, n * (1 + 0.2 * math.sin(i))] for cause, n in causes])
    if count >= 2:
        db.execute("INSERT INTO runs VALUES (?, 'compare', NULL, 'a.toml', 'Two stores', ?, 1, 2, 20, NULL, 'complete', 'd2', 't2', NULL, NULL, NULL)",
                   [run + 1, version])
        for position, label in enumerate(["eight servers", "thirty-two <b>servers</b>"]):
            db.execute("INSERT INTO run_points VALUES (?, ?, ?, ?)", [run + 1, position, first + 2 + 2 * position, label])
        for metric, unit, difference, verdict, settle in [("goodput", "1", 0.0123, "b", None), ("cost", "USD", 2.4e6, "a", None),
                                                          ("ettr", "1", 0.0004, "undecided", 340)]:
            db.execute("INSERT INTO comparisons VALUES (?, ?, 0, 1, ?, 'more', 20, 0.9, 0.9123, ?, ?, ?, 0.95, 0.8, ?, ?)",
                       [run + 1, metric, unit, difference, difference - 0.002, difference + 0.002, verdict, settle])
    db.commit()


main()
