#!/usr/bin/python3
"""What published rows say together: which plan is faster, what 8 bits or another GPU gain, how runs scale.

usage: pairs.py RAILYARD [plans] [precision] [gpus] [scaling] [collectives]

plans        Kendall's tau of the step times of tables 91 (by date, for these ran on one state of the machine) and 15
precision    the step in 16 bits over that in 8 or 4, of rows that differ in nothing else; and with other plans
gpus         tokens per second and GPU on B200 and GB200 over H100, the same model, sequence and precision
scaling      tokens per second and GPU over those on the fewest GPUs, the batch for each GPU being the same
collectives  table 30 with each of its systems left out of the fit of the numbers that were fitted on 30 to 32

All of it unless some are named. Standard library alone; collectives takes minutes, the others seconds.
"""

import collections
import csv
import itertools
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tomllib

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
RUNS = sorted(str(table) for table in HERE.glob("[89]*.csv"))


def verify(railyard, tables, settings=()):
    done = subprocess.run([railyard, "verify", "--json", *settings, *tables], capture_output=True, text=True)
    if done.returncode not in (0, 4):  # 4: outside a table's tolerance
        sys.exit(done.stderr)
    return json.loads(done.stdout)["rows"]


def columns(table):
    with open(table) as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {row["case"]: row for row in rows}


class Run:
    """A published run with its simulated figure; both as tokens per second and GPU."""

    def __init__(self, row, cells):
        self.table, self.case, self.cells = row["table"], row["row"], cells
        self.software = row["software"]
        faster = -1 if row["quantity"].startswith("step") else 1
        self.published = self.speed(row["published"], faster)
        self.simulated = self.speed(row["simulated"], faster)

    def speed(self, value, faster):
        tokens = float(self.cells["global_batch"] or 1) * float(self.cells["seq"] or 1)
        return tokens / float(self.cells["gpus"]) / value if faster < 0 else value

    def key(self, *names):
        return tuple(self.cells[name] for name in names)


def runs(railyard):
    cells = {pathlib.Path(table).stem: columns(table) for table in RUNS}
    return [Run(row, cells[row["table"]][row["row"]]) for row in verify(railyard, RUNS)]


def tau(pairs):
    """Kendall's tau-b of (published, simulated), and how many pairs of rows there are."""
    agree = tied_a = tied_b = 0
    total = 0
    for (a, x), (b, y) in itertools.combinations(pairs, 2):
        sign = ((a > b) - (a < b)) * ((x > y) - (x < y))
        agree += sign
        tied_a += a == b
        tied_b += x == y
        total += 1
    return agree / math.sqrt((total - tied_a) * (total - tied_b)), total


def plans(railyard, all_runs):
    grid = [run for run in all_runs if run.table.startswith("91")]
    print(f"91, all {len(grid)} rows: tau {tau([(r.published, r.simulated) for r in grid])[0]:.2f}")
    # The same model on the same GPUs and date; groups of three plans and more.
    groups = collections.defaultdict(list)
    for run in grid:
        date = re.search(r"tune_(\d\d-\d\d)", run.case)
        groups[(date[1] if date else "", *run.key("layers", "hidden", "heads", "gpus", "seq"))].append(run)
    concordant = pairs_in_all = 0
    for key, of in sorted(groups.items()):
        if len(of) < 3:
            continue
        value, pairs = tau([(r.published, r.simulated) for r in of])
        concordant += value * pairs
        pairs_in_all += pairs
        print(f"  {' '.join(key):30} {len(of):3} plans  tau {value:+.2f}")
    if pairs_in_all:
        print(f"91, plans of one model on one date, {pairs_in_all} pairs: tau {concordant / pairs_in_all:.2f}")
    rows = verify(railyard, [str(HERE / "15_vtrain_multinode_measured.csv")])
    print(f"15, all {len(rows)} rows: tau {tau([(r['published'], r['simulated']) for r in rows])[0]:.2f}")
    groups = collections.defaultdict(list)
    for row in rows:
        shape = re.match(r"(h\d+ l\d+)", row["row"])[1]
        split = re.search(r"t(\d+) d(\d+) p(\d+) b\d+/(\d+)", row["row"])
        gpus = int(split[1]) * int(split[2]) * int(split[3])
        groups[(shape, gpus, split[4])].append((row["published"], row["simulated"]))
    found = [tau(of) for of in groups.values() if len(of) >= 3]
    pairs_in_all = sum(pairs for _, pairs in found)
    concordant = sum(value * pairs for value, pairs in found)
    print(f"15, plans of one model on one number of GPUs, {pairs_in_all} pairs: tau {concordant / pairs_in_all:.2f}")


