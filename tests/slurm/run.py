#!/usr/bin/python3
"""Sweeps and questions on a real Slurm: slurmctld, slurmd and munge from Debian's packages, on the loopback address.

    run.py PATH_TO_RAILYARD

Starts a cluster of its own (cluster.sh), runs the cases below and stops it. Exit 77, which ctest takes as
skipped, where the packages are missing or the daemons can't run.
"""

import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77

spec = importlib.util.spec_from_file_location("sweeps", HERE.parent / "sweep" / "sweeps.py")
sweeps = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sweeps)
check, content, same, query = sweeps.check, sweeps.content, sweeps.same, sweeps.query

spec = importlib.util.spec_from_file_location("designs", HERE.parent / "design" / "run.py")
designs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(designs)

ON_SLURM = ["--on", "slurm", "--poll", "0.3", "--tasks", "4"]


def children_of_tasks():
    """Pids of railyard processes that run a task, from /proc."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"--task" in words and b"sweep" in words:
                found.append((int(entry.name), words[words.index(b"--task") + 1].decode()))
    return found


def kill_a_task(folder, process):
    end = time.monotonic() + sweeps.SECONDS_MAX
    while time.monotonic() < end and process.poll() is None:
        for pid, of in children_of_tasks():
            if of.startswith(str(folder)):
                os.kill(pid, signal.SIGKILL)
                return
        time.sleep(0.02)
    raise sweeps.Failure(f"no task was seen: {process.communicate()}")


def case_an_array_leaves_what_one_machine_leaves(program, folder):
    sweeps.files(folder)
    there = program.sweep(folder, "slurm.sqlite", *ON_SLURM)
    here = program.sweep(folder, "here.sqlite")
    check(there["digest"] == here["digest"] and there["complete"] == 20, str(there))
    same(content(folder, "here.sqlite"), content(folder, "slurm.sqlite"), "on Slurm")
    check(not (folder / "slurm.sqlite.slurm").exists(), "the folder is still there")
    again = program.sweep(folder, "slurm.sqlite", *ON_SLURM)
    check(again["simulated"] == 0, str(again))


def case_a_task_that_dies_is_run_again(program, folder):
    sweeps.files(folder, study=sweeps.STUDY.replace("replicas = 6", "replicas = 600"))
    process = program.start(folder, ["sweep", "study.toml", "--db", "slurm.sqlite", *ON_SLURM])
    kill_a_task(folder, process)
    out, error = process.communicate(timeout=sweeps.SECONDS_MAX)
    check(process.returncode == 0, f"exit {process.returncode}: {out}{error}")
    program.sweep(folder, "here.sqlite")
    same(content(folder, "here.sqlite"), content(folder, "slurm.sqlite"), "after a task's death")


def case_a_coordinator_that_dies_goes_on_and_half_written_shards_are_dropped(program, folder):
    sweeps.files(folder, study=sweeps.STUDY.replace("replicas = 6", "replicas = 300"))
    process = program.start(folder, ["sweep", "study.toml", "--db", "slurm.sqlite", "--on", "slurm", "--poll", "60",
                                     "--tasks", "4"])
    work = folder / "slurm.sqlite.slurm"
    end = time.monotonic() + sweeps.SECONDS_MAX
    while time.monotonic() < end and not list(work.glob("task-*.pb")):
        check(process.poll() is None, "the coordinator ended")
        time.sleep(0.05)
    process.kill()
    process.communicate()
    whole = sorted(work.glob("task-*.pb"))
    check(whole, "no shard is whole")
    # One of them loses its end, as on a disk that was full: its report no longer fits.
    shard = work / whole[0].name.replace("task-", "shard-").replace(".pb", ".sqlite")
    with open(shard, "r+b") as file:
        file.truncate(shard.stat().st_size - 4096)
    program.sweep(folder, "slurm.sqlite", *ON_SLURM)
    program.sweep(folder, "here.sqlite")
    same(content(folder, "here.sqlite"), content(folder, "slurm.sqlite"), "after the coordinator's death")


def case_a_task_that_always_fails_is_named(program, folder):
    sweeps.files(folder)
    process = program.start(folder, ["sweep", "study.toml", "--db", "x.sqlite", *ON_SLURM])
    manifest = folder / "x.sqlite.slurm" / "manifest.pb"
    while process.poll() is None and not manifest.exists():
        time.sleep(0.005)
    manifest.write_bytes(b"damaged")
    _, error = process.communicate(timeout=sweeps.SECONDS_MAX)
    check(process.returncode == 2 and "has failed 3 times" in error and "task-0.log" in error, error)
    said = (folder / "x.sqlite.slurm" / "task-0.log").read_text()
    check("is no manifest of a sweep, or a damaged one" in said, said)
    program.sweep(folder, "x.sqlite", *ON_SLURM)


def case_a_question_is_answered_as_on_one_machine(program, folder):
    (folder / "question.toml").write_text(designs.QUESTION.replace("[16, 17, 18, 20]", "[16, 18]"))
    answers = [program.run(folder, ["design", "question.toml", "--db", f"{name}.sqlite", "--json", *more], 0)[0]
               for name, more in (("slurm", ON_SLURM), ("here", []))]
    check(answers[0] == answers[1], "\n".join(answers))
    check(not (folder / "slurm.sqlite.slurm").exists(), "the folder is still there")


def case_no_slurm_is_said(program, folder):
    sweeps.files(folder)
    keep = dict(os.environ)
    try:
        os.environ["SLURM_CONF"] = str(folder / "none.conf")
        _, error = program.run(folder, ["sweep", "study.toml", "--db", "x.sqlite", *ON_SLURM], 2)
        check("Slurm does not answer" in error, error)
        os.environ["PATH"] = "/nowhere:" + str(folder)
        (folder / "sh").symlink_to("/bin/sh")
        _, error = program.run(folder, ["sweep", "study.toml", "--db", "x.sqlite", *ON_SLURM], 2)
        check("there is no Slurm here" in error, error)
    finally:
        os.environ.clear()
        os.environ.update(keep)


def main():
    if len(sys.argv) < 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    cluster = str(HERE / "cluster.sh")
    with tempfile.TemporaryDirectory(prefix="railyard-slurm-") as folder:
        started = subprocess.run([cluster, "start", folder, "2"], stdout=subprocess.DEVNULL)
        try:
            if started.returncode != 0:
                return started.returncode
            os.environ["SLURM_CONF"] = f"{folder}/slurm.conf"
            return sweeps.run_cases(globals(), sweeps.Program(sys.argv[1]))
        finally:
            subprocess.run([cluster, "stop", folder], check=False)
            time.sleep(1)


sys.exit(main())
