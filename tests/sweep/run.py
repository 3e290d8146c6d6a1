#!/usr/bin/python3
"""Sweeps as people start, stop, kill and repeat them: what is in the database afterwards.

    run.py PATH_TO_RAILYARD [NAME...]

Each case is a function below; it gets the program and an empty folder.
"""

import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

from sweeps import SCENARIO, SECONDS_MAX, STUDY, Program, check, content, files, query, run_cases, same


def case_any_number_of_threads_makes_the_same_database(program, folder):
    files(folder)
    results = [program.sweep(folder, f"{threads}.sqlite", "-j", str(threads)) for threads in (1, 2, 5)]
    check(results[0]["complete"] == 20 and results[0]["simulated"] == 20, str(results[0]))
    for threads in (2, 5):
        same(content(folder, "1.sqlite"), content(folder, f"{threads}.sqlite"), f"-j 1 and -j {threads}")
    replicas = query(folder, "1.sqlite", "SELECT count(*), count(DISTINCT point) FROM replicas")
    check(replicas == [(120, 20)], f"replicas and points: {replicas}")


def case_a_verdict_finds_the_files_that_a_scenario_names(program, folder):
    """The study stands in another folder than the one it is started from, and its scenario includes a file beside it."""
    there = folder / "there"
    there.mkdir()
    storage = SCENARIO[SCENARIO.index("[storage]"):SCENARIO.index("[job]")]
    files(there, 'include = ["part.toml"]\n' + SCENARIO.replace(storage, ""))
    (there / "part.toml").write_text(storage)
    out, _ = program.run(folder, ["sweep", "there/study.toml", "--db", "there.sqlite"])
    check("the estimates" in out, out)


def case_a_point_is_what_run_makes_of_it(program, folder):
    files(folder)
    program.sweep(folder, "sweep.sqlite")
    program.run(folder, ["run", "scenario.toml", "--set", "job.checkpoint.interval=10 min", "--set",
                         'storage.server_write_bandwidth="10 GB/s"', "--replicas", "6", "--no-estimates",
                         "--db", "run.sqlite"])
    label = "interval = 10 min, server_write_bandwidth = 10 GB/s"
    sql = "SELECT name, mean, low, high FROM metric_means {} ORDER BY name"
    swept = query(folder, "sweep.sqlite", sql.format(f"WHERE label = '{label}'"))
    ran = query(folder, "run.sqlite", sql.format(""))
    check(len(ran) > 30 and swept == ran, f"{swept}\n{ran}")


def case_fifty_kills_leave_what_an_undisturbed_sweep_leaves(program, folder):
    # Replicas of some 30 ms, each of which is worth a commit.
    slow = SCENARIO.replace('step.time = "2 s"', 'step.time = "0.2 s"').replace('interval = "20 min"',
                                                                                  'interval = "100 steps"')
    study = STUDY.replace('values = ["5 min", "10 min", "20 min", "40 min"]',
                          'values = ["50 steps", "55 steps", "60 steps", "65 steps"]')
    files(folder, slow, study)
    began = time.monotonic()
    program.sweep(folder, "undisturbed.sqlite")
    whole = time.monotonic() - began
    expected = content(folder, "undisturbed.sqlite")
    moments = random.Random(5)
    kills = finished = 0
    while kills < 50 or finished == 0:
        db = f"{finished}.sqlite"
        process = program.start(folder, ["sweep", "study.toml", "--db", db, "-j", str(1 + kills % 2)])
        try:
            process.communicate(timeout=moments.uniform(0, whole / 4) if kills < 50 else SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
            continue
        check(process.returncode == 0, f"exit {process.returncode}")
        same(expected, content(folder, db), f"after {kills} kills")
        finished += 1
    check(kills >= 50, f"only {kills} kills")


def case_a_terminal_obeys_no_text_of_a_database(program, folder):
    files(folder, study=STUDY.replace('"40 min"', '"0 s"'))
    program.sweep(folder, "x.sqlite", code=4)  # five points are impossible
    with sqlite3.connect(folder / "x.sqlite") as connection:
        changed = 0
        for table, column in (("run_points", "label"), ("points", "title"), ("points", "problem"), ("scenarios", "file"),
                              ("runs", "title"), ("runs", "file"), ("axis_values", "text")):
            changed += connection.execute(f"UPDATE {table} SET {column} = char(27) || ']0;owned' || char(7) || {column}").rowcount
        check(changed > 40, f"{changed} texts")
    connection.close()
    hostile = "\x1b]0;owned\x07.toml"
    shutil.copy(folder / "scenario.toml", folder / hostile)
    for arguments in (["sweep", "study.toml", "--db", "x.sqlite"], ["report", "x.sqlite", "-o", "\x1b[31mx.html", "--no-estimates"],
                      ["compare", hostile, "scenario.toml", "--replicas", "2"]):
        process = program.start(folder, arguments)
        out, error = process.communicate(timeout=SECONDS_MAX)
        pageless = arguments[0] == "report" and "the report's page is missing" in error  # built with npm only
        check(process.returncode in (0, 4) or pageless, f"{arguments[0]}: exit {process.returncode}\n{error}")
        check("\x1b" not in out + error and "\x07" not in out + error, f"{arguments[0]}: {(out + error)!r}")
        check(pageless or r"\x1b" in out + error, f"{arguments[0]} names none of these texts:\n{out}{error}")


def case_interrupted_goes_on(program, folder):
    files(folder, study=STUDY.replace("replicas = 6", "replicas = 400"))
    process = program.start(folder, ["sweep", "study.toml", "--db", "x.sqlite"])
    wal = folder / "x.sqlite-wal"
    end = time.monotonic() + SECONDS_MAX
    while process.poll() is None and time.monotonic() < end and not (wal.exists() and wal.stat().st_size > 500_000):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=SECONDS_MAX)
    check(process.returncode == 130 and "the same command goes on from there" in error,
          f"exit {process.returncode}: {error}")
    check(query(folder, "x.sqlite", "SELECT status FROM runs") == [("interrupted",)], "status")
    program.sweep(folder, "x.sqlite")
    program.sweep(folder, "y.sqlite")
    same(content(folder, "y.sqlite"), content(folder, "x.sqlite"), "after Ctrl-C")