def say(what, errors):
    if not errors:
        print(f"{what:58} no pair")
        return
    size = sorted(abs(e) for e in errors)
    print(f"{what:58} {len(size):3} pairs, off by {100 * sum(size) / len(size):5.1f} % in the mean "
          f"({100 * sum(errors) / len(errors):+.1f} %), worst {100 * size[-1]:.1f} %")


SHAPE = ("model", "layers", "hidden", "seq")
PLAN = ("gpus", "tp", "pp", "vpp", "cp", "dp", "ep", "sharding", "microbatch", "global_batch", "recompute")
WIDE = {"bf16", "fp16"}


def release(run):
    return re.sub(r"_(bf16|fp8|fp16|mxfp8|nvfp4).*", "", run.case).split("_Llama")[0][:14]


def ratio_error(fast, slow):
    return (fast.simulated / slow.simulated) / (fast.published / slow.published) - 1


def precision(all_runs):
    for same_plan in (True, False):
        groups = collections.defaultdict(list)
        for run in all_runs:
            plan = PLAN if same_plan else ("gpus", "global_batch")
            groups[(run.table, release(run), run.software, *run.key("gpu", *SHAPE, *plan))].append(run)
        errors = collections.defaultdict(list)
        for of in groups.values():
            wide = [r for r in of if r.cells["precision"] in WIDE]
            narrow = [r for r in of if r.cells["precision"] not in WIDE]
            for a, b in itertools.product(narrow, wide):
                errors[(a.table, a.cells["precision"])].append(ratio_error(a, b))
        say(f"8 and 4 bits over 16, {'the same plan' if same_plan else 'any plan, the same batch'}",
            [e for of in errors.values() for e in of])
        for (table, kind), of in sorted(errors.items()):
            say(f"  {table} {kind}", of)


def kind_of(gpu):
    found = re.search(r"GB300|GB200|B300|B200|H200|H100|A100", gpu)
    return found[0] if found else gpu


def gpus(all_runs):
    groups = collections.defaultdict(list)
    for run in all_runs:
        if run.table.startswith(("86", "91")):
            continue
        family = "bf16" if run.cells["precision"] in WIDE else "fp8" if "8" in run.cells["precision"] else "fp4"
        groups[(run.table, run.software, family, *run.key(*SHAPE))].append(run)
    errors = collections.defaultdict(list)
    for of in groups.values():
        hopper = [r for r in of if kind_of(r.cells["gpu"]) == "H100"]
        others = [r for r in of if kind_of(r.cells["gpu"]) in ("B200", "GB200")]
        for new in others:
            # The run of H100 that has the nearest number of GPUs.
            near = sorted(hopper, key=lambda r: abs(math.log(float(r.cells["gpus"]) / float(new.cells["gpus"]))))
            if near:
                errors[(new.table, kind_of(new.cells["gpu"]))].append(ratio_error(new, near[0]))
    say("B200 and GB200 over H100, tokens/s and GPU", [e for of in errors.values() for e in of])
    for (table, kind), of in sorted(errors.items()):
        say(f"  {table} {kind}", of)


def compiled(run):
    """Whether a compiler fused the kernels, where a row says so: with and without are two programs."""
    return "eager" not in run.case and ("compile" in run.case or "torch.compile" in run.cells["notes"])


