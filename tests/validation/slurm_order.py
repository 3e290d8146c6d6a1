#!/usr/bin/python3
"""The order in which a real slurmctld starts a small stream of jobs, and ours.

usage: slurm_order.py RAILYARD             ours against the recorded order
       slurm_order.py RAILYARD --live      runs the stream on a slurmctld first, which takes some minutes
       slurm_order.py RAILYARD --record    the same, and records what it did

The stream is traces/slurm_order.csv: 32 jobs on 8 nodes of 8 processors, which are GPUs to us, in three partitions
that share nodes, with priorities by age, size and partition and limits that backfill can use. slurm_order.toml sets
us up as SETTINGS sets up Slurm. Jobs sleep. --live exits with 77 where Slurm isn't installed (../slurm/cluster.sh).
"""

import csv
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
STREAM = HERE / "traces" / "slurm_order.csv"
SCENARIO = HERE / "slurm_order.toml"
CLUSTER = HERE.parent / "slurm" / "cluster.sh"
GPUS_PER_NODE = 8
SECONDS_APART = 3  # starts that are closer have no order: Slurm needs a moment to start and to end a job

# Looking for a start, Slurm takes jobs together that end within 30 s to a minute of each other, and then twice as
# much each time; bf_window_linear leaves it at the half minute. We take each end as it is: the limits are 20 minutes apart.
SETTINGS = """
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityMaxAge=0-0:20
PriorityWeightJobSize=1000
PriorityWeightPartition=2000
PriorityCalcPeriod=1
SchedulerParameters=batch_sched_delay=0,sched_interval=60,bf_interval=1,bf_window_linear=1
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/completed.txt
PartitionName=short Nodes=ALL PriorityJobFactor=10 State=UP
PartitionName=half Nodes=node[4-7] State=UP
"""


def stream():
    with STREAM.open() as file:
        return [row for row in csv.DictReader(line for line in file if not line.startswith("#"))]


def submit(job, environment):
    gpus = int(job["gpus"])
    on_each = min(gpus, GPUS_PER_NODE)
    done = subprocess.run(
        ["sbatch", "--parsable", "--output=/dev/null", f"--partition={job['partition']}",
         f"--nodes={gpus // on_each}", f"--ntasks={gpus}", f"--ntasks-per-node={on_each}",
         f"--time={int(job['time_limit']) // 60}", f"--job-name={job['job_id']}",
         f"--wrap=sleep {job['duration']}"],
        env=environment, check=True, capture_output=True, text=True)
    return int(done.stdout)


def live_starts(folder, jobs):
    """Seconds from the first submission to each job's start, by id."""
    environment = dict(os.environ, EXTRA_CONF=SETTINGS.format(folder=folder))
    started = subprocess.run([CLUSTER, "start", folder, str(GPUS_PER_NODE), "8"], env=environment)
    if started.returncode != 0:
        sys.exit(started.returncode)
    environment["SLURM_CONF"] = f"{folder}/slurm.conf"
    try:
        time.sleep(3)
        begin = time.time()
        for job in jobs:
            time.sleep(max(0, begin + float(job["submit_time"]) - time.time()))
            submit(job, environment)
        while subprocess.run(["squeue", "--noheader"], env=environment, check=True,
                             capture_output=True, text=True).stdout.strip():
            time.sleep(2)
        time.sleep(2)
        completed = pathlib.Path(folder, "completed.txt").read_text()
    finally:
        subprocess.run([CLUSTER, "stop", folder])
    starts = {}
    for name, start in re.findall(r"Name=(\d+) .*? StartTime=(\S+)", completed):
        starts[name] = round(time.mktime(time.strptime(start, "%Y-%m-%dT%H:%M:%S")) - begin)
    return starts


def record(starts):
    lines = STREAM.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if not line.startswith("#"))
    column = lines[first].split(",").index("slurm_start")
    for i in range(first + 1, len(lines)):
        cells = lines[i].split(",")
        cells[column] = str(starts[cells[0]])
        lines[i] = ",".join(cells)
    STREAM.write_text("\n".join(lines) + "\n")


def our_starts(railyard):
    with tempfile.TemporaryDirectory() as folder:
        database = f"{folder}/run.sqlite"
        subprocess.run([railyard, "run", SCENARIO, "--no-estimates", "--json", "--db", database], check=True,
                       capture_output=True)
        rows = sqlite3.connect(database).execute("SELECT cause, time_ns FROM events WHERE kind = 'started'")
        return {re.match(r"job (\d+)", cause)[1]: ns / 1e9 for cause, ns in rows}


def main():
    jobs = stream()
    ours = our_starts(sys.argv[1])
    theirs = {job["job_id"]: float(job["slurm_start"]) for job in jobs}
    if "--live" in sys.argv or "--record" in sys.argv:
        with tempfile.TemporaryDirectory(prefix="railyard-slurm-", ignore_cleanup_errors=True) as folder:
            theirs = live_starts(folder, jobs)
        print(json.dumps(theirs), flush=True)
    if "--record" in sys.argv:
        record(theirs)
    order = sorted(theirs, key=theirs.get)
    wrong = [(a, b) for i, a in enumerate(order) for b in order[i + 1:]
             if theirs[b] - theirs[a] > SECONDS_APART and ours[b] < ours[a]]
    for job in order:
        if wrong:
            print(f"job {job:>3}: slurmctld {theirs[job]:6.0f} s, ours {ours[job]:6.0f} s")
    for a, b in wrong[:10]:
        print(f"slurmctld starts job {a} before job {b}, we do not")
    apart = max(abs(theirs[job] - ours[job]) for job in order)
    print(json.dumps({"jobs": len(order), "pairs_in_another_order": len(wrong), "seconds_apart_max": apart}))
    if len(ours) != len(jobs):
        print(f"of {len(jobs)} jobs {len(ours)} have started")
    return 1 if wrong or len(ours) != len(jobs) else 0


sys.exit(main())
