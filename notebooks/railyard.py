"""railyard from Python: scenarios that run, and their results as pandas data frames.

    from railyard import Scenario
    base = Scenario("scenarios/hello/first.toml").set("run.replicas", 20)
    base.run().metric("goodput")
    base.compare(base.set("job.checkpoint.interval", "30 min")).comparisons()
    base.sweep({"job.checkpoint.interval": ["10 min", "30 min", "1 h"]}).metrics()

Nothing is simulated here: each call runs the program, waits for it (its progress line shows in a notebook and on
a terminal), and reads its database. The tables are described in tools/README.md; anything else is one
`results.sql(...)` away.
"""

import datetime
import difflib
import json
import math
import os
import pathlib
import pty
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import tomllib
import warnings

import numpy as np
import pandas as pd

ROOT = pathlib.Path(__file__).resolve().parents[1]


class RailyardError(RuntimeError):
    """The program refused, or could not finish: what it said, and its exit code (tools/README.md lists them)."""

    def __init__(self, arguments, code, message):
        super().__init__(f"railyard {' '.join(arguments)}: exit {code}\n{message}")
        self.code = code


def program():
    """The program: $RAILYARD, the checkout's launcher (which builds it when needed), or an installed one."""
    if "RAILYARD" in os.environ:
        return os.environ["RAILYARD"]
    launcher = ROOT / "tools" / "railyard"
    return str(launcher) if launcher.exists() else shutil.which("railyard")


class ProgressLine:
    """Shows the program's progress line: rewritten in a notebook's cell, as it is on a terminal."""

    def __init__(self):
        self.shown = None
        self.text = ""
        try:
            from IPython import get_ipython
            self.in_notebook = get_ipython() is not None and "IPKernelApp" in get_ipython().config
        except ImportError:
            self.in_notebook = False

    def show(self, text):
        self.text = text
        if self.in_notebook:
            from IPython.display import Pretty, display
            if self.shown is None:
                self.shown = display(Pretty(text), display_id=True)
            else:
                self.shown.update(Pretty(text))
        elif sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{text}")
            sys.stderr.flush()

    def end(self):
        if self.shown is not None or (sys.stderr.isatty() and not self.in_notebook):
            self.show("")


def read_messages(descriptor, line, kept):
    """Reads what the program writes to its terminal: progress goes to `line`, the rest is kept."""
    waiting = ""
    while True:
        try:
            block = os.read(descriptor, 4096)
        except OSError:  # the program has closed its end
            break
        if not block:
            break
        waiting += block.decode(errors="replace")
        pieces = re.split(r"[\r\n]+", waiting)
        waiting = pieces.pop()
        for piece in pieces:
            text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", piece)
            if re.search(r"\[[# ]*\] \d+/\d+", text):
                line.show(text)
            elif text:
                kept.append(text)
    if waiting:
        kept.append(re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", waiting))


def railyard(*arguments, partial=False):
    """Runs the program in the current folder and gives back what it prints.

    `partial` also takes exit code 4: a limit was reached and the result, marked as such, is there.
    """
    arguments = [str(a) for a in arguments]
    if program() is None:
        raise FileNotFoundError("there is no railyard: set $RAILYARD to the program")
    screen, terminal = pty.openpty()
    line, kept = ProgressLine(), []
    reader = threading.Thread(target=read_messages, args=(screen, line, kept))
    try:
        # In a session of its own: Ctrl-C reaches it once, by the signal below.
        running = subprocess.Popen([program(), *arguments], stdout=subprocess.PIPE, stderr=terminal, text=True,
                                   start_new_session=True)
    except OSError as error:
        os.close(screen)
        raise FileNotFoundError(f"{program()} is no program that runs ({error.strerror}): $RAILYARD names it") from error
    finally:
        os.close(terminal)
    reader.start()
    try:
        printed = running.communicate()[0]
    except KeyboardInterrupt:
        running.send_signal(2)
        running.communicate()
        raise
    finally:
        reader.join()
        os.close(screen)
        line.end()
    if running.returncode != 0 and not (partial and running.returncode == 4):
        raise RailyardError(arguments, running.returncode, "\n".join(kept))
    if running.returncode == 4 or any("warning:" in text for text in kept):
        warnings.warn("\n".join(kept), stacklevel=3)
    return printed


def toml(value):
    """A value in TOML: texts, numbers, times, lists and tables, those of numpy and pandas among them."""
    if isinstance(value, np.timedelta64):
        value = pd.Timedelta(value)
    if isinstance(value, datetime.timedelta):  # pandas' are, too
        return json.dumps(f"{value.total_seconds()} s")
    if hasattr(value, "tolist"):  # numpy
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, range)):
        return f"[{', '.join(toml(v) for v in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(str(k), ensure_ascii=False)} = {toml(v)}' for k, v in value.items())} }}"
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(str(value), ensure_ascii=False)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return repr(value)
    raise TypeError(f"{value!r} is no value of a scenario: a text, a number, True or False, a time, a list or a table")


