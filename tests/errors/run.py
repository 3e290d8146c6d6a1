#!/usr/bin/python3
"""Every mistake that a person can make, and exactly what is said about it.

    run.py PATH_TO_RAILYARD [--update] [--quick] [NAME...]

A case is NAME.toml with NAME.expected: a first line 'exit CODE', then standard error, byte for byte.
NAME.args, one argument per line, replaces the usual 'run NAME.toml'; in it {scenario} stands for
NAME.toml and {tmp} for an empty folder. Cases that need more than a file - a broken database, a signal -
are functions below. --update writes what is said today into the .expected files: read the difference
before you keep it. --quick leaves those out that are functions: some of them wait for seconds.
"""

import difflib
import json
import os
import pathlib
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
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


class Failure(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Failure(message)


def equal(what, expected, found):
    if expected != found:
        difference = difflib.unified_diff(expected.splitlines(), found.splitlines(),
                                          f"{what}: expected", f"{what}: found", lineterm="")
        raise Failure("\n".join(difference))


def clean_environment():
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C"}


class Program:
    """railyard, started in this folder, so that messages name the bare file."""

    def __init__(self, path):
        self.path = str(pathlib.Path(path).resolve())

    def run(self, arguments, stdout=subprocess.PIPE):
        try:
            done = subprocess.run([self.path, *arguments], cwd=FOLDER, env=clean_environment(),
                                  stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                                  timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired as timeout:
            raise Failure(f"no end after {SECONDS_MAX} s: {' '.join(arguments)}") from timeout
        text = done.stdout.decode(errors="replace") if done.stdout is not None else ""
        return done.returncode, text, done.stderr.decode(errors="replace")

    def start(self, arguments):
        # A session that ignores SIGINT hands that down; a Ctrl-C has to arrive.
        return subprocess.Popen([self.path, *arguments], cwd=FOLDER, env=clean_environment(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True,
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def said(code, stderr):
    return f"exit {code}\n{stderr}"


def run_file_case(program, name, update):
    scenario = f"{name}.toml"
    with tempfile.TemporaryDirectory() as temporary:
        given = FOLDER / f"{name}.args"
        arguments = ["run", scenario]
        if given.exists():
            arguments = [line.replace("{scenario}", scenario).replace("{tmp}", temporary)
                         for line in given.read_text().splitlines()]
        code, _, stderr = program.run(arguments)
        found = said(code, stderr.replace(temporary, "{tmp}"))
    # A signal, such as a failed check's abort, is never what was expected.
    check(code >= 0, f"died of signal {-code}:\n{found}")
    expected = FOLDER / f"{name}.expected"
    if update:
        expected.write_text(found)
        return
    check(expected.exists(), f"{name} has no {expected.name}; --update writes it")
    equal(name, expected.read_text(), found)


# ---- cases that a file can't express; each gets the program and an empty folder -----------------------


def expect(program, arguments, code, stderr):
    found_code, stdout, found = program.run(arguments)
    equal("stderr", said(code, stderr), said(found_code, found))
    return stdout


def write(path, text):
    path.write_text(text)
    return str(path)


def database_case(program, folder, db, stderr):
    scenario = write(folder / "short.toml", SHORT_SCENARIO)
    expect(program, ["run", scenario, "--no-estimates", "--db", db], 2, stderr)


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


def case_scenario_is_missing(program, folder):
    expect(program, ["run", "no_such.toml"], 2,
           "railyard: error: can't read no_such.toml: No such file or directory\n")


def case_scenario_is_a_folder(program, folder):
    expect(program, ["run", str(folder)], 2,
           f"railyard: error: can't read {folder}: Is a directory\n")


def case_scenario_is_below_a_file(program, folder):
    expect(program, ["check", "run.py/scenario.toml"], 2,
           "railyard: error: can't read run.py/scenario.toml: Not a directory\n")


def case_database_below_a_file(program, folder):
    write(folder / "file", "")
    db = f"{folder}/file/results.db"
    database_case(program, folder, db,
                  f"railyard: error: can't open the database {db}: Not a directory\n"
                  "    the file and its folder must be writable\n")


def case_database_in_a_folder_that_takes_no_files(program, folder):
    # Not even root may make a file there.
    db = "/proc/results.db"
    database_case(program, folder, db,
                  f"railyard: error: can't open the database {db}: No such file or directory\n"
                  "    the file and its folder must be writable\n")


def case_database_is_a_folder(program, folder):
    db = str(folder)
    database_case(program, folder, db,
                  f"railyard: error: can't open the database {db}: unable to open database file\n"
                  "    the file and its folder must be writable\n")


def case_database_is_read_only(program, folder):
    db = folder / "results.db"
    sqlite3.connect(db).execute("VACUUM").connection.close()
    db.chmod(0o444)
    if os.access(db, os.W_OK):
        return  # root may write to it all the same
    database_case(program, folder, str(db),
                  f"railyard: error: can't write the database {db}: attempt to write a readonly "
                  "database\n    the file and its folder must be writable\n")


def case_database_is_a_text_file(program, folder):
    db = write(folder / "results.db", "no database, but long enough to be taken for one\n" * 50)
    database_case(program, folder, db,
                  f"railyard: error: can't write the database {db}: file is not a database\n"
                  "    it is not a database: choose another file\n")
    check((folder / "results.db").read_text().startswith("no database"), "the file was changed")


def case_database_of_something_else(program, folder):
    db = str(folder / "results.db")
    connection = sqlite3.connect(db)
    connection.execute("CREATE TABLE photographs (name TEXT)")
    connection.close()
    database_case(program, folder, db,
                  f"railyard: error: {db} is a database of something else\n"
                  "    choose another file\n")
    equal("tables", "[('photographs',)]", str(rows(db, "SELECT name FROM sqlite_master")))


def case_report_of_an_empty_database(program, folder):
    db = write(folder / "results.db", "")
    expect(program, ["report", db, "-o", str(folder / "report.html")], 2,
           f"railyard: error: {db} is empty: no run has been written to it\n"
           "    'railyard run SCENARIO.toml --db FILE' writes one\n")
    check(not (folder / "report.html").exists(), "a report of nothing was written")


def case_database_of_another_version(program, folder):
    db = str(folder / "results.db")
    scenario = write(folder / "short.toml", SHORT_SCENARIO)
    expect(program, ["run", scenario, "--no-estimates", "--db", db], 0, "")
    found = rows(db, "PRAGMA user_version")[0][0]
    connection = sqlite3.connect(db)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    database_case(program, folder, db,
                  f"railyard: error: {db} has schema version 999, this railyard reads and writes "
                  f"{found}\n    write to another file; what is in this one stays as it is, and its "
                  "scenarios can be run again\n")


def case_two_writers_on_one_database(program, folder):
    process, db = start_long_run(program, folder)
    try:
        database_case(program, folder, str(db),
                      f"railyard: error: can't write the database {db}: database is locked\n"
                      "    another program is writing to it: wait for it, or write to another "
                      "file\n")
        check(process.poll() is None, "the first writer ended")
    finally:
        stop(process)


def case_interrupted_by_ctrl_c(program, folder):
    process, db = start_long_run(program, folder)
    try:
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=SECONDS_MAX)
    finally:
        stop(process)
    status, done = rows(db, "SELECT status, (SELECT count(*) FROM replicas) FROM runs")[0]
    equal("stderr", said(130, f"railyard: interrupted: this is the result of the {done} of 100000 "
                              "replicas that were finished\n"), said(process.returncode, stderr))
    equal("status", "interrupted", status)
    check(done > 0, "no replica is in the database")
    equal("point", f"('open', {done})", str(rows(db, "SELECT status, replicas FROM points")[0]))
    equal("metrics", str(done),
          str(rows(db, "SELECT count(*) FROM metrics WHERE name = 'goodput'")[0][0]))
    check("goodput" in stdout and f"{done} replicas" in stdout, f"not printed:\n{stdout}")


def case_compare_interrupted_by_ctrl_c(program, folder):
    scenario = write(folder / "long.toml", LONG_SCENARIO)
    db = folder / "x.db"
    stdout, stderr = interrupt(program, ["compare", scenario, "--set", "job.step.time=0.2 s", "--db", str(db)], 1.5)
    equal("stderr", f"railyard: interrupted before there was a result: the replicas that were finished are in {db}\n", stderr)
    equal("printed", "", stdout)
    status, done = rows(db, "SELECT status, (SELECT count(*) FROM replicas) FROM runs")[0]
    check(status == "interrupted" and done > 0, f"{status}, {done} replicas")
    equal("points", f"[('open', {done}), ('open', 0)]", str(rows(db, "SELECT status, replicas FROM points ORDER BY point")))


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def case_explain_interrupted_by_ctrl_c(program, folder):
    # Eight worlds of half a second each, one after the other; the scenario itself comes first.
    scenario = write(folder / "worlds.toml", LONG_SCENARIO.replace("100000", "60")
                     + "[maintenance]\nevery = \"10 min\"\nduration = \"10 s\"\n")
    process = program.start(["explain", scenario, "-j", "1"])
    try:
        wait_until("the first worlds", lambda: process.poll() is not None or cpu_seconds(process) > 1.2)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=SECONDS_MAX)
    finally:
        stop(process)
    found = re.fullmatch(r"railyard: interrupted: (\d) of 8 worlds were finished; shares need all\n", stderr)
    check(process.returncode == 130 and found and int(found[1]) > 0, said(process.returncode, stderr))
    worlds = "in one world" if found[1] == "1" else f"in each of {found[1]} worlds"
    check("maintenance" in stdout and worlds in stdout, f"not printed:\n{stdout}")


def interrupt(program, arguments, cpu_s):
    """Exit code and both outputs of a command that hears Ctrl-C once it has computed for so long."""
    process = program.start(arguments)
    try:
        wait_until(f"{arguments[0]} at work", lambda: process.poll() is not None or cpu_seconds(process) > cpu_s)
        check(process.poll() is None, f"{' '.join(arguments)} is over: it does not last long enough to be interrupted")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=10)
    finally:
        stop(process)
    check(process.returncode == 130, f"{' '.join(arguments)}: {said(process.returncode, stderr)}")
    return stdout, stderr


NOTHING_YET = "railyard: interrupted before there was a result\n"


def case_verbs_that_hear_ctrl_c_at_once(program, folder):
    studies = FOLDER.parents[1] / "scenarios" / "studies"
    year = str(studies / "year_of_research_cluster.toml")
    decade = ["--set", "run.duration=\"10 years\""]  # its jobs alone take longer to draw
    thousand_draws = [str(studies / "llama3_405b_54_days.toml"), "--set", "run.fidelity=flow", "--set", "run.network_draws=1000",
                      "--set", "fabric.compute.kind=roce", "--set", "fabric.compute.topology=fat_tree"]
    many = folder / "many.csv"
    many.write_text("job_id,submit_time,gpus,duration\n" + "".join(f"{i},{i},{1 + i % 60},{90000 + i % 7}\n" for i in range(200000)))
    for arguments in (["trace", year, "-o", str(folder / "x.pftrace"), *decade], ["check", *thousand_draws], ["plan", *thousand_draws],
                      ["perf", "all_reduce", *thousand_draws], ["run", *thousand_draws],
                      ["jobs", str(many), "--nodes", "64", "--gpus-per-node", "8", "--policy", "easy", "--placement",
                       "consolidate"]):
        stdout, stderr = interrupt(program, arguments, 1.5)
        equal(arguments[0], said(130, NOTHING_YET), said(130, stderr))
        equal(f"{arguments[0]}, printed", "", stdout)
    _, stderr = interrupt(program, ["run", year, *decade], 1.5)
    check(stderr == "railyard: interrupted before the first replica was finished\n", stderr)
    check(not (folder / "x.pftrace").exists(), "half a trace was written")


def case_verbs_that_say_what_is_done_by_ctrl_c(program, folder):
    tables = FOLDER.parent / "validation"
    studies = FOLDER.parents[1] / "scenarios" / "studies"
    stdout, stderr = interrupt(program, ["verify", str(tables / "14_korthikanti_memory_fig1_fig7.csv"),
                                         str(tables / "16_vtrain_singlenode_measured.csv")], 1)
    check(stderr == "railyard: interrupted: these are the 1 of 2 tables that were finished\n", stderr)
    check("Korthikanti" in stdout, stdout)
    llama = str(studies / "llama3_405b_54_days.toml")
    flows = ["--set", "run.fidelity=flow"]
    stdout, stderr = interrupt(program, ["plan", llama, *flows, "--set", "run.network_draws=1", "--set", "fabric.compute.kind=roce",
                                         "--set", "fabric.compute.topology=fat_tree", "--set", "fabric.compute.queue_pairs=32",
                                         "--splits", "10000", "--top", "50"], 4)
    check(stderr == "railyard: interrupted: this is the plan as given; others were not all tried\n", stderr)
    check("critical path" in stdout and "best plans" not in stdout, stdout)
    hello = str(studies.parent / "hello" / "first.toml")
    stdout, stderr = interrupt(program, ["check", hello, llama, *flows, "--set", "run.network_draws=1000", "--set",
                                         "fabric.compute.kind=roce", "--set", "fabric.compute.topology=fat_tree"], 3)
    check(stderr.endswith("railyard: interrupted: 1 of 2 scenarios were checked\n"), stderr)
    check("first.toml" in stdout, stdout)


def case_rates_that_no_switch_is_made_for(program, folder):
    # They work, or are refused; nothing is looked up that the catalogue does not have.
    scenario = write(folder / "rates.toml", """
run = { duration = "1 h", replicas = 1 }
cluster.nodes = 4
fabric.compute.topology = "fat_tree"
job = { model = "llama2_7b", parallel = { tensor = 8, data = 4, global_batch = 64 }, checkpoint.interval = "30 min" }
storage = { system = "weka", servers = 8 }
""")
    verbs = (["run", scenario, "--no-estimates"], ["check", scenario], ["window", scenario], ["perf", "all_reduce", scenario, "-e", "1M"],
             ["topo", scenario], ["plan", scenario, "--top", "1"], ["storage", scenario],
             ["cost", scenario, "--no-estimates", "--set", "cost.years=\"4 years\""])
    done = refused = 0
    for rate in ("1 Gbit/s", "37 Gbit/s", "50 Gbit/s", "3 Tbit/s"):
        for kind in ("roce", "infiniband", "tcp"):
            for verb in verbs:
                # Old and odd switches have no published buffer, nor a price.
                for buffer in ([], ["--set", "fabric.compute.buffer.size=\"32 MB\""]):
                    code, _, stderr = program.run([*verb, "--set", f"cluster.nic_bandwidth=\"{rate}\"", "--set",
                                                   f"fabric.compute.kind={kind}", "--set", "run.fidelity=packet", *buffer])
                    check(code == 0 or code == 4 or (code == 2 and "error: " in stderr), f"{verb[0]}, {rate}, {kind}: {said(code, stderr)}")
                    done += code == 0
                    refused += code == 2
    check(done > 50 and refused > 50, f"{done} done, {refused} refused")


def case_killed(program, folder):
    process, db = start_long_run(program, folder)
    try:
        process.kill()
        process.communicate(timeout=SECONDS_MAX)
    finally:
        stop(process)
    # Opened for writing, because the half-written end is rolled back first.
    connection = sqlite3.connect(db)
    status = connection.execute("SELECT status FROM runs").fetchone()[0]
    replicas = connection.execute("SELECT count(*) FROM replicas").fetchone()[0]
    goodputs = connection.execute(
        "SELECT count(*) FROM metrics WHERE name = 'goodput'").fetchone()[0]
    integrity = connection.execute("PRAGMA integrity_check").fetchone()[0]
    connection.close()
    equal("integrity", "ok", integrity)
    equal("status", "running", status)
    check(0 < replicas == goodputs, f"replicas {replicas}, goodputs {goodputs}")
    # And it takes the next run.
    scenario = write(folder / "short.toml", SHORT_SCENARIO)
    expect(program, ["run", scenario, "--no-estimates", "--db", str(db)], 0, "")
    equal("runs", "[('running',), ('complete',)]",
          str(rows(db, "SELECT status FROM runs ORDER BY run")))


def case_standard_output_is_full(program, folder):
    scenario = write(folder / "short.toml", SHORT_SCENARIO)
    for arguments in (["run", scenario], ["run", scenario, "--json"], ["check", scenario],
                      ["list", "keys"], ["calc", "kv-cache", "--model", "llama2_7b"], ["--help"]):
        with open("/dev/full", "wb") as full:
            code, _, stderr = program.run(arguments, stdout=full)
        # Small outputs fail when they are flushed, large ones earlier: two texts, one meaning.
        check(code == 2 and re.fullmatch(r"railyard: error: can('t|not) write to .+\n", stderr),
              f"{' '.join(arguments)}:\n{said(code, stderr)}")


def case_keys_that_are_very_deep(program, folder):
    scenario = write(folder / "deep.toml", "a." * 30000 + "a = 1\n")
    for arguments in (["check", scenario], ["run", scenario], ["sweep", scenario, "--db", str(folder / "x.db")]):
        expect(program, arguments, 2, f"{scenario}: error: tables and lists are nested 30001 deep, and 100 is "
                                      "the most\n")


def case_a_hundred_thousand_unknown_keys(program, folder):
    scenario = write(folder / "keys.toml", "[run]\n" + "".join(f"key_{i} = 1\n" for i in range(100_000)))
    code, _, stderr = program.run(["check", scenario])
    check(code == 2 and stderr.count("unknown key") == 100_000, f"exit {code}")


def case_bytes_that_are_not_utf8(program, folder):
    raw = os.fsencode(folder) + b"/caf\xe9.toml"
    pathlib.Path(os.fsdecode(raw)).write_text(SHORT_SCENARIO)
    code, stdout, stderr = program.run(["run", os.fsdecode(raw), "--no-estimates", "--json", "--db", str(folder / "x.db")])
    check(code == 0 and json.loads(stdout)["scenario"].endswith("/caf\ufffd.toml"), said(code, stderr))
    equal("file", "[('caf\\\\xe9.toml',)]", str([(f.split("/")[-1],) for f, in rows(folder / "x.db", "SELECT file FROM runs")]))
    scenario = write(folder / "short.toml", SHORT_SCENARIO)
    code, _, stderr = program.run(["check", scenario, "--set", b"title=caf\xe9"])
    check(code == 2 and "title=caf\\xe9: error: control characters, or bytes that are not UTF-8" in stderr, said(code, stderr))
    (folder / "jobs.csv").write_bytes(b"job_id,user,submit_time,gpu_num,duration,state\na,J\xe9\x1b[1m,0,8,600,COMPLETED\n")
    code, stdout, stderr = program.run(["jobs", str(folder / "jobs.csv"), "--nodes", "2", "--gpus-per-node", "8", "--json"])
    check(code == 0 and "\x1b" not in stdout, said(code, stderr))


def case_many_replicas_take_little_memory(program, folder):
    scenario = write(folder / "many.toml", LONG_SCENARIO.replace("100000", "20000").replace("1 h", "1 min").replace("1 steps", "100 steps"))
    write(folder / "study.toml", '[sweep]\nscenario = "many.toml"\nreplicas = 20000\n[[sweep.axis]]\nkey = "job.step.time"\n'
                                 'values = ["0.1 s", "0.2 s"]\n')
    other = ["--set", "job.step.time=0.2 s"]
    for arguments in (["run", scenario, "--no-estimates"], ["run", scenario, "--no-estimates", "--db", "run.db", "--db-events", "0"],
                      ["compare", scenario, *other, "--no-estimates"],
                      ["compare", scenario, *other, "--no-estimates", "--db", "compare.db"],
                      ["sweep", "study.toml", "--no-estimates", "--db", "sweep.db"]):
        child = subprocess.Popen([program.path, *arguments], env=clean_environment(), cwd=folder,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        equal(f"{arguments}: exit", 0, os.waitstatus_to_exitcode(status))
        check(usage.ru_maxrss < 150_000, f"{arguments}: 20,000 replicas each took {usage.ru_maxrss} kB at the peak")


def limited(program, arguments, size):
    """The program where no file may grow beyond that: a disk that is full."""
    def before():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    done = subprocess.run([program.path, *arguments], cwd=FOLDER, env=clean_environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=SECONDS_MAX, preexec_fn=before)
    return done.returncode, done.stdout, done.stderr


def case_outputs_on_a_full_disk(program, folder):
    scenario = write(folder / "short.toml", SHORT_SCENARIO)
    for name, arguments in (("trace", ["trace", scenario, "-o"]),
                            ("drawing", ["topo", scenario, "--svg"])):
        out = folder / name
        out.write_text("what was there before")
        code, _, stderr = limited(program, [*arguments, str(out)], 1000)
        equal("stderr", said(2, f"railyard: error: can't write {out}: File too large\n"), said(code, stderr))
        equal("what was there", "what was there before", out.read_text())
    equal("files", "drawing short.toml trace", " ".join(sorted(p.name for p in folder.iterdir())))
    for arguments in (["run", scenario, "--no-estimates"], ["compare", scenario, "--set", "job.step.time=0.2 s"]):
        write(folder / "short.toml", LONG_SCENARIO.replace("100000", "600").replace("1 h", "1 min"))
        code, stdout, stderr = limited(program, [*arguments, "--db", str(folder / f"{arguments[0]}.db")], 600_000)
        check(code == 4 and "goodput" in stdout and "this result is whole; the database is not" in stderr,
              f"{arguments[0]}: {said(code, stderr)}")


def case_an_output_takes_its_name_when_it_is_whole(program, folder):
    scenario = write(folder / "short.toml", SHORT_SCENARIO)
    (folder / "link").symlink_to("real")
    (folder / "real").write_text("before")
    (folder / "real").chmod(0o640)
    expect(program, ["trace", scenario, "-o", str(folder / "link")], 0, "")
    check((folder / "link").is_symlink() and (folder / "real").stat().st_size > 100, "not behind the link")
    equal("mode", "0o640", oct((folder / "real").stat().st_mode & 0o777))
    check("<svg" in expect(program, ["topo", scenario, "--svg", "/dev/stdout"], 0, ""),
          "a pipe is no file to be replaced")


def case_an_output_over_what_is_read(program, folder):
    trace = write(folder / "jobs.csv", "job_id,submit_time,gpu_num,duration,state\na,0,8,600,COMPLETED\n")
    scenario = write(folder / "fleet.toml", '[run]\nduration = "1 h"\n[cluster]\nnodes = 2\n[scheduler]\nkind = '
                                            '"slurm"\n[jobs]\ntrace = "jobs.csv"\n')
    db = str(folder / "x.db")
    expect(program, ["run", scenario, "--no-estimates", "--db", db], 0, "")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    os.link(db, folder / "other_name.db")
    for arguments, out in ((["trace", scenario], scenario), (["trace", scenario], trace), (["topo", scenario, "--svg"], trace),
                           (["report", db], db), (["report", db], str(folder / "other_name.db"))):
        option = [] if "--svg" in arguments else ["-o"]
        expect(program, [*arguments, *option, out], 2,
               f"railyard: error: can't write {out}: it is read here\n    choose another name\n")
    for name, content in before.items():
        check((folder / name).read_bytes() == content, f"{name} was changed")


def case_a_database_that_is_removed_meanwhile(program, folder):
    process, db = start_long_run(program, folder)
    try:
        db.unlink()
        time.sleep(2)  # a commit comes every second
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=SECONDS_MAX)
    finally:
        stop(process)
    check("it was removed or renamed meanwhile" in stderr and "the run goes on without it" in stderr,
          said(process.returncode, stderr))


def case_a_finished_database_is_one_file_that_any_folder_may_hold(program, folder):
    scenario = write(folder / "short.toml", SHORT_SCENARIO)
    db = folder / "x.db"
    expect(program, ["run", scenario, "--no-estimates", "--db", str(db)], 0, "")
    equal("files", "short.toml x.db", " ".join(sorted(p.name for p in folder.iterdir())))
    equal("journal", "[('delete',)]", str(rows(db, "PRAGMA journal_mode")))
    # Also one that was killed once, and is in its log's mode still.
    connection = sqlite3.connect(db)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    folder.chmod(0o555)
    db.chmod(0o444)

    def as_anybody():  # root may write everywhere
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

    done = subprocess.run([program.path, "report", str(db), "-o", "/dev/null", "--no-estimates"], env=clean_environment(),
                          capture_output=True, text=True, timeout=SECONDS_MAX, cwd="/", preexec_fn=as_anybody)
    folder.chmod(0o755)
    check(done.returncode == 0 or "the report's page is missing" in done.stderr, said(done.returncode, done.stderr))


def case_a_folder_that_no_sweep_made(program, folder):
    study = write(folder / "study.toml", SHORT_SCENARIO + '[[sweep.axis]]\nkey = "cluster.nodes"\nvalues = [1, 2]\n')
    theirs = folder / "x.db.slurm"
    theirs.mkdir()
    (theirs / "job").write_text("1")
    (theirs / "thesis").write_text("years of work")
    expect(program, ["sweep", study, "--db", str(folder / "x.db"), "--on", "slurm"], 2,
           f"railyard: error: {theirs} is in the way: a sweep did not make it\n"
           "    move it, or write to another database: a sweep on Slurm needs DB.slurm\n")
    equal("files", "job thesis", " ".join(sorted(p.name for p in theirs.iterdir())))


TRAINING_ROWS = """# what was measured, where
model,mode,hidden,layers,heads,tp,pp,dp,gpus,global_batch,microbatch,interleave,seq,vocab,iter_time_s_measured
22B,full_recompute,6144,48,64,8,1,1,8,4,4,1,2048,51200,1.42
22B,full_recompute,6144,48,sixty-four,8,1,1,8,4,4,1,2048,51200,1.42
22B,full_recompute,6144,48,64,8x,1,1,8,4,4,1,2048,51200,1.42
22B,full_recompute,6144,48,64,8,1,1,8,4,4,1,2048,51200,"1,42"
22B,full_recompute,6144,48,64,7,1,1,7,4,4,1,2048,51200,1.42
22B,full_recompute,6144,48,64,8,7,1,56,4,4,1,2048,51200,1.42
22B,full_recompute,6144,48,64,0,1,1,8,4,4,1,2048,51200,1.42
22B,full_recompute,6144,48,64,8,1,1,8,6,4,1,2048,51200,1.42
22B,full_recompute,6144,48,64,8,1,1,8,4,4,1,2048,51200,nan
22B,full_recompute,6144,0,64,8,1,1,8,4,4,1,2048,51200,1.42
22B,seqpar+selective,6144,48,64,8,1,1,8,4,,1,2048,51200,1.1
22B,full_recompute,6144,48,64,8,1,1,8,4,4,1,2048,51200,
"""


def verified(program, folder, name, text, unused, held=True):
    """The rows of a table that are expressed, of which each in `unused` is not: (place, why). `held`: some are, within
    the tolerance that ships."""
    path = write(folder / name, text)
    said_of_rows = "".join(f"{path}:{place}: warning: {why}\n    this row is not expressed\n"
                           for place, why in unused)
    if not held:
        said_of_rows += f"railyard: outside the tolerance: {path.removesuffix('.csv').rpartition('/')[2]}: no row could be held " \
                        "to the tolerance\n"
    return json.loads(expect(program, ["verify", "--json", path], 0 if held else 4, said_of_rows))["rows"]


def case_verify_a_field_that_can_not_be(program, folder):
    expressed = verified(program, folder, "13_steps.csv", TRAINING_ROWS, [
        ("4:28", 'heads: expected a whole number, found the string "sixty-four"'),
        ("5:31", "tp: expected a number, found '8x'"),
        ("6:56", "iter_time_s_measured: expected a number, found '1,42'"),
        ("7:35", "dp: cluster.nodes: expected a whole number, found the number 0.875"),
        ("8:33", "pp: 48 layers don't divide by pipeline = 7, nor with one layer less on the first and last stage"),
        ("9:35", "dp: cluster.nodes: expected a number from 1 to 1000000, found the number 0"),
        ("10:39", "global_batch: 6 sequences don't divide by data 1 x microbatch 4"),
        ("11:56", "iter_time_s_measured: expected a number, found 'nan'"),
        ("12:25", "layers: expected more than zero, found the number 0"),
        ("14:56", "iter_time_s_measured: expected a number, found none")])
    # A field that is not printed is none that is wrong.
    equal("expressed", "22B full_recompute, 22B seqpar+selective", ", ".join(r["row"] for r in expressed))


def case_verify_gpus_that_do_not_divide(program, folder):
    rows_of_llama = ("gpus,tp,cp,pp,seq_len,batch_per_dp,tflops_per_gpu\n"
                     "8192,8,1,16,8192,32,430\n8192,,1,16,8192,32,430\n8200,8,1,16,8192,32,430\n")
    expressed = verified(program, folder, "06_llama.csv", rows_of_llama, [
        ("3:6", "tp: expected a value, found none"),
        ("4:6", "tp: tensor 8 x pipeline 16 x data 64 = 8192 GPUs, but the job has 8200 (1025 nodes of 8)")])
    equal("expressed", "1", str(len(expressed)))


def case_verify_a_plan_of_two_quantities(program, folder):
    # Neither its step time nor its memory, and said once.
    expressed = verified(program, folder, "17_runs.csv",
                         "case,real_ms,real_alloc_GiB\nllama3_70b_l12_tp7_pp1_dp1_mbc4,843.00,66.55\n",
                         [("2:1", "tp: 64 attention heads don't divide by tensor = 7")], held=False)
    equal("expressed", "0", str(len(expressed)))


DESCRIBED = """title = "Our steps"
include = ["base.toml"]
[table]
source = "our cluster"
row = "{what} on {gpus}"
[table.set]
"cluster.nodes" = "{gpus / 8}"
"job.parallel.global_batch" = "{batch}"
[[table.when]]
column = "what"
contains = ["full"]
set = { "job.parallel.recompute" = "full" }
[[table.expect]]
quantity = "s per step"
published = "ms / 1000"
simulated = "step_time"
"""

DESCRIBED_BASE = """[run]
duration = "1 h"
[job]
model = "llama2_7b"
checkpoint = { mode = "none" }
[job.parallel]
tensor = 2
[failures]
profile = "none"
"""


def case_verify_a_table_of_ones_own(program, folder):
    write(folder / "base.toml", DESCRIBED_BASE)
    description = write(folder / "mine.toml", DESCRIBED)
    table = write(folder / "mine.csv", "what,gpus,batch,ms\nfirst,16,16,900\nfull,16,16,1200\nlast,20,16,900\n")
    odd = f"{table}:4:6: warning: gpus: cluster.nodes: expected a whole number, found the number 2.5\n" \
          "    this row is not expressed\n"
    by_itself = json.loads(expect(program, ["verify", "--json", description], 0, odd))
    rows = by_itself["rows"]
    equal("rows", "first on 16, full on 16", ", ".join(row["row"] for row in rows))
    # What runs again takes longer; what is printed is in the columns' own numbers.
    check(rows[0]["simulated"] < rows[1]["simulated"], f"recompute = full is not slower: {rows}")
    equal("published", "0.9", str(rows[0]["published"]))
    # A description is of the table after it, whatever that is called.
    other = write(folder / "other.csv", "what,gpus,batch,ms\nfirst,16,16,900\n")
    again = json.loads(expect(program, ["verify", "--json", description, other], 0, ""))["rows"]
    equal("simulated", str(rows[0]["simulated"]), str(again[0]["simulated"]))


MIX = """title = "Our failures"
[run]
replicas = 10
duration = "1000 day"
[cluster]
nodes = 16
[job]
step.time = "1 s"
checkpoint.mode = "none"
recovery = { replacement = "0 s", restart = "0 s", restore = "0 s", recompute = false }
[[failures.cause]]
name = "node"
rate_per_job = "1 /day"
[[failures.cause]]
name = "others"
rate_per_job = "1 /day"
[table]
row = "{site} {what}"
[[table.sum]]
name = "all"
of = "seen"
among = "site"
column = "unit"
is = ["events"]
[table.set]
"failures.cause.0.rate_per_job" = "{seen / all} /day"
"failures.cause.1.rate_per_job" = "{1 - seen / all} /day"
[[table.expect]]
quantity = "events"
column = "unit"
is = ["events"]
published = "seen"
simulated = "interruptions_{cause} / interruptions * all"
tolerance.row = 0.05
"""


def case_verify_a_mix_of_causes(program, folder):
    # A sum is over the rows of one site that are events; which metric a row is held to, its column says.
    description = write(folder / "mix.toml", MIX)
    table = "site,what,seen,unit,cause\na,GPU,30,events,node\na,NIC,10,events,node\nb,GPU,5,events,node\n" \
            "a,repair,7,h,node\na,rest,40,events,others\n"
    write(folder / "mix.csv", table)
    rows = json.loads(expect(program, ["verify", "--json", description], 0, ""))["rows"]
    equal("rows", "a GPU, a NIC, b GPU, a rest", ", ".join(row["row"] for row in rows))
    # A cause that the scenario lacks is no metric.
    wrong = write(folder / "mix.csv", table.replace("b,GPU,5,events,node", "b,GPU,5,events,fan"))
    code, _, stderr = program.run(["verify", description, wrong])
    check(code == 2 and "there is no interruptions_fan" in stderr, stderr)
    write(folder / "mix.toml", MIX.replace('of = "seen"', 'of = "sen"'))
    code, _, stderr = program.run(["verify", description, wrong])
    check(code == 2 and "table.sum[0].of" in stderr and "no column sen" in stderr, stderr)


def case_verify_what_is_outside_a_tolerance(program, folder):
    write(folder / "base.toml", DESCRIBED_BASE)
    write(folder / "mine.csv", "what,gpus,batch,ms\nfirst,16,16,900\nfull,16,16,1200\n")
    for tolerance, code, said in (
            ("row = 50\nmean = 50", 0, ""),
            ("row = 0.001", 4, "mine, first on 16: s per step: "),
            ("mean = 0.001", 4, "in the mean of 2 rows, at most 0.1 % are allowed")):
        description = write(folder / "mine.toml", DESCRIBED + f"[table.expect.tolerance]\n{tolerance}\n")
        found, stdout, stderr = program.run(["verify", "--json", description])
        equal(f"exit with {tolerance}", str(code), str(found))
        check(said in stderr and ("outside the tolerance" in stderr) == (code != 0), stderr)
        check(bool(json.loads(stdout)["summary"]["mine"]["outside"]) == (code != 0), stdout)
    # Without a row to hold to it nothing is known: that is no success.
    write(folder / "mine.csv", "what,gpus,batch,ms\nlast,20,16,900\n")
    code, _, stderr = program.run(["verify", description])
    check(code == 4 and "no row could be held to the tolerance" in stderr, stderr)
    wrong = write(folder / "wrong.toml", DESCRIBED + "tolerance = { row = -1 }\n")
    code, _, stderr = program.run(["verify", wrong, folder / "mine.csv"])
    check(code == 2 and "table.expect[0].tolerance.row" in stderr, stderr)


def case_verify_runs_of_nccl_tests_of_ones_own(program, folder):
    description = write(folder / "mine.toml", """[table]
row = "{op} {size}"
[table.nccl_tests]
device = "H100"
network = "8x NDR400 IB"
collective = "{op}"
gpus = "{all}"
nodes = "{all / 8}"
bytes = "{size}"
[[table.expect]]
quantity = "us"
published = "measured"
simulated = "1e6 * time"
[[table.expect]]
quantity = "GB/s"
published = "measured"
simulated = "busbw * 1e-9"
""")
    table = write(folder / "mine.csv", "op,all,size,measured\nall_reduce,16,8388608,215\nall_reduce,16,1073741824,4900\n"
                                       "all_to_some,16,8,3\nall_reduce,16,much,3\n")
    odd = (f"{table}:4:1: warning: op: no collective is called 'all_to_some'\n    this row is not expressed\n"
           f"{table}:5:15: warning: size: expected a number, found 'much'\n    this row is not expressed\n")
    rows = json.loads(expect(program, ["verify", "--json", description], 0, odd))["rows"]
    equal("rows", "4", str(len(rows)))
    check(rows[0]["simulated"] < rows[2]["simulated"], f"more bytes take no longer: {rows}")
    # 2 (n - 1) / n of the bytes, over the time.
    busbw = 2 * 15 / 16 * 1073741824 / rows[2]["simulated"] * 1e-3
    check(abs(rows[3]["simulated"] / busbw - 1) < 1e-9, f"expected {busbw}, found {rows[3]}")


def case_verify_keys_that_words_decide(program, folder):
    write(folder / "base.toml", DESCRIBED_BASE)
    words = """[[table.words]]
key = "job.software"
columns = ["what", "about"]
values = { Mega = "megatron_lm", Megatron-2021 = "megatron_2021" }
"""
    rows = "what,gpus,batch,ms\nMega,16,16,900\nMegatron-2021,16,16,900\nother,16,16,900\n"
    description = write(folder / "mine.toml", DESCRIBED + words)
    # The longest word wins; the lines above the header decide where the row is silent.
    table = write(folder / "mine.csv", "# run by Megatron-2021\n" + rows)
    found = json.loads(expect(program, ["verify", "--json", description], 0, ""))["rows"]
    equal("stacks", "megatron_lm megatron_2021 megatron_2021", " ".join(row["software"] for row in found))
    check(found[0]["simulated"] < found[1]["simulated"], f"the stack decides nothing: {found}")
    write(folder / "mine.csv", rows)
    said = f"{table}:4:1: warning: what: no word of it says what job.software is\n    this row is not expressed\n"
    expect(program, ["verify", "--json", description], 0, said)


def case_verify_a_description_that_can_not_be(program, folder):
    write(folder / "base.toml", DESCRIBED_BASE)
    table = write(folder / "t.csv", "what,gpus,batch,ms\nfirst,16,16,900\n")
    for change, said in (
            (('"cluster.nodes"', '"cluster.node_count"'),
             "7:1: error: table.set.cluster.node_count: no scenario has the key cluster.node_count"),
            (('"ms / 1000"', '"msec / 1000"'), "15:1: error: table.expect[0].published: the table has no column msec"),
            (('"{gpus / 8}"', '"{gpus / }"'), "7:1: error: table.set.cluster.nodes: can't be computed: "),
            (('"step_time"', '"steptime"'), "there is no steptime"),
            (('"step_time"', '"ms / 1000"'), "16:1: error: table.expect[0].simulated: names columns only"),
            (('contains = ["full"]', ""), "10:1: error: table.when[0].column: needs is = [...], contains = [...] or lacks = [...]")):
        description = write(folder / "bad.toml", DESCRIBED.replace(*change))
        code, _, stderr = program.run(["verify", description, table])
        check(code == 2 and said in stderr, f"expected '{said}', found exit {code}: {stderr}")


def case_perf_names_in_any_case(program, folder):
    # As NCCL_ALGO and NCCL_PROTO spell them.
    for algorithm, protocol in (("Ring", "LL"), ("RING", "LL128"), ("NVLSTree", "Simple")):
        arguments = ["perf", "AllReduce", "perf_algorithm_unknown.toml", "-b", "1M", "-e", "1M", "--json",
                     "--algorithm", algorithm, "--protocol", protocol]
        found = json.loads(expect(program, arguments, 0, ""))["rows"][0]
        equal("algorithm", algorithm.lower(), found["algorithm"].replace("_", ""))
        equal("protocol", protocol.lower(), found["protocol"])


def case_verify_a_message_that_can_not_be(program, folder):
    expressed = verified(program, folder, "31_nvlink.csv",
                         "device,op,num_gpus,bytes,median_us\nH100 SXM,all_reduce,8,a lot,100\n"
                         "H100 SXM,all_reduce,8,8388608,\"about 100\"\n",
                         [("2:23", "bytes: expected a number, found 'a lot'"),
                          ("3:31", "median_us: expected a number, found 'about 100'")], held=False)
    equal("expressed", "0", str(len(expressed)))



def case_overrides_that_no_verb_reads(program, folder):
    # What a verb reads of the catalogue once the scenario is read counts like the rest.
    scenario = write(folder / "given.toml", """
[run]
duration = "1 h"
[cluster]
nodes = 2
[job]
model = "llama2_7b"
checkpoint = { mode = "none" }
[job.parallel]
tensor = 8
global_batch = 64
""")
    plain = write(folder / "plain.toml", SHORT_SCENARIO.replace("nodes = 1", "nodes = 2"))
    trace = ["-o", str(folder / "trace")]
    for verb, arguments, file in (("run", [], scenario), ("check", [], scenario), ("plan", [], scenario),
                                  ("perf", ["all_reduce", "-b", "1M", "-e", "1M"], scenario), ("topo", [], scenario),
                                  ("storage", [], scenario), ("window", [], scenario),
                                  ("trace", ["--step", *trace], scenario), ("trace", ["--window", *trace], scenario)):
        unread = "storage.weka.client_read_bandwidth"
        expect(program, [verb, *arguments, file, "--set", f"override.{unread}=20 GB/s"], 0,
               f"{file} with --set: warning: override.{unread}: has no effect: nothing here reads it\n")
    expect(program, ["perf", "all_reduce", plain, "--set", "override.collective.hopper.launch=6 us"], 0, "")
    expect(program, ["window", plain, "--set", "override.roce_transport.ack_every_packets=2"], 0, "")


def case_a_measured_step_has_no_error_of_the_model(program, folder):
    scenario = folder / "measured.toml"
    write(scenario, """
[run]
replicas = 2
duration = "1 day"
[cluster]
nodes = 8
[job]
model = "llama2_13b"
checkpoint = { interval = "1 h" }
[job.parallel]
tensor = 8
global_batch = 512
""")
    for setting, modelled in (("job.checkpoint.interval=2 h", True), ("job.step.time=20 s", False)):
        _, text, _ = program.run(["run", str(scenario), "--set", setting])
        check(("published runs" in text) == modelled, f"{setting}:\n{text}")
        _, text, _ = program.run(["run", str(scenario), "--set", setting, "--json"])
        answer = json.loads(text)
        check(("step_model_error" in answer) == modelled, f"{setting}: {text}")
        width = answer["prediction"]["answers"]["goodput"]["width"]["model_error"]
        check((width > 0) == modelled, f"{setting}: goodput has a model error of {width}")


def main():
    arguments = sys.argv[1:]
    update = "--update" in arguments
    quick = "--quick" in arguments
    arguments = [a for a in arguments if a not in ("--update", "--quick")]
    if not arguments:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    program = Program(arguments[0])
    if not os.access(program.path, os.X_OK):
        print(f"{program.path} is not a program", file=sys.stderr)
        return 2
    wanted = set(arguments[1:])

    files = sorted({p.stem for suffix in ("toml", "expected", "args")
                    for p in FOLDER.glob(f"*.{suffix}")})
    functions = {name.removeprefix("case_"): run for name, run in globals().items()
                 if name.startswith("case_")}
    passed = failed = 0
    # With sanitizers this one simulates for more than the 20 s that a case has.
    slow = {"more_gpu_time_than_can_be_counted"}
    for name in [f for f in files if f not in slow] if quick else [*files, *functions]:
        if wanted and name not in wanted:
            continue
        try:
            if name in files:
                check((FOLDER / f"{name}.toml").exists() or (FOLDER / f"{name}.args").exists(),
                      f"{name}.expected has neither a {name}.toml nor a {name}.args")
                run_file_case(program, name, update)
            else:
                with tempfile.TemporaryDirectory() as temporary:
                    functions[name](program, pathlib.Path(temporary))
            passed += 1
        except (Failure, subprocess.TimeoutExpired, sqlite3.Error) as failure:
            failed += 1
            print(f"--- {name}\n{failure}")
    print(f"{passed} passed, {failed} failed")
    if not files or passed + failed == 0:
        print("no cases were found")
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
