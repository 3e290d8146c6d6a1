"""What the tests of sweeps share: a small study, the program, and a database's content."""

import json
import pathlib
import resource
import signal
import sqlite3
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import checks  # noqa: E402
from checks import Failure, check, run_cases  # noqa: E402, F401

SECONDS_MAX = 120  # of one sweep, on a machine that has other things to do

SCENARIO = """
[run]
duration = "10 day"
[cluster]
node = "dgx_h100"
nodes = 18
[storage]
server_write_bandwidth = "20 GB/s"
server_read_bandwidth = "20 GB/s"
[job]
nodes = 16
step.time = "2 s"
checkpoint = { mode = "sync", size = "100 GB", interval = "20 min" }
[[failures.cause]]
name = "any"
mtbf_job = "6 h"
remedy = "restart"
detection = "1 min"
"""

STUDY = """
title = "intervals and stores"
[sweep]
scenario = "scenario.toml"
replicas = 6
[[sweep.axis]]
key = "job.checkpoint.interval"
values = ["5 min", "10 min", "20 min", "40 min"]
[[sweep.axis]]
key = "storage.server_write_bandwidth"
from = "1 GB/s"
to = "100 GB/s"
steps = 5
scale = "log"
"""


class Program(checks.Program):
    def start(self, folder, arguments, limit_bytes=None, memory_bytes=None):
        def before():
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if limit_bytes:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
            if memory_bytes:
                resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        return subprocess.Popen([self.path, *arguments], cwd=folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=before)

    def run(self, folder, arguments, code=0, **how):
        process = self.start(folder, arguments, **how)
        out, error = process.communicate(timeout=SECONDS_MAX)
        check(process.returncode == code, f"{' '.join(arguments)}: exit {process.returncode}, expected {code}\n"
                                          f"{out}\n{error}")
        return out, error

    def sweep(self, folder, db, *more, study="study.toml", code=0):
        out, _ = self.run(folder, ["sweep", study, "--db", db, "--json", *more], code)
        return json.loads(out)


def files(folder, scenario=SCENARIO, study=STUDY):
    (folder / "scenario.toml").write_text(scenario)
    (folder / "study.toml").write_text(study)


def query(folder, db, sql):
    connection = sqlite3.connect(f"file:{folder / db}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def content(folder, db, tables=None):
    """All that was found out, without how long it took."""
    connection = sqlite3.connect(folder / db)
    try:
        check(connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok", f"{db} is damaged")
        names = tables or [name for name, in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'run_times' ORDER BY name")]
        return {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in names}
    finally:
        connection.close()


def same(first, second, what):
    for table in first:
        check(first[table] == second[table], f"{what}: {table} differs:\n" + "\n".join(
            f"  {row}" for row in [r for r in first[table] if r not in second[table]][:3]
            + [r for r in second[table] if r not in first[table]][:3]))