def case_nothing_is_run_twice(program, folder):
    files(folder)
    first = program.sweep(folder, "x.sqlite")
    again = program.sweep(folder, "x.sqlite")
    check((first["simulated"], again["simulated"]) == (20, 0) and first["digest"] == again["digest"], str(again))
    # Another study with some of the points, in another file and another order.
    (folder / "other.toml").write_text(STUDY.replace(
        '"5 min", "10 min", "20 min", "40 min"', '"80 min", "40 min", "5 min"').replace("intervals", "long intervals"))
    other = program.sweep(folder, "x.sqlite", study="other.toml")
    check(other["simulated"] == 5 and other["points"] == 15, str(other))
    # Another seed is another sweep.
    check(program.sweep(folder, "x.sqlite", "--set", "run.seed=2")["simulated"] == 20, "seed")
    # More replicas of the same points add to them, and come to the same as all at once.
    program.sweep(folder, "x.sqlite", "--set", "sweep.replicas=9")
    program.sweep(folder, "fresh.sqlite", "--set", "sweep.replicas=9")
    means = "SELECT label, name, replicas, mean, low, high FROM metric_means WHERE run = {} ORDER BY 1, 2"
    run = query(folder, "x.sqlite", "SELECT max(run) FROM runs")[0][0]
    check(query(folder, "x.sqlite", means.format(run)) == query(folder, "fresh.sqlite", means.format(1)), "means")


def case_replicas_stop_when_the_interval_is_narrow(program, folder):
    rule = ('stop = { metric = "goodput", half_width = 0.002, replicas_min = 4, replicas_max = 60 }')
    files(folder, study=STUDY.replace("replicas = 6", rule))
    for threads in (1, 2, 5):
        program.sweep(folder, f"{threads}.sqlite", "-j", str(threads))
        same(content(folder, "1.sqlite"), content(folder, f"{threads}.sqlite"), f"-j {threads}")
    points = query(folder, "1.sqlite", "SELECT replicas, goodput, goodput_low, goodput_high FROM overview")
    check(len({n for n, *_ in points}) > 1, f"all points have {points[0][0]} replicas")
    for n, mean, low, high in points:
        narrow = (high - low) / 2 <= 0.002 * mean
        check(narrow or n == 60, f"{n} replicas: {low} to {high}")
        check(n >= 4, f"{n} replicas")
    stored = query(folder, "1.sqlite", "SELECT p.replicas, count(*) FROM points p JOIN replicas USING (point) "
                                       "GROUP BY point")
    check(all(n == count for n, count in stored), f"more than the rule asked for: {stored}")


