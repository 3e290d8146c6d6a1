#!/usr/bin/python3
"""Same scenario, seed and version: the same bytes, at any thread count, compiler and optimisation level.

usage: run.py RAILYARD RAILYARD_BY_ANOTHER_COMPILER_HARDLY_OPTIMISED
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests import small  # noqa: E402

STUCK = 3  # the exit code of a simulation in which nothing will happen any more


# Each draw of an estimate measures packets or many failures again: minutes in a build that is hardly optimised.
DEAR_TO_DRAW = {"airesim_default", "breaker_trip", "ib_vs_roce", "pfc_storm"}


def result_of(railyard, scenario, threads, estimates):
    """What `run` prints; `estimates`: with the interval that its estimates leave open."""
    command = [railyard, "run", str(scenario), "--json", "--replicas", "5", "-j", str(threads),
               *([] if estimates else ["--no-estimates"]), *small.arguments(scenario)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode == STUCK:  # a deadlock is an answer, and its words are the result
        return done.stderr
    if done.returncode != 0:
        return f"exit {done.returncode}: {done.stderr}"
    result = json.loads(done.stdout)
    del result["cpu_s"]  # the one thing that is about this machine
    return json.dumps(result)


def window_of(railyard, scenario):
    """What its packet windows report; they have no threads."""
    done = subprocess.run([railyard, "window", str(scenario), "--json"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else f"exit {done.returncode}: {done.stderr}"


def main():
    builds = sys.argv[1:]
    # The slower build once: threads share the same code in both.
    replicas = [(builds[0], threads, False) for threads in (1, 2, 5)] + [(builds[1], 2, False)]
    intervals = [(builds[0], 1, True), (builds[0], 5, True), (builds[1], 2, True)]
    passed = failed = 0
    for scenario in sorted((ROOT / "scenarios").rglob("*.toml")):
        name = scenario.relative_to(ROOT)
        ok = True
        for variants in (replicas, intervals[:-1] if scenario.stem in DEAR_TO_DRAW else intervals):
            first = result_of(variants[0][0], name, *variants[0][1:])
            if first.startswith("exit"):
                ok = False
                print(f"{name}: {first}")
            for build, threads, estimates in variants[1:] + variants[:1]:
                other = result_of(build, name, threads, estimates)
                if other != first:
                    ok = False
                    print(f"{name}: {build} -j{threads} differs\n  {first}\n  {other}")
        passed, failed = passed + ok, failed + (not ok)
    windows = pathlib.Path(__file__).with_name("window.toml")
    outputs = [window_of(build, windows) for build in builds]
    if any(output != outputs[0] or output.startswith("exit") for output in outputs):
        failed += 1
        print("\n  ".join([f"{windows.name} differs", *outputs]))
    else:
        passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


sys.exit(main())