def scaling(all_runs):
    groups = collections.defaultdict(list)
    for run in all_runs:
        if not run.cells["global_batch"] or run.table.startswith("91"):
            continue
        per_gpu = round(float(run.cells["global_batch"]) / float(run.cells["gpus"]), 6)
        plan = [name for name in PLAN if name not in ("gpus", "dp", "global_batch")]
        groups[(run.table, release(run), run.software, compiled(run), per_gpu,
                *run.key("gpu", "precision", *SHAPE, *plan))].append(run)
    errors = collections.defaultdict(list)
    for of in groups.values():
        of.sort(key=lambda r: float(r.cells["gpus"]))
        for run in of[1:]:
            if float(run.cells["gpus"]) > float(of[0].cells["gpus"]):
                errors[run.table].append(run.simulated / of[0].simulated - run.published / of[0].published)
    every = [e for of in errors.values() for e in of]
    say("weak scaling, points of efficiency as %", every)
    for table, of in sorted(errors.items()):
        say(f"  {table}", of)


# ---- table 30 without each of its systems ----

NCCL = [str(HERE / f"{name}.csv") for name in ("30_nccl_tests_published", "31_nccl_intranode_aiconfigurator",
                                               "32_nccl_summary_bars_and_nvls")]
LARGE = 0.15
WEAK = 1.0  # how far a number may be from its siblings, in logarithms
STEPS = 3


def number(value):
    return float(re.match(r"[\d.e-]+", str(value))[0])


def numbers_of_collectives():
    """What was fitted, by path: the value and its unit. And every value of a key, fitted or not, by entry."""
    fitted, of_key = {}, collections.defaultdict(dict)
    for name in ("collective", "nics"):
        entries = tomllib.loads((ROOT / f"models/catalogue/{name}.toml").read_text())
        for kind, of_kind in entries.items():
            for entry, keys in of_kind.items():
                for key, value in keys.items() if isinstance(keys, dict) else ():
                    if not isinstance(value, dict) or isinstance(value["value"], (list, bool)):
                        continue
                    if not re.match(r"[\d.]", str(value["value"])):
                        continue
                    of_key[key][f"{kind}.{entry}.{key}"] = number(value["value"])
                    if str(value.get("source", "")).startswith("fitted"):
                        fitted[f"{kind}.{entry}.{key}"] = (number(value["value"]),
                                                           re.sub(r"^[\d.e-]+", "", str(value["value"])))
    return fitted, of_key