def case_impossible_points_are_named_and_the_rest_runs(program, folder):
    files(folder, study=STUDY.replace('"40 min"', '"0 s"'))
    process = program.start(folder, ["sweep", "study.toml", "--db", "x.sqlite"])
    _, error = process.communicate(timeout=SECONDS_MAX)
    check(process.returncode == 4, f"exit {process.returncode}: {error}")
    named = [line for line in error.splitlines() if line.startswith("railyard: impossible: interval = 0 s")]
    check(len(named) == 5, error)
    counts = query(folder, "x.sqlite", "SELECT status, count(*) FROM points GROUP BY status ORDER BY status")
    check(counts == [("complete", 15), ("impossible", 5)], str(counts))
    files(folder, study=STUDY.replace('"5 min", "10 min", "20 min", "40 min"', '"0 s"'))
    program.run(folder, ["sweep", "study.toml", "--db", "none.sqlite"], 2)


def case_a_point_that_breaks_the_program_takes_no_other_with_it(program, folder):
    # Half a million NICs don't fit into the memory that there is.
    files(folder, scenario=SCENARIO + '[fabric.compute]\nkind = "roce"\ntopology = "rail_only"\n',
          study='[sweep]\nscenario = "scenario.toml"\nreplicas = 2\n[[sweep.axis]]\nkey = "cluster.nodes"\n'
                'values = [17, 60000, 18]\n')
    for simulated in (3, 1):
        out, error = program.run(folder, ["sweep", "study.toml", "--db", "x.sqlite", "-j", "1", "--json"], 4,
                                 memory_bytes=250_000_000)
        told = json.loads(out)
        check((told["simulated"], told["complete"], told["failed"]) == (simulated, 2, 1), out)
        check("railyard: failed: nodes = 60000: out of memory\n" in error, error)
    points = query(folder, "x.sqlite", "SELECT label, status, replicas FROM overview ORDER BY position")
    check(points == [("nodes = 17", "complete", 2), ("nodes = 60000", "failed", 0), ("nodes = 18", "complete", 2)],
          str(points))


def case_two_sweeps_on_one_database(program, folder):
    files(folder, study=STUDY.replace("replicas = 6", "replicas = 3000"))
    first = program.start(folder, ["sweep", "study.toml", "--db", "x.sqlite"])
    try:
        end = time.monotonic() + SECONDS_MAX
        while time.monotonic() < end:
            try:  # others may read meanwhile
                if query(folder, "x.sqlite", "SELECT count(*) FROM replicas")[0][0] > 0:
                    break
            except sqlite3.Error:
                pass
            time.sleep(0.05)
        check(first.poll() is None, "the first sweep ended")
        _, error = program.run(folder, ["sweep", "study.toml", "--db", "x.sqlite"], 2)
        check("another program is writing to it" in error, error)
        check(first.poll() is None, "the first sweep ended")
    finally:
        first.kill()
        first.communicate()


def case_a_full_disk_stops_a_sweep_that_then_goes_on(program, folder):
    files(folder)
    _, error = program.run(folder, ["sweep", "study.toml", "--db", "x.sqlite"], 4, limit_bytes=600_000)
    check("can't write the database" in error and "goes on from there" in error, error)
    program.sweep(folder, "x.sqlite")
    program.sweep(folder, "y.sqlite")
    same(content(folder, "y.sqlite"), content(folder, "x.sqlite"), "after a full disk")


def other_sources(program, folder):
    """The program as it would be from other sources: the digest of them that it carries is another."""
    image = pathlib.Path(program.path).read_bytes()
    found = re.findall(rb"sources-[0-9a-f]{12}", image)
    check(len(found) == 1, f"identities in the program: {found}")
    other = folder / "railyard-of-other-sources"
    other.write_bytes(image.replace(found[0], b"sources-" + b"0" * 12))
    other.chmod(0o755)
    return Program(other)


def case_changed_sources_rerun_their_points_and_keep_the_old_ones(program, folder):
    files(folder)
    other = other_sources(program, folder)
    # Old sources were at it and were stopped: ten points are theirs.
    half = STUDY.replace('"5 min", "10 min", "20 min", "40 min"', '"5 min", "10 min"')
    (folder / "half.toml").write_text(half)
    other.sweep(folder, "x.sqlite", study="half.toml")
    old = query(folder, "x.sqlite", "SELECT * FROM points ORDER BY point")
    out, error = program.run(folder, ["sweep", "study.toml", "--db", "x.sqlite", "--json"])
    check(json.loads(out)["simulated"] == 20, out)
    check("10 of the points are in x.sqlite as other sources made them" in error
          and "those rows stay, the points are run again" in error, error)
    check(query(folder, "x.sqlite", "SELECT * FROM points WHERE point <= 10 ORDER BY point") == old, "old points moved")
    versions = query(folder, "x.sqlite", "SELECT version, count(*) FROM points GROUP BY version ORDER BY version")
    check([count for _, count in versions] == [10, 20] and versions[0][0].endswith("sources-" + "0" * 12), str(versions))
    # Each goes on from its own.
    again, error = program.run(folder, ["sweep", "study.toml", "--db", "x.sqlite", "--json"])
    check(json.loads(again)["simulated"] == 0 and "other sources" not in error, again + error)
    check(other.sweep(folder, "x.sqlite", study="half.toml")["simulated"] == 0, "the old sources run theirs again")
    program.sweep(folder, "y.sqlite")
    means = "SELECT label, name, mean FROM metric_means WHERE run = {} ORDER BY 1, 2"
    check(query(folder, "x.sqlite", means.format(2)) == query(folder, "y.sqlite", means.format(1)), "means")