def setting_value(value):
    """The same as --set takes it, where a text that reads as TOML is that: "20" is a number, as in a shell."""
    try:
        if isinstance(value, str) and list(tomllib.loads(f"v = {value}")) == ["v"]:
            return value
    except tomllib.TOMLDecodeError:
        pass
    return toml(value)


class Scenario:
    """A scenario's file and what was set on it. `set` gives a new one; the file is never changed."""

    def __init__(self, path, settings=()):
        path = pathlib.Path(path)
        if not path.exists() and (ROOT / path).exists():
            path = ROOT / path
        if not path.exists():
            raise FileNotFoundError(path)
        self.path = path.resolve()
        self.settings = tuple(settings)

    def set(self, key, value):
        """This scenario with one key changed: set("job.checkpoint.interval", "1 h")."""
        return Scenario(self.path, (*self.settings, f"{key}={setting_value(value)}"))

    def options(self):
        return [part for setting in self.settings for part in ("--set", setting)]

    def verb(self, verb, *arguments):
        """Any verb's JSON: verb("plan"), verb("storage"), verb("explain", "--orders", 8)."""
        return json.loads(railyard(verb, self.path, *self.options(), *arguments, "--json", partial=True))

    def run(self, db=None, *, replicas=None, events=1, estimates=False):
        """Simulates it; a Results on `db` (without one, a file that goes with this process)."""
        db = database(db)
        more = [] if replicas is None else ["--replicas", replicas]
        more += [] if estimates else ["--no-estimates"]
        railyard("run", self.path, *self.options(), "--db", db, "--db-events", events, *more, partial=True)
        return Results(db)

    def compare(self, *others, db=None, metric=None, replicas=None):
        """This design against others on the same random numbers; a Results with its comparisons().

        Others are changes of the same file: base.compare(base.set(...), base.set(...)).
        """
        if not others:
            raise ValueError("compare takes one other design or more: base.compare(base.set(...))")
        db = database(db)
        arms = [f"--arm={position}: {'; '.join(arm.settings[len(self.settings):])}"
                for position, arm in enumerate(others, 1)]
        for other in others:
            if other.path != self.path or other.settings[:len(self.settings)] != self.settings:
                raise ValueError("compare takes designs made of this one by set(...)")
        more = [] if metric is None else ["--metric", metric]
        more += [] if replicas is None else ["--replicas", replicas]
        railyard("compare", self.path, *self.options(), *arms, "--db", db, *more, partial=True)
        return Results(db)

    def sweep(self, axes, db=None, *, design="cartesian", replicas=None):
        """Every point of `axes`: {key: values}; a Results whose axes() says where each point lies.

        `replicas` of each point: as many as set("run.replicas", ...) says, or else 20.
        """
        for key, values in axes.items():
            if isinstance(values, (str, dict)) or not hasattr(values, "__iter__"):
                raise TypeError(f"{key}: expected a list of values, found {values!r}")
        set_here = [s.partition("=")[2] for s in self.settings if s.startswith("run.replicas=")]
        replicas = replicas if replicas is not None else (set_here or [20])[-1]
        db = database(db)
        with tempfile.TemporaryDirectory() as folder:
            study = pathlib.Path(folder) / "study.toml"
            lines = ["[sweep]", f"scenario = {toml(self.path)}", f"design = {toml(design)}",
                     f"replicas = {replicas}"]
            for key, values in axes.items():
                lines += ["[[sweep.axis]]", f"key = {toml(key)}", f"values = {toml(list(values))}"]
            study.write_text("\n".join(lines) + "\n")
            railyard("sweep", study, *self.options(), "--db", db, partial=True)
        return Results(db)


