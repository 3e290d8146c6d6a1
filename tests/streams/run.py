#!/usr/bin/python3
"""No option of 'railyard jobs' is dead in silence: under each policy and placement, and for traces of each format,
one that is given changes what is printed, or a warning or an error names it.

usage: run.py RAILYARD
"""

import pathlib
import random
import subprocess
import sys
import tempfile

POLICIES = ("fifo", "sjf", "priority", "easy", "backfill")
PLACEMENTS = ("pool", "consolidate")
JOBS = 120


def random_jobs():
    """Number, submission, GPUs, seconds, limit: more work than 32 GPUs can do."""
    draw = random.Random(3)
    at = 0
    for number in range(1, JOBS + 1):
        at += round(draw.expovariate(1 / 600))
        seconds = round(draw.lognormvariate(7.5, 1))
        # Who runs short does not always say so.
        yield number, at, draw.choice([1, 2, 4, 8, 16]), seconds, seconds * draw.choice([1, 2, 50])


def clock(seconds):
    days, seconds = divmod(seconds, 86400)
    return f"{days + 1:02}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def traces(folder):
    """The same jobs in each format, and the last line of each no job."""
    csv = ["job_id,submit_time,gpus,duration,time_limit,priority"]
    sacct = ["JobID|Submit|Start|End|Elapsed|State|AllocTRES|TimelimitRaw|Priority"]
    swf = []
    for number, at, gpus, seconds, limit in random_jobs():
        csv.append(f"{number},{at},{gpus},{seconds},{limit},{number % 7}")
        sacct.append(f"{number}|2024-01-{clock(at)}|2024-01-{clock(at)}|2024-01-{clock(at + seconds)}|"
                     f"0-{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}|COMPLETED|"
                     f"cpu=8,gres/gpu={gpus}|{limit // 60 + 1}|{number % 7}")
        swf.append(f"{number} {at} 0 {seconds} {gpus} -1 -1 {gpus} {limit} -1 1 1 1 1 1 1 -1 -1")
    for name, lines, bad in (("csv", csv, "x,y,z,0,0,0"), ("sacct", sacct, "900|never|never|never|x|COMPLETED|gres/gpu=8|1|1"),
                             ("swf", swf, "x y z")):
        (folder / name).write_text("\n".join(lines) + "\n")
        (folder / f"{name}_bad").write_text("\n".join([*lines, bad]) + "\n")
    # What nobody has limited.
    (folder / "csv_unlimited").write_text("\n".join(line.rsplit(",", 2)[0] for line in csv) + "\n")
    return ("csv", "csv_unlimited", "sacct", "swf")


OPTIONS = {"estimate": "limit", "max-submit": "3", "bf-interval": "3 h", "bf-window": "10 min", "bf-resolution": "5 h",
           "bf-depth": "1", "time-unit": "2 s", "nodes": "5", "gpus-per-node": "16", "skip-bad": None}


def main():
    program = sys.argv[1]
    silent, tried = [], 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)

        def said(trace, policy, placement, options):
            arguments = {"nodes": "4", "gpus-per-node": "8", "policy": policy, "placement": placement,
                         "format": trace.split("_")[0], **options}
            words = [word for name, value in arguments.items()
                     for word in ([f"--{name}"] if value is None else [f"--{name}", value])]
            done = subprocess.run([program, "jobs", str(folder / trace), *words], capture_output=True, text=True)
            if done.returncode not in (0, 2):
                sys.exit(f"{trace} {words}: exit code {done.returncode}\n{done.stderr}")
            return done.stdout, done.stderr

        for trace in traces(folder):
            for policy in POLICIES:
                for placement in PLACEMENTS:
                    for option, value in OPTIONS.items():
                        file = f"{trace.split('_')[0]}_bad" if option == "skip-bad" else trace
                        before, why = said(file, policy, placement, {})
                        if option != "skip-bad" and not before:
                            sys.exit(f"{trace} {policy} {placement}: {why}")
                        after, named = said(file, policy, placement, {option: value})
                        tried += 1
                        if before == after and f"--{option}" not in named:
                            silent.append(f"--{option} with {trace}, {policy}, {placement}")
    for each in silent:
        print(f"{each} changes nothing, and nothing says so")
    print(f"{tried} tried, {len(silent)} silent")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