def case_the_identity_is_of_what_is_in_the_sources(program, folder):
    root = pathlib.Path(__file__).resolve().parents[2]
    for part in ("sim", "models", "tools"):
        shutil.copytree(root / part, folder / part)

    def identity():
        subprocess.run(["cmake", f"-DSOURCE={folder}", f"-DOUTPUT={folder / 'out.cpp'}", "-P",
                        root / "tools" / "program" / "build_identity.cmake"], check=True)
        return re.search(r"sources-[0-9a-f]{12}", (folder / "out.cpp").read_text()).group()

    first = identity()
    version, _ = program.run(folder, ["--version"])
    check(version.split()[-1] == first, f"{version} is not of the sources, {first}")
    (folder / "sim" / "rng.cpp").touch()
    (folder / "models" / "README.md").write_text("other words")
    check(identity() == first, "time or words change it")
    seen = {first}
    for path, old, new in (("sim/rng.cpp", "return", "return "), ("models/catalogue/prices.toml", "\n", "\n\n"),
                           ("models/campaign/campaign.h", "#pragma once", "#pragma once\n"),
                           ("tools/results/replica_record.h", "#pragma once", "#pragma once\n")):
        text = (folder / path).read_text()
        (folder / path).write_text(text.replace(old, new, 1))
        seen.add(identity())
    check(len(seen) == 5, f"changes that change nothing: {seen}")


def keys_of_files(schema, path=()):
    """Each key of the language that names a file, as a path; 0 stands for a list's first entry."""
    for key, value in schema.get("properties", {}).items():
        if "A value: name of a file." in value.get("description", ""):
            yield (*path, key)
        yield from keys_of_files(value, (*path, key))
        yield from keys_of_files(value.get("items", {}), (*path, key, 0))


def case_every_file_that_a_scenario_names_counts_with_what_is_in_it(program, folder):
    out, _ = program.run(folder, ["list", "schema"])
    keys = list(keys_of_files(json.loads(out)))
    check({"jobs.trace", "fabric.compute.file", "window.traffic.0.path"}
          <= {".".join(map(str, key)) for key in keys}, f"keys that name files: {keys}")
    for key in keys:
        value = '"named"'
        for part in reversed(key[1:]):
            value = f"[{value}]" if part == 0 else f"{{ {part} = {value} }}"
        (folder / "scenario.toml").write_text(f"{key[0]} = {value}\n")
        (folder / "study.toml").write_text('[sweep]\nscenario = "scenario.toml"\n[[sweep.axis]]\n'
                                           'key = "run.seed"\nvalues = [1]\n')
        for text in ("one thing", "one thing", "another"):
            (folder / "named").write_text(text)
            program.run(folder, ["sweep", "study.toml", "--db", "x.sqlite"], 2)
        points = query(folder, "x.sqlite", "SELECT count(*) FROM points")[0][0]
        check(points == 2, f"{'.'.join(map(str, key))}: {points} points for two files")
        (folder / "x.sqlite").unlink()


TRACE_OF_TWO = "job_id,submit_time,gpu_num,duration,state\na,0,{gpus},600,COMPLETED\nb,10,8,600,COMPLETED\n"
TRACED_JOBS = """
[run]
duration = "1 h"
replicas = 2
[cluster]
node = "dgx_h100"
nodes = 2
[scheduler]
kind = "slurm"
[jobs]
trace = "trace.csv"
"""


def case_an_edited_trace_is_another_scenario(program, folder):
    (folder / "scenario.toml").write_text(TRACED_JOBS)
    for db, texts in (("x.sqlite", (8, 16)), ("y.sqlite", (16,))):
        for gpus in texts:
            (folder / "trace.csv").write_text(TRACE_OF_TWO.format(gpus=gpus))
            program.run(folder, ["run", "scenario.toml", "--no-estimates", "--db", db])
    replicas = "SELECT trajectory FROM replicas WHERE point = {} ORDER BY replica"
    first, second = (query(folder, "x.sqlite", replicas.format(point)) for point in (1, 2))
    check(len(first) == len(second) == 2 and first != second, f"{first}\n{second}")
    check(second == query(folder, "y.sqlite", replicas.format(1)), "the edited trace's replicas are not its own")