def collectives(railyard):
    """Each system of table 30 with numbers that were fitted without it, from where nothing is known of it: a
    number begins at the median of its siblings, the catalogue's other values of that key; the slopes are those at
    the catalogue's numbers, the errors are run again after each step."""
    from leave_out import solve

    start, of_key = numbers_of_collectives()

    def rows_with(numbers, tables):
        settings = [f"--set=override.{path}={value:.6g}{start[path][1]}" for path, value in numbers.items()]
        return verify(railyard, tables, settings)

    def errors_of(rows):
        return [math.log(r["simulated"] / r["published"]) * (1 if r["quantity"].startswith("us") else -1) for r in rows]

    def bounded(path, log):
        share = path.endswith(("efficiency", "share", "fraction"))
        return min(0.0, log) if share else log

    as_is = rows_with({}, NCCL)
    base = errors_of(as_is)
    system = [r["row"].split()[0] if r["table"].startswith("30") else r["table"] for r in as_is]
    slopes = {}
    for path, (value, _) in start.items():
        moved = errors_of(rows_with({path: value * math.exp(-0.02)}, NCCL))
        change = [(b - a) / 0.02 for a, b in zip(moved, base)]
        if any(abs(s) > 1e-6 for s in change):
            slopes[path] = change
    paths = list(slopes)
    print(f"{len(base)} rows, {len(paths)} numbers that move some")
    prior = {}
    for path in paths:
        others = [math.log(v) for other, v in of_key[path.split(".")[-1]].items() if other != path and v > 0]
        prior[path] = statistics.median(others) if others else math.log(start[path][0])
    left_out = []
    with open(NCCL[0]) as file:
        over = {row["id"]: "inside a domain" if row["nodes"] == "1" or row["device"].startswith("GB") else
                "over InfiniBand" if "IB" in row["network"] else "over another transport"
                for row in csv.DictReader(line for line in file if not line.startswith("#"))}
    for out in sorted({s for s, r in zip(system, as_is) if r["table"].startswith("30")}):
        kept = [i for i, s in enumerate(system) if s != out]
        told = {p: sum(slopes[p][i] ** 2 for i in kept) / LARGE**2 for p in paths}
        # A number that many rows depend on starts at its fitted value; others start at their prior.
        at = {p: math.log(start[p][0]) if told[p] > 1 else prior[p] for p in paths}
        for _ in range(STEPS):
            errors = errors_of(rows_with({p: math.exp(v) for p, v in at.items()}, NCCL))
            weight = {i: 1 / LARGE**2 / max(1.0, abs(errors[i]) / LARGE) for i in kept}
            matrix, right = [], []
            for a in paths:
                right.append(-sum(weight[i] * slopes[a][i] * errors[i] for i in kept) - (at[a] - prior[a]) / WEAK**2)
                matrix.append([sum(weight[i] * slopes[a][i] * slopes[b][i] for i in kept) for b in paths])
                matrix[-1][len(matrix) - 1] += 1 / WEAK**2
            for path, step in zip(paths, solve(matrix, right)):
                at[path] = bounded(path, at[path] + max(-0.5, min(0.5, step)))
        rows = [r for r in rows_with({p: math.exp(v) for p, v in at.items()}, NCCL[:1]) if r["row"].split()[0] == out]
        of = []
        for r in rows:
            error = r["simulated"] / r["published"] - 1
            size = int(re.search(r"(\d+) B", r["row"])[1])
            left_out.append((size, error, *r.get("model_error", (0, 0)), over[out], out))
            if size >= 64 << 20:
                of.append(abs(error))
        if of:
            of.sort()
            print(f"  {out:32} {len(of):3} rows from 64 MiB, median {100 * of[len(of) // 2]:5.1f} %, worst "
                  f"{100 * of[-1]:.1f} %", flush=True)
    every = sorted(abs(error) for size, error, *_ in left_out if size >= 64 << 20)
    print(f"30 with each system left out, {len(every)} rows from 64 MiB: median {100 * every[len(every) // 2]:.1f} %, "
          f"nine tenths within {100 * every[math.ceil(0.9 * len(every)) - 1]:.1f} %")
    for kind in sorted(set(over.values())):
        for name, least, most in (("below 1 MiB", 0, 1 << 20), ("below 1 GiB", 1 << 20, 1 << 30), ("from 1 GiB", 1 << 30, 1 << 60)):
            of = sorted(math.expm1(abs(math.log1p(e))) for size, e, _, _, of_kind, _ in left_out if of_kind == kind and least <= size < most)
            if of:
                print(f"  {kind}, {name}: {len(of)} rows, half within {100 * of[len(of) // 2]:.1f} %, nine tenths "
                      f"within {100 * of[math.ceil(0.9 * len(of)) - 1]:.1f} %")
    said = [(abs(math.log1p(error)), half, most) for _, error, half, most, *_ in left_out if half > 0]
    if said:
        inside = [sum(off <= math.log1p(width[i]) for off, *width in said) for i in (0, 1)]
        print(f"30 with each system left out, {len(said)} rows of any size: {100 * inside[0] / len(said):.1f} % inside "
              f"the model error's 50 %, {100 * inside[1] / len(said):.1f} % inside its 90 %")
    # The same with widths from the other systems of a kind alone.
    inside = [0, 0]
    for _, error, _, _, kind, system in left_out:
        others = sorted(abs(math.log1p(e)) for _, e, _, _, k, s in left_out if k == kind and s != system)
        for i, share in enumerate((0.5, 0.9)):
            inside[i] += abs(math.log1p(error)) <= others[math.ceil(share * len(others)) - 1]
    print(f"with widths from the other systems: {100 * inside[0] / len(left_out):.1f} % inside their 50 %, "
          f"{100 * inside[1] / len(left_out):.1f} % inside their 90 %")


def main():
    railyard, wanted = sys.argv[1], sys.argv[2:] or ["plans", "precision", "gpus", "scaling", "collectives"]
    all_runs = runs(railyard) if set(wanted) - {"collectives"} else []
    for what in wanted:
        if what == "plans":
            plans(railyard, all_runs)
        elif what == "collectives":
            collectives(railyard)
        else:
            {"precision": precision, "gpus": gpus, "scaling": scaling}[what](all_runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
