"""Results of railyard as pandas data frames.

    from railyard_db import Results, railyard
    railyard("run", "scenarios/hello/first.toml", "--db", "out.sqlite")
    results = Results("out.sqlite")
    results.metric("goodput")

The tables are described in tools/README.md; anything else is one `results.sql(...)` away.
"""

import json
import os
import pathlib
import sqlite3
import subprocess

import pandas as pd

ROOT = pathlib.Path(__file__).resolve().parents[1]


def railyard(*arguments):
    """Runs the program from the repository's root and gives back what it prints. $RAILYARD names another build."""
    program = os.environ.get("RAILYARD", ROOT / "tools" / "railyard")
    done = subprocess.run([program, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"railyard {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


class Results:
    """A results database, to be read. Every method gives a data frame."""

    def __init__(self, path):
        if not pathlib.Path(path).exists():
            raise FileNotFoundError(path)
        self.db = sqlite3.connect(f"{pathlib.Path(path).resolve().as_uri()}?mode=ro", uri=True)
        version = self.sql("SELECT value FROM meta WHERE key = 'schema_version'").value[0]
        if version != "2":
            raise ValueError(f"{path} has schema version {version}, this module reads 2")

    def sql(self, query, parameters=()):
        return pd.read_sql_query(query, self.db, params=parameters)

    def runs(self):
        return self.sql("SELECT * FROM runs ORDER BY run").set_index("run")

    def points(self):
        """One row a point of a run: status, goodput with its interval, and its settings, a column each."""
        rows = self.sql("SELECT o.*, p.settings FROM overview o JOIN points p ON p.point = o.point ORDER BY run, position")
        settings = [dict(s.split("=", 1) for s in json.loads(text)) for text in rows.pop("settings")]
        return rows.join(pd.DataFrame(settings, index=rows.index))

    def axes(self, run=None):
        """Where each point of a sweep lies: a row a point, a column an axis, numbers in the axis's unit, else texts."""
        rows = self.sql("SELECT v.run, v.position, a.key, coalesce(v.value, v.text) AS value FROM axis_values v "
                        "JOIN axes a ON a.run = v.run AND a.axis = v.axis WHERE ? IS NULL OR v.run = ?", (run, run))
        return rows.pivot(index=["run", "position"], columns="key", values="value").infer_objects()

    def metrics(self, run=None):
        """Means over replicas: a row a point, a column a metric."""
        rows = self.sql("SELECT run, position, name, mean FROM metric_means WHERE ? IS NULL OR run = ?", (run, run))
        return rows.pivot(index=["run", "position"], columns="name", values="mean")

    def metric(self, name):
        """One metric with its interval, a row a point."""
        return self.sql("SELECT run, position, label, unit, replicas, mean, low, high FROM metric_means WHERE name = ?", (name,))

    def replicas(self, name):
        """One metric of each replica: a row a replica, a column a point. Rows are pairs: the same random numbers."""
        rows = self.sql("SELECT point, replica, value FROM metrics WHERE name = ?", (name,))
        return rows.pivot(index="replica", columns="point", values="value")

    def ledger(self):
        """Share of all GPU time: a row a point, a column a category."""
        rows = self.sql("SELECT run, position, category, fraction FROM ledger_means")
        return rows.pivot(index=["run", "position"], columns="category", values="fraction")

    def events(self, point, replica=0):
        """What happened in a replica, in days since its beginning. The first replica of a run keeps its events."""
        rows = self.sql("SELECT * FROM events WHERE point = ? AND replica = ? ORDER BY time_ns", (point, replica))
        rows.insert(2, "day", rows.pop("time_ns") / 86400e9)
        return rows