def case_designs_are_what_they_say(program, folder):
    axes = '[[sweep.axis]]\nkey = "job.checkpoint.interval"\nfrom = "5 min"\nto = "1 h"\nscale = "log"\n' \
           '[[sweep.axis]]\nkey = "cluster.nodes"\nfrom = 16\nto = 23\n'
    head = '[sweep]\nscenario = "scenario.toml"\nreplicas = 1\n'
    values = "SELECT axis, value FROM axis_values WHERE run = 1 ORDER BY axis, position"
    for design in ("latin_hypercube", "sobol"):
        files(folder, study=f'{head}design = "{design}"\npoints = 8\n{axes}')
        program.sweep(folder, f"{design}.sqlite")
        found = query(folder, f"{design}.sqlite", values)
        check(sorted(v for a, v in found if a == 1) == list(range(16, 24)), f"{design}: {found}")
        minutes = sorted(v for a, v in found if a == 0)
        strata = [int(8 * math.log(m / 5) / math.log(12) + 1e-6) for m in minutes]
        check(strata == list(range(8)), f"{design}: {minutes}")
    files(folder, study=f'{head}design = "zip"\n[[sweep.axis]]\nkey = "cluster.nodes"\nvalues = [16, 18]\n'
                        '[[sweep.axis]]\nkey = "run.seed"\nfrom = 1\nto = 2\nsteps = 2\n')
    program.sweep(folder, "zip.sqlite")
    labels = query(folder, "zip.sqlite", "SELECT label FROM overview ORDER BY position")
    check(labels == [("nodes = 16, seed = 1",), ("nodes = 18, seed = 2",)], str(labels))


MANY_JOBS = """
[run]
replicas = 2
duration = "3 day"
[cluster]
nodes = 4
[power]
[scheduler]
kind = "slurm"
[[jobs.kind]]
name = "some"
gpus = 16
rate = "20 /day"
work = "2 h"
limit = "8 h"
model = "llama2_7b"
parallel = { tensor = 8, global_batch = 64 }
"""
CAPS = """
[sweep]
scenario = "scenario.toml"
replicas = 2
[[sweep.axis]]
key = "power.gpu_cap"
values = ["700 W", "420 W"]
"""


def case_what_decides_is_what_decides_in_compare(program, folder):
    files(folder, MANY_JOBS, CAPS)
    compared, _ = program.run(folder, ["compare", "scenario.toml", "--vary", "power.gpu_cap=700 W,420 W", "--json",
                                       "--no-estimates"])
    compared = json.loads(compared)["metric"]
    check(compared == "jct_mean", compared)
    swept = program.sweep(folder, "x.sqlite")
    check(swept["metric"] == "jct_mean", str(swept))
    # A metric that somebody names decides in its run.
    swept = program.sweep(folder, "x.sqlite", "--metric", "energy")
    check((swept["metric"], swept["simulated"]) == ("energy", 0), str(swept))
    program.run(folder, ["compare", "scenario.toml", "--vary", "power.gpu_cap=700 W,420 W", "--no-estimates",
                         "--metric", "occupancy", "--better", "lower", "--db", "x.sqlite"])
    check(query(folder, "x.sqlite", "SELECT kind, metric, better FROM runs ORDER BY run") ==
          [("sweep", "energy", "lower"), ("compare", "occupancy", "lower")], "what runs are judged by")
    _, error = program.run(folder, ["sweep", "study.toml", "--db", "x.sqlite", "--metric", "energie"], code=2)
    check("--metric: no point has a metric 'energie'" in error and "did you mean 'energy'" in error, error)


def case_a_study_may_contain_its_scenario(program, folder):
    files(folder)
    (folder / "one.toml").write_text(SCENARIO + STUDY.replace('title = "intervals and stores"', "")
                                     .replace('scenario = "scenario.toml"', ""))
    contained = program.sweep(folder, "x.sqlite", study="one.toml")
    check(contained["digest"] == program.sweep(folder, "y.sqlite")["digest"], "other results")
    program.run(folder, ["run", "one.toml", "--no-estimates"])


def main():
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    return run_cases(globals(), Program(sys.argv[1]), wanted=sys.argv[2:])


sys.exit(main())
