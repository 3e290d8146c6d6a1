"""Runs that somebody interrupts or kills."""

import json
import re
import signal
import sqlite3

from harness import (FOLDER, LONG_SCENARIO, SECONDS_MAX, SHORT_SCENARIO, check, cpu_seconds, equal,
                     expect, rows, said, start_long_run, stop, wait_until, write)


def case_interrupted_by_ctrl_c(program, folder):
    keeps_what_is_done(program, folder, signal.SIGINT)


def case_ended_by_a_time_limit(program, folder):  # of Slurm or systemd
    keeps_what_is_done(program, folder, signal.SIGTERM)


def keeps_what_is_done(program, folder, how):
    process, db = start_long_run(program, folder)
    try:
        process.send_signal(how)
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
    stdout, stderr = interrupt(program, ["plan", llama, *flows, "--set", "run.network_draws=4", "--set", "fabric.compute.kind=roce",
                                         "--set", "fabric.compute.topology=fat_tree", "--set", "fabric.compute.queue_pairs=32",
                                         "--splits", "10000", "--top", "50"], 4)
    check(stderr == "railyard: interrupted: this is the plan as given; others were not all tried\n", stderr)
    check("critical path" in stdout and "best plans" not in stdout, stdout)
    hello = str(studies.parent / "hello" / "first.toml")
    stdout, stderr = interrupt(program, ["check", hello, llama, *flows, "--set", "run.network_draws=1000", "--set",
                                         "fabric.compute.kind=roce", "--set", "fabric.compute.topology=fat_tree"], 3)
    check(stderr.endswith("railyard: interrupted: 1 of 2 scenarios were checked\n"), stderr)
    check("first.toml" in stdout, stdout)


def case_a_window_says_as_json_how_far_it_came(program, folder):
    path = folder / "long.toml"
    path.write_text("""
run.duration = "1 h"
cluster = { node = "dgx_h100", nodes = 32 }
fabric.compute = { kind = "roce", topology = "fat_tree", leaf = "sn5600_spectrum4", nodes_per_leaf = 8 }
job = { step.time = "5 s", checkpoint.mode = "none" }
window.traffic = [{ kind = "all_to_all", bytes = "16 GiB" }]
""")
    stdout, _ = interrupt(program, ["window", str(path), "--json"], 1.5)
    windows = json.loads(stdout)["windows"]
    check(len(windows) == 1 and not windows[0]["complete"], stdout)


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
