#!/usr/bin/python3
"""What every verb with --json says of worlds of every kind: is all of it a number, a word, or plainly nothing?

usage: answers.py RAILYARD

JSON in UTF-8, without NaN and infinities, and without the numbers that stand for "none" or "for ever" inside the
program: the ends of 64-bit integers (as nanoseconds, in seconds too), the largest doubles, -1. Each interval holds what
it is of.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

JOB = """
[run]
duration = "20 day"
replicas = 3
[cluster]
nodes = 4
[job]
nodes = 3
step.time = "2 s"
"""
UNSAVED = 'checkpoint.mode = "none"\n'
SAVED = '[job.checkpoint]\nsize = "100 GB"\ninterval = "1 h"\n'
MODEL = """
[run]
duration = "5 day"
replicas = 3
[cluster]
nodes = 2
[job]
model = "llama2_7b"
[job.parallel]
tensor = 8
data = 2
global_batch = 64
[job.checkpoint]
interval = "1 h"
"""
FAILURES = '[failures]\nprofile = "meta_rsc1"\nrate_scale = 20\n'
STORE = '[storage]\nsystem = "weka"\nservers = 8\n'
COST = '[cost]\nbudget = "1 MUSD"\n'
MANY = """
[run]
duration = "3 day"
replicas = 2
[cluster]
nodes = 6
[[jobs.kind]]
name = "train"
rate = "8 /day"
gpus = 16
work = "5 h"
limit = "1 day"
[[jobs.kind]]
name = "one"
rate = "20 /day"
gpus = 1
work = "1 h"
limit = "1 day"
[scheduler]
"""
# No job to speak of.
STEPS = '[cluster]\nnodes = 4\n[job]\nstep.time = "2 s"\n' + UNSAVED
WINDOW = STEPS + """
[fabric.compute]
kind = "roce"
[[window.traffic]]
kind = "incast"
bytes = "1 MiB"
"""
DEAD_NIC = '[[window.fault]]\nnic = "node-0.nic-0"\nstart = "10 us"\n'

# What each is, and what is asked of it.
RUN = [["run"], ["explain", "--replicas", "2", "--no-upgrades"],
       ["sensitivity", "--replicas", "2", "--trajectories", "2", "--samples", "16"],
       ["compare", "--replicas", "3", "--vary", "run.failures=false"]]
PLAN = [["plan"], ["perf", "all_reduce", "-e", "1M"], ["topo"], ["storage"]]
WORLDS = {
    "one_job": (JOB + SAVED + FAILURES, RUN),
    "one_replica": (JOB.replace("replicas = 3", "replicas = 1") + SAVED + FAILURES + COST, [["run"], ["cost"]]),
    "no_checkpoint": (JOB + UNSAVED + FAILURES, RUN),
    "nothing_fails": (JOB + SAVED, RUN),
    "nothing_at_all": (JOB + UNSAVED, RUN),
    "until_it_is_done": (JOB.replace('duration = "20 day"', "").replace("nodes = 3", 'nodes = 3\nlength = "2 h"') + SAVED
                         + FAILURES, RUN),
    "no_node_comes_back": (JOB + SAVED + FAILURES + 'quarantine = { failures = 1, within = "30 day" }\n', RUN),
    "model": (MODEL + STORE + FAILURES + COST, [*RUN, *PLAN, ["cost"]]),
    "model_unpriced": (MODEL + FAILURES, [*PLAN]),
    "flows": (MODEL.replace("[run]", '[run]\nfidelity = "flow"') + '[fabric.compute]\nkind = "roce"\ntopology = "fat_tree"\n'
              + FAILURES, [["run"], *PLAN]),
    "own_drives": (MODEL + '[storage]\nsystem = "local_nvme_raid0"\n' + FAILURES, [["run"], ["storage"]]),
    "asynchronous": (MODEL + 'mode = "async"\n' + STORE + FAILURES, [["run"], ["storage"]]),
    "storage_alone": (STEPS + STORE, [["storage"], ["topo"]]),
    "window": (WINDOW, [["window"], ["window", "--vary", "fabric.compute.queue_pairs=1,4"], ["topo"]]),
    "window_dead": (WINDOW + DEAD_NIC, [["window"], ["window", "--set", 'window.time_max="20 us"'],
                                        ["window", "--set", "window.events_max=10"]]),
    "cut_off": (JOB.replace("[run]", "[run]\nevents_max = 3") + SAVED + FAILURES, RUN[:1] + RUN[-1:]),
    "one_second": (MODEL.replace("5 day", "1 s") + STORE + FAILURES + COST, [["run"], ["cost"]]),
    "many_idle": (MANY.replace("8 /day", "0.001 /day").replace("20 /day", "0.001 /day"), RUN[:1]),
    "many_wait": (MANY.replace("gpus = 16", "gpus = 48").replace("8 /day", "80 /day"), RUN[:1]),
    **{f"many_{kind}": (MANY + f'kind = "{kind}"\n' + FAILURES + COST, [["run"], ["cost"], RUN[-1]])
       for kind in ("slurm", "kubernetes", "volcano", "kueue")},
}
TRACE = "job_id,submit_time,gpus,duration\n1,0,8,3600\n2,10,16,7200\n3,20,64,60\n"
POLICIES = ["fifo", "sjf", "priority", "easy", "backfill"]
STUDY = '[sweep]\nscenario = "one_job.toml"\nreplicas = 2\n[[sweep.axis]]\nkey = "cluster.nodes"\nvalues = [2, 4, 5]\n'


def is_sentinel(value):
    """Within what a double can tell of an end of 64 bits, on any of the clocks; or of a double."""
    ends = [2.0**63 / unit for unit in (1, 1e3, 1e6, 1e9, 1e12)] + [2.0**64]
    return value == -1 or abs(value) > 1e300 or any(abs(abs(value) / end - 1) < 1e-9 for end in ends)


def torn_intervals(answer):
    """The keys of intervals whose ends are not around what they are of."""
    of = [answer[key] for key in ("mean", "difference", "value") if isinstance(answer.get(key), (int, float))]
    for key in ("ci95", "interval", "half_within", "nine_tenths_within"):
        ends = answer.get(key)
        if not isinstance(ends, list) or any(not isinstance(end, (int, float)) for end in ends):
            continue
        least, most = ends
        slack = 1e-9 * max(abs(least), abs(most))
        outside = any(not least - slack <= middle <= most + slack for middle in of)
        # Half of what may come can lie on one side of a mean.
        if least > most or (outside and key != "half_within"):
            yield key


def wrong(value, path, verb):
    if isinstance(value, dict):
        yield from (f"{path}.{key}: {value}" for key in torn_intervals(value))
        for key, each in value.items():
            yield from wrong(each, f"{path}.{key}", verb)
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from wrong(each, f"{path}[{at}]", verb)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        # A difference may be -1; the root of a collective without one is, in nccl-tests.
        may_be_minus_one = "comparisons[" in path or (verb == "perf" and path.endswith(".root"))
        if is_sentinel(value) and not (value == -1 and may_be_minus_one):
            yield f"{path} is {value!r}"
    elif isinstance(value, str) and any(word in value for word in ("9223372036", "18446744073709551615", "1.797")):
        yield f"{path} is {value!r}"


def no_number(word):
    raise ValueError(f"{word} is no JSON")


def commands(folder):
    for name, (text, verbs) in WORLDS.items():
        (folder / f"{name}.toml").write_text(text)
        for verb in verbs:
            before = 2 if verb[0] == "perf" else 1  # whose first operand is the collective
            yield [*verb[:before], f"{name}.toml", *verb[before:]]
    (folder / "trace.csv").write_text(TRACE)
    (folder / "study.toml").write_text(STUDY)
    for policy in POLICIES:
        yield ["jobs", "trace.csv", "--nodes", "4", "--gpus-per-node", "8", "--policy", policy]
    yield ["breakeven", "job.checkpoint.interval", "one_job.toml", "--from", "10 min", "--to", "10 h", "--set", "cluster.nodes=5",
           "--replicas", "3", "--points", "3"]
    yield ["compare", "one_job.toml", "nothing_at_all.toml", "--replicas", "2"]
    yield ["sweep", "study.toml", "--db", "study.sqlite"]
    tables = ROOT / "tests" / "validation"
    yield ["verify", *map(str, sorted(tables.glob("0*.csv")) + sorted(tables.glob("5*.csv")))]
    yield ["verify", "--rows", *map(str, sorted(tables.glob("1*.csv")) + sorted(tables.glob("3[02]*.csv")))]


def main():
    railyard = str(pathlib.Path(sys.argv[1]).resolve())
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for command in commands(pathlib.Path(folder)):
            done = subprocess.run([railyard, *command, "--json"], cwd=folder, capture_output=True)
            try:
                answer = json.loads(done.stdout.decode(), parse_constant=no_number)
                found = list(wrong(answer, "", command[0]))
            except ValueError as problem:
                found = [str(problem)]
            if done.returncode not in (0, 3, 4):
                found.append(f"exit {done.returncode}: {done.stderr.decode(errors='replace')}")
            if found:
                print(" ".join(command), *found, sep="\n  ")
            failed += bool(found)
            passed += not found
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


sys.exit(main())