def text_of(value):
    """A setting's value as a database has it, texts without their quotes."""
    try:
        text = json.loads(value)
    except ValueError:
        return value
    return text if isinstance(text, str) else value


def database(path=None):
    """`path`, or a new file in a folder that is deleted when this process ends."""
    if path is not None:
        return pathlib.Path(path)
    folder = tempfile.TemporaryDirectory(prefix="railyard-")
    temporary_folders.append(folder)
    return pathlib.Path(folder.name) / "out.sqlite"


temporary_folders = []  # deleted with this list


class Results:
    """A results database, to be read. Every method gives a data frame."""

    def __init__(self, path):
        if not pathlib.Path(path).exists():
            raise FileNotFoundError(path)
        self.db = sqlite3.connect(f"{pathlib.Path(path).resolve().as_uri()}?mode=ro", uri=True)
        try:
            version = self.db.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()[0]
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{path} is no results database: {error}") from error
        if version != "3":
            raise ValueError(f"{path} has schema version {version}, this module reads 3")

    def sql(self, query, parameters=()):
        return pd.read_sql_query(query, self.db, params=parameters)

    def runs(self):
        return self.sql("SELECT * FROM runs ORDER BY run").set_index("run")

    def points(self):
        """One row a point of a run: status, goodput with its interval, and its settings, a column each."""
        rows = self.sql("SELECT o.*, p.settings FROM overview o JOIN points p ON p.point = o.point ORDER BY run, position")
        settings = [{key: text_of(value) for key, value in (s.split("=", 1) for s in json.loads(text))}
                    for text in rows.pop("settings")]
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
        self.known(name)
        return self.sql("SELECT run, position, label, unit, replicas, mean, low, high FROM metric_means WHERE name = ?", (name,))

    def known(self, name):
        """Raises KeyError where no point has the metric, with the nearest names."""
        names = self.sql("SELECT DISTINCT name FROM metric_means").name.tolist()
        if name not in names:
            near = difflib.get_close_matches(name, names, 3) or names[:3]
            raise KeyError(f"no metric '{name}' here; there are {', '.join(near)} ...")

    def replicas(self, name):
        """One metric of each replica: a row a replica, a column a point. Rows are pairs: the same random numbers."""
        self.known(name)
        rows = self.sql("SELECT point, replica, value FROM metrics WHERE name = ?", (name,))
        return rows.pivot(index="replica", columns="point", values="value")

    def comparisons(self):
        """Differences of pairs of designs, with intervals and verdicts, a row each."""
        return self.sql("SELECT * FROM comparisons ORDER BY run, metric, a, b")

    def ledger(self):
        """Share of all GPU time: a row a point, a column a category."""
        rows = self.sql("SELECT run, position, category, fraction FROM ledger_means")
        return rows.pivot(index=["run", "position"], columns="category", values="fraction")

    def events(self, point, replica=0):
        """What happened in a replica, in days since its beginning. The first replica of a run keeps its events."""
        rows = self.sql("SELECT * FROM events WHERE point = ? AND replica = ? ORDER BY time_ns", (point, replica))
        rows.insert(2, "day", rows.pop("time_ns") / 86400e9)
        return rows
