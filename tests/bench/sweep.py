#!/usr/bin/python3
"""How fast a sweep is: 10,000 points x 20 replicas of 1,024 GPUs over 30 days.

    sweep.py RAILYARD [POINTS]        (also 'tools/railyard bench sweep [POINTS]')

Runs it with one thread and with two, checks that both left the same digest, and prints CPU time of the process, what
of it the database took, and scaling from one thread to two. The database's part is the CPU time of writing, from
the first batch to the last commit (run_times.database_s): SQLite, and the kernel's part of its writes. Scaling is the ratio of wall times; of CPU times where other work takes cores away: then it is twice the ratio of
the CPU times, because two threads share what one does alone.
"""

import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time

STUDY = pathlib.Path(__file__).resolve().parents[2] / "scenarios" / "studies" / "interval_and_store.toml"

AXES = """
[sweep]
design = "sobol"
points = {points}
replicas = 20
[[sweep.axis]]
key = "storage.server_write_bandwidth"
from = "5 GB/s"
to = "100 GB/s"
scale = "log"
[[sweep.axis]]
key = "job.checkpoint.interval"
from = "15 min"
to = "8 h"
scale = "log"
"""


def sweep(railyard, folder, threads):
    database = folder / f"{threads}.sqlite"
    began = time.monotonic()
    done = subprocess.run([railyard, "sweep", "study.toml", "--db", database, "-j", str(threads), "--json"],
                          cwd=folder, capture_output=True, text=True, check=True)
    wall = time.monotonic() - began
    connection = sqlite3.connect(database)
    cpu, writing = connection.execute("SELECT cpu_s, database_s FROM run_times").fetchone()
    connection.close()
    return json.loads(done.stdout)["digest"], wall, cpu, writing, os.path.getsize(database)


def main():
    railyard = str(pathlib.Path(sys.argv[1]).resolve())
    points = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scenario = STUDY.read_text()
        (folder / "study.toml").write_text(scenario[:scenario.index("[sweep]")] + AXES.format(points=points))
        results = {threads: sweep(railyard, folder, threads) for threads in (1, 2)}
    for threads, (digest, wall, cpu, writing, size) in results.items():
        print(f"sweep of {points} points x 20 replicas, -j {threads}: {wall:.1f} s wall, {cpu:.1f} s CPU, database "
              f"{writing:.2f} s ({100 * writing / cpu:.1f} %), {size / 1e6:.0f} MB, digest {digest}")
    print(f"scaling from one thread to two: {results[1][1] / results[2][1]:.2f} by wall time, "
          f"{2 * results[1][2] / results[2][2]:.2f} by CPU time; load {os.getloadavg()[0]:.1f}")
    if results[1][0] != results[2][0]:
        print("the digests differ")
        return 1
    return 0


sys.exit(main())
