#!/usr/bin/python3
"""Plots what the growth benchmarks measure: growth.py BENCH_PROGRAM OUT.svg. Needs python3-matplotlib."""

import json
import subprocess
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt  # noqa: E402


def main():
    bench, out = sys.argv[1:]
    done = subprocess.run([bench, "--json", "growth"], capture_output=True, text=True, check=True)
    points = {"ring": [], "flows": []}
    for name, result in json.loads(done.stdout)["benches"].items():
        _, kind, size = name.split("_")
        points[kind].append((int(size), result["value"]))
    matplotlib.rcParams["svg.hashsalt"] = "growth"
    figure, axes = plt.subplots(figsize=(6, 4))
    labels = {"ring": "one ring over n GPUs", "flows": "a permutation of n flows, from start to end"}
    for kind, values in points.items():
        axes.loglog(*zip(*values), "o-", label=labels[kind])
    sizes = [n for n, _ in points["ring"]]
    n0, t0 = points["flows"][2]
    axes.loglog(sizes, [t0 * n / n0 * (n.bit_length() / n0.bit_length()) for n in sizes], ":", color="grey",
                label="n log n")
    axes.set_xlabel("n")
    axes.set_ylabel("CPU seconds, network and routes included")
    axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
    axes.minorticks_off()
    axes.legend()
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main()
