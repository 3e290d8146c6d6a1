#!/usr/bin/python3
"""Every mistake that a person can make, and exactly what is said about it.

    run.py PATH_TO_RAILYARD [--update] [NAME...]

A case is NAME.toml with NAME.expected: a first line 'exit CODE', then standard error, byte for byte.
NAME.args, one argument per line, replaces the usual 'run NAME.toml'; in it {scenario} stands for
NAME.toml and {tmp} for an empty folder. Cases that need more than a file - a broken database, a signal -
are functions below. --update writes what is said today into the .expected files: read the difference
before you keep it.
"""

import difflib
import json
import os
import pathlib
import re
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


def verified(program, folder, name, text, unused):
    """The rows of a table that are expressed, of which each in `unused` is not: (place, why)."""
    path = write(folder / name, text)
    said_of_rows = "".join(f"{path}:{place}: warning: {why}\n    this row is not expressed\n"
                           for place, why in unused)
    return json.loads(expect(program, ["verify", "--json", path], 0, said_of_rows))["rows"]


def case_verify_a_field_that_can_not_be(program, folder):
    expressed = verified(program, folder, "13_steps.csv", TRAINING_ROWS, [
        ("4:28", "heads: expected a number, found 'sixty-four'"),
        ("5:31", "tp: expected a number, found '8x'"),
        ("6:56", "iter_time_s_measured: expected a number, found '1,42'"),
        ("7:31", "tp: 64 attention heads don't divide by 7 ranks"),
        ("8:33", "pp: 48 layers don't divide by 7 ranks, nor with one layer less on the first and last"),
        ("9:31", "tp: expected 1 or more, found 0"),
        ("10:39", "global_batch: 6 sequences don't divide by data 1 x microbatch 4"),
        ("11:56", "iter_time_s_measured: expected a number, found 'nan'"),
        ("12:25", "layers: expected 1 or more, found 0"),
        ("14:56", "iter_time_s_measured: expected a number, found none")])
    # A field that is not printed is none that is wrong.
    equal("expressed", "22B full_recompute, 22B seqpar+selective", ", ".join(r["row"] for r in expressed))


def case_verify_gpus_that_do_not_divide(program, folder):
    rows_of_llama = ("gpus,tp,cp,pp,seq_len,batch_per_dp,tflops_per_gpu\n"
                     "8192,8,1,16,8192,32,430\n8192,,1,16,8192,32,430\n8200,8,1,16,8192,32,430\n")
    expressed = verified(program, folder, "06_llama.csv", rows_of_llama, [
        ("3:1", "gpus: 8192 GPUs don't divide by tensor 0 x context 1 x pipeline 16"),
        ("4:1", "gpus: 8200 GPUs don't divide by tensor 8 x context 1 x pipeline 16")])
    equal("expressed", "1", str(len(expressed)))


def case_verify_a_plan_of_two_quantities(program, folder):
    # Neither its step time nor its memory, and said once.
    expressed = verified(program, folder, "17_runs.csv",
                         "case,real_ms,real_alloc_GiB\nllama3_70b_l12_tp7_pp1_dp1_mbc4,843.00,66.55\n",
                         [("2:1", "tp: 64 attention heads don't divide by 7 ranks")])
    equal("expressed", "0", str(len(expressed)))


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
                          ("3:31", "median_us: expected a number, found 'about 100'")])
    equal("expressed", "0", str(len(expressed)))


def main():
    arguments = sys.argv[1:]
    update = "--update" in arguments
    arguments = [a for a in arguments if a != "--update"]
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
    for name in [*files, *functions]:
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
