#!/usr/bin/python3
"""Same scenario, seed and version: the same bytes, at any thread count, compiler and optimisation level.

usage: run.py RAILYARD RAILYARD_BY_ANOTHER_COMPILER_HARDLY_OPTIMISED
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests import small  # noqa: E402
from tests.checks import Tally  # noqa: E402

STUCK = 3  # the exit code of a simulation in which nothing will happen any more


# Their estimates are drawn by the first build only: each draw measures packets or runs many failures again, 5 to 60 s of
# CPU in the other build. It draws those of some fifty other scenarios.
DEAR_TO_DRAW = {"airesim_default", "async_or_not", "bloom_176b", "breaker_trip", "flapping_optics", "ib_vs_roce",
                "lemon_nodes", "mixtral_8x22b_512_gpu", "planes_or_tiers", "pump_failure", "recovery_policies", "spares",
                "spares_and_crews", "tiers"}
# Half a minute a run, all of it spent on the packets of one window drawn again and again, as ib_vs_roce does with less.
NOT_DRAWN = {"pfc_storm"}
# A replica takes 15 s of CPU in the other build, so that runs one.
LONG = {"hidden_faults"}
REPLICAS = 5


def result_of(railyard, scenario, threads, estimates, replicas):
    """What `run` prints; `estimates`: with the interval that its estimates leave open."""
    command = [railyard, "run", str(scenario), "--json", "--replicas", str(replicas), "-j", str(threads),
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


def problems_of(scenario, builds):
    """Where results of `scenario` differ. Each thread count and each build is run once, with estimates where the slower
    build can afford them: a result with its interval holds all that a result without it does."""
    first, second = builds
    drawn = scenario.stem not in NOT_DRAWN
    apart = scenario.stem in DEAR_TO_DRAW | LONG
    replicas = 1 if scenario.stem in LONG else REPLICAS
    groups = [[(first, 1, drawn, REPLICAS), (first, 5, drawn, REPLICAS)]]
    if apart:
        groups.append([(first, 1, False, replicas), (second, 2, False, replicas)])
    else:
        groups[0].append((second, 2, drawn, REPLICAS))
    name = scenario.relative_to(ROOT)
    for runs in groups:
        results = [result_of(build, name, *how) for build, *how in runs]
        if results[0].startswith("exit"):
            yield f"{name}: {results[0]}"
        for (build, threads, *_), result in zip(runs, results):
            if result != results[0]:
                yield f"{name}: {build} -j{threads} differs\n  {results[0]}\n  {result}"


def main():
    builds = sys.argv[1:]
    tally = Tally()
    scenarios = sorted((ROOT / "scenarios").rglob("*.toml"), key=lambda path: (path.stem not in DEAR_TO_DRAW | LONG, path))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for problems in pool.map(lambda scenario: list(problems_of(scenario, builds)), scenarios):
            tally.add(problems)
    windows = pathlib.Path(__file__).with_name("window.toml")
    outputs = [window_of(build, windows) for build in builds]
    tally.check(all(output == outputs[0] and not output.startswith("exit") for output in outputs),
                "\n  ".join([f"{windows.name} differs", *outputs]))
    return tally.end()


sys.exit(main())
