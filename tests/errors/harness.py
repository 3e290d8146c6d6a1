"""railyard run on mistakes: what it said is compared, byte for byte."""

import difflib
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.append(str(FOLDER.parent))

import checks  # noqa: E402
from checks import Failure, Tally, cases_of, check  # noqa: E402, F401

SECONDS_MAX = 20  # no case takes a tenth of this: one that does hangs
# A replica of some milliseconds, so often that the run outlasts every case that interrupts it.
LONG_SCENARIO = """
[run]
replicas = 100000
duration = "1 h"
[cluster]
nodes = 1
[job]
step.time = "0.1 s"
checkpoint = { size = "1 MB", interval = "1 steps" }
"""
SHORT_SCENARIO = LONG_SCENARIO.replace("100000", "2")


def equal(what, expected, found):
    if expected != found:
        difference = difflib.unified_diff(expected.splitlines(), found.splitlines(),
                                          f"{what}: expected", f"{what}: found", lineterm="")
        raise Failure("\n".join(difference))


def clean_environment():
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C"}


class Program(checks.Program):
    """railyard, started in this folder, so that messages name the bare file."""

    seconds_max = SECONDS_MAX

    def run(self, arguments, stdout=subprocess.PIPE):
        return super().run(*arguments, stdout=stdout, cwd=FOLDER, env=clean_environment())

    def start(self, arguments):
        # A session that ignores SIGINT hands that down; a Ctrl-C has to arrive.
        return subprocess.Popen([self.path, *arguments], cwd=FOLDER, env=clean_environment(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True,
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def said(code, stderr):
    return f"exit {code}\n{stderr}"


def expect(program, arguments, code, stderr):
    found_code, stdout, found = program.run(arguments)
    equal("stderr", said(code, stderr), said(found_code, found))
    return stdout


def write(path, text):
    path.write_text(text)
    return str(path)


def rows(db, sql):
    connection = sqlite3.connect(f"file:{db}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def wait_until(what, condition):
    end = time.monotonic() + SECONDS_MAX
    while not condition():
        check(time.monotonic() < end, f"waited {SECONDS_MAX} s for {what}")
        time.sleep(0.02)


def start_long_run(program, folder):
    """A run that has written to its database and is still under way."""
    scenario = write(folder / "long.toml", LONG_SCENARIO)
    db = folder / "long.db"
    process = program.start(["run", scenario, "--no-estimates", "-j", "2", "--db", str(db),
                             "--db-events", "0"])
    log = pathlib.Path(f"{db}-wal")
    wait_until("the first commit", lambda: process.poll() is not None
               or (log.exists() and log.stat().st_size > 100_000))
    # A large transaction reaches the log before it is committed; a commit comes every half second.
    time.sleep(1.5)
    if process.poll() is not None:
        raise Failure(f"ended at once: {process.communicate()[1]}")
    return process, db


def stop(process):
    if process.poll() is None:
        process.kill()
    process.communicate()


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
