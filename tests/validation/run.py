#!/usr/bin/python3
"""Runs 'railyard verify' over the tables beside this file, and the oracles of tests/laws over theirs, and holds each
to a mean error.

usage: run.py RAILYARD ORACLES

The bounds are what was reached, rounded up: a change that makes a model worse fails here. They are no
claim; what the errors are, 'railyard verify' prints. Tables that a TOML file describes have theirs there.
"""

import json
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from checks import Tally  # noqa: E402

MEAN_ERROR_MAX = {
    "42": 0.20, "43": 0.02, "44": 0.05, "45": 0.045, "73": 0.01,
    "50": 0.03,
    "60": 0.021, "61": 0.02, "63": 0, "64": 0.01, "70": 0.003, "72": 1e-9,
    "74": 1e-4,
    "80": 0.05, "81": 0.05, "82": 0.07, "83": 0.10, "84": 0.035, "85": 0.095, "86": 0.04, "87": 0.05, "88": 0.105,
    "89": 0.065, "90": 0.075, "91": 0.045,
}

# The worst row of a quantity: what is exact, or draws nothing at random. Of what marks packets at random only the mean.
WORST_ERROR_MAX = {
    "44": {"PFC only, Gbit/s": 0.03, "PFC only, completion, us": 0.03, "PFC only, queue, kB": 0.03,
           "PFC only, pauses": 0.06, "HPCC, Gbit/s": 0.10, "HPCC, completion, us": 0.20, "HPCC, queue, kB": 0.30,
           "HPCC, pauses": 0, "HPCC, slowdown": 0.10, "DCQCN, Gbit/s": 0.15, "DCQCN, queue, kB": 0.30},
    "73": {"NICs": 0, "switches": 0, "drain, us": 0, "headroom, bytes": 0, "pause, us": 1e-9, "share of C": 0,
           "fullest link / mean": 0.002, "P(no collision)": 0.02, "links used": 1e-3, "marked share": 0.05,
           "victim, Gbit/s": 0.06, "B, Gbit/s": 0.06},
}


def too_large(table, figures):
    """The quantities whose worst error is beyond their bound."""
    for quantity, bound in WORST_ERROR_MAX.get(table[:2], {}).items():
        worst = figures["by_quantity"].get(quantity, {}).get("worst")
        if worst is None or worst > bound:
            yield quantity, worst, bound


# The shares of published figures that are to be inside intervals whose widths were learned from other stacks.
INSIDE = {"inside_50": (0.42, 0.58), "inside_90": (0.85, 0.95)}
WIDTH_MAX = 0.15  # the median of the interval of nine in ten, to either side


OUTSIDE = 4  # the exit code of 'verify' where a table's own tolerance is passed


def printed(command, codes):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in codes:
        sys.exit(f"{command} ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


# The queues of table 71 are simulated for minutes by tests/laws/queueing_test.cpp, which holds them to more than a mean.
ORACLES = [str(path) for path in sorted((pathlib.Path(__file__).resolve().parents[1] / "laws/tables").glob("*.csv"))
           if not path.name.startswith("71_")]


def main():
    verified = printed([sys.argv[1], "verify", "--json"], {0, OUTSIDE})
    summary = {**verified["summary"], **printed([sys.argv[2], *ORACLES, "--json"], {0})["summary"]}
    tally = Tally()
    coverage = verified["coverage_by_other_stacks"]
    for name, (low, high) in INSIDE.items():
        share = coverage[name] / coverage["rows"]
        tally.check(low <= share <= high,
                    f"{name}: {share:.3f} of {coverage['rows']} rows, wanted {low} to {high}")
    tally.check(coverage["median_width_90"] <= WIDTH_MAX,
                f"half of the intervals of nine in ten are wider than {coverage['median_width_90']:.3f}")
    for table, figures in summary.items():
        if "outside" in figures:
            tally.add(figures["outside"])
            continue
        number = table[:2]
        bound = MEAN_ERROR_MAX.get(number)
        tally.check(bound is not None and figures["expressed"] > 0 and figures["mean_abs_error"] <= bound,
                    f"{table}: mean error {figures['mean_abs_error']:.4f}, bound {bound}, "
                    f"{figures['expressed']} of {figures['rows']} rows expressed")
        for quantity, worst, limit in too_large(table, figures):
            tally.add([f"{table}, {quantity}: worst error {worst}, bound {limit}"])
    missing = {number[:2] for number in MEAN_ERROR_MAX} - {table[:2] for table in summary}
    for number in sorted(missing):
        tally.add([f"table {number} was not verified"])
    return tally.end()


sys.exit(main())
