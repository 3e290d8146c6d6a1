#!/usr/bin/python3
"""How far published steps are off when they, their software or their kind of GPU are left out of the fit.

usage: leave_out.py RAILYARD

Own numbers of a stack (those that software.toml calls fitted) start from the mean over the other stacks, with their
spread as prior; what all stacks have in common starts from the catalogue, with its range as prior. Both are fitted by
Gauss-Newton on the logarithms of the rows that are left in, errors beyond 15 % counted less, and the rows left out
are then simulated with them. Rows whose stack is not named are run as the catalogue's unnamed one. Standard library alone; two minutes.
"""

import collections
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
TABLES = sorted(str(table) for table in HERE.glob("[89]*.csv"))
OWN = ["matmul_bf16", "matmul_fp8", "matmul_mxfp8", "matmul_nvfp4", "elementwise", "expert_traffic", "loss_traffic",
       "accumulation_traffic", "piecewise_overlap"]
COMMON = ["step_model.all.tile_prologue", "step_model.all.grouped_efficiency", "step_model.all.overlap_tax",
          "step_model.all.kernel_gap", "step_model.all.unaligned_efficiency"]
LARGE = 0.15
# Rows of these have no dense layer in 16 bits: what tells of their rate there are output layers and experts alone, which
# are held up by other things. They multiply with the same library as the stacks whose rows do tell.
UNTOLD_BF16 = ["mlperf_nvidia_v3", "mlperf_nvidia_v4", "mlperf_nvidia_v5_0", "mlperf_nvidia_v5_1", "nemo_24_07",
               "nemo_25_09", "nemo_26_02", "nemo_26_06", "megatron_core_0_12"]
TOLD_BF16 = ["nemo_25_02", "nemo_25_04"]
LIKE_THEM = 0.03
ONE_MIXTURE = {"software.nemo_25_02.expert_traffic": 0.3}  # of one model, whose experts drop tokens
LIKE = {"early_nemo": "nemo_24_07"}  # training_runs.toml's own stacks: whose numbers they have
SPREAD_LEAST = 0.08  # of a number over the stacks, in logarithms


def catalogue(name):
    return tomllib.loads((ROOT / f"models/catalogue/{name}.toml").read_text())


SOFTWARE = catalogue("software")["software"]
STEP_MODEL = catalogue("step_model")


def number(value):
    return float(re.match(r"[\d.e-]+", str(value))[0])


def unit(value):
    return re.sub(r"^[\d.e-]+", "", str(value))


class Model:
    """The program, with some of the catalogue's numbers replaced."""

    def __init__(self, program):
        self.program = program
        self.units = {path: unit(STEP_MODEL["step_model"]["all"][path.split(".")[-1]]["value"]) for path in COMMON}

    def rows(self, numbers, tables=TABLES):
        settings = [f"--set=override.{path}={value:.6g}{self.units.get(path, '')}" for path, value in numbers.items()]
        done = subprocess.run([self.program, "verify", "--json", *settings, *tables], capture_output=True, text=True,
                              check=True)
        return json.loads(done.stdout)["rows"]

    def errors(self, numbers, tables=TABLES):
        """For each row: the logarithm of how much too long its step is."""
        return [math.log(row["simulated"] / row["published"]) * (1 if row["quantity"].startswith("step") else -1)
                for row in self.rows(numbers, tables)]


def solve(matrix, right):
    """A symmetric positive system, by Cholesky."""
    n = len(right)
    low = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            rest = matrix[i][j] - sum(low[i][k] * low[j][k] for k in range(j))
            low[i][j] = math.sqrt(rest) if i == j else rest / low[j][j]
    x = list(right)
    for i in range(n):
        x[i] = (x[i] - sum(low[i][k] * x[k] for k in range(i))) / low[i][i]
    for i in reversed(range(n)):
        x[i] = (x[i] - sum(low[k][i] * x[k] for k in range(i + 1, n))) / low[i][i]
    return x


class Fit:
    def __init__(self, model, rows):
        self.model = model
        self.stack_of = [LIKE.get(row["software"], row["software"]) for row in rows]
        self.stacks = sorted(set(self.stack_of))
        self.value = {}  # by path, in logarithms
        for stack in self.stacks:
            for key in OWN:
                entry = SOFTWARE[stack][key]
                if entry["source"] == "fitted":
                    self.value[f"software.{stack}.{key}"] = math.log(number(entry["value"]))
        self.range = {}
        for path in COMMON:
            entry = STEP_MODEL["step_model"]["all"][path.split(".")[-1]]
            self.value[path] = math.log(number(entry["value"]))
            self.range[path] = math.log(number(entry["high"]) / number(entry["low"])) / 4
        for kernel, entries in STEP_MODEL["attention_kernel"].items():
            for generation, entry in entries.items():
                if kernel != "flash_2" and generation != "name" and entry["source"] == "fitted":
                    path = f"attention_kernel.{kernel}.{generation}"
                    self.value[path] = math.log(number(entry["value"]))
                    self.range[path] = math.log(number(entry["high"]) / number(entry["low"])) / 4
        self.paths = list(self.value)
        as_is = model.errors({})
        moved = {}
        self.slopes = []  # by path: what a row's error changes by
        for path in self.paths:
            # A stack's own numbers move its own rows alone: all stacks' numbers of a key are moved together.
            kind, stack, key = path.split(".")
            own = kind == "software"
            together = [other for other in self.paths if own and other.split(".")[::2] == [kind, key]] or [path]
            if together[0] not in moved:
                moved[together[0]] = model.errors({other: math.exp(self.value[other] + 0.02) for other in together})
            self.slopes.append([(after - before) / 0.02 if not own or of == stack else 0.0
                                for after, before, of in zip(moved[together[0]], as_is, self.stack_of)])

    def prior(self, without):
        """Where each number starts, and how far it may be from there; `without` is a stack that tells nothing."""
        start, spread = {}, {}
        for path in self.paths:
            parts = path.split(".")
            if parts[0] != "software":
                start[path], spread[path] = self.value[path], self.range[path]
                continue
            others = [self.value[other] for other in self.paths
                      if other.endswith("." + parts[2]) and other.split(".")[1] not in (parts[1], without)
                      and other.startswith("software.")]
            if not others:
                start[path], spread[path] = self.value[path], SPREAD_LEAST
                continue
            mean = sum(others) / len(others)
            start[path] = mean
            spread[path] = max(SPREAD_LEAST, math.sqrt(sum((x - mean) ** 2 for x in others) / len(others)))
            spread[path] = ONE_MIXTURE.get(path, spread[path])
            told = [self.value[f"software.{stack}.matmul_bf16"] for stack in TOLD_BF16 if stack != without]
            if parts[1] in UNTOLD_BF16 and parts[2] == "matmul_bf16":
                start[path], spread[path] = sum(told) / len(told), LIKE_THEM
        return start, spread

    def on(self, kept, without=""):
        """The numbers fitted on these rows."""
        start, spread = self.prior(without)
        x = dict(start)
        for _ in range(4):
            errors = self.model.errors({path: math.exp(v) for path, v in x.items()})
            weight = [0.0 if not keep else 1 / LARGE**2 / max(1.0, abs(e) / LARGE) for e, keep in zip(errors, kept)]
            used = [i for i, w in enumerate(weight) if w > 0]
            right, matrix = [], []
            weighted = [[s[i] * weight[i] for i in used] for s in self.slopes]
            slopes = [[s[i] for i in used] for s in self.slopes]
            kept_errors = [errors[i] for i in used]
            for a, path in enumerate(self.paths):
                right.append(-sum(w * e for w, e in zip(weighted[a], kept_errors))
                             - (x[path] - start[path]) / spread[path] ** 2)
                matrix.append([sum(w * s for w, s in zip(weighted[a], slopes[b])) if b <= a else 0.0
                               for b in range(len(self.paths))])
                matrix[a][a] += 1 / spread[path] ** 2
            for path, step in zip(self.paths, solve(matrix, right)):
                x[path] += max(-0.3, min(0.3, step))
        return {path: math.exp(v) for path, v in x.items()}


def quantile(values, share):
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def say(what, errors, experts):
    """Mean sizes, and what holds half and nine tenths, in per cent."""
    size = [math.expm1(abs(e)) for e in errors]
    line = f"{what:42}{100 * sum(size) / len(size):6.1f} %"
    for kind, word in ((False, "dense"), (True, "experts")):
        of = [s for s, e in zip(size, experts) if e == kind]
        if of:
            line += (f"   {word} {100 * sum(of) / len(of):5.1f} %, half {100 * quantile(of, 0.5):5.1f} %, "
                     f"nine tenths {100 * quantile(of, 0.9):5.1f} %")
    print(line)


def coverage(what, errors, experts, stack_of):
    """The share inside widths that were learned from the same errors of the other stacks."""
    inside = collections.Counter()
    widths = []
    for stack in set(stack_of):
        for kind in (False, True):
            others = [abs(e) for e, x, s in zip(errors, experts, stack_of) if x == kind and s != stack]
            own = [abs(e) for e, x, s in zip(errors, experts, stack_of) if x == kind and s == stack]
            for share in (0.5, 0.9):
                bound = quantile(others, share)
                inside[share] += sum(e <= bound for e in own)
            widths += [math.expm1(bound)] * len(own)
    print(f"{what:42}{100 * inside[0.5] / len(errors):6.1f} % inside their 50 %, {100 * inside[0.9] / len(errors):.1f} % "
          f"inside their 90 %; half of these within {100 * quantile(widths, 0.5):.1f} %")


def without_generation(model, rows, as_is):
    """A kind of GPU with the means of the others' numbers."""
    generations = [g for g, entry in STEP_MODEL["step_model"].items() if entry.get("measured")]
    gpu_words = {"ampere": "a100", "hopper": "h100|h200", "blackwell": "b200", "blackwell_ultra": "b300"}
    out = {}
    for generation in generations:
        others = [g for g in generations if g != generation]
        mean = {f"step_model.{generation}.sustained_fraction":
                [number(STEP_MODEL["step_model"][g]["sustained_fraction"]["value"]) for g in others]}
        for kernel, entry in STEP_MODEL["attention_kernel"].items():
            mean[f"attention_kernel.{kernel}.{generation}"] = [number(entry[g]["value"]) for g in others]
        errors = model.errors({path: math.exp(sum(map(math.log, v)) / len(v)) for path, v in mean.items()})
        for i, row in enumerate(rows):
            if re.search(gpu_words[generation], row["row"].lower()) and abs(errors[i] - as_is[i]) > 1e-9:
                out[i] = errors[i]
    return out


def without_names(model, folder):
    """Rows whose stack nobody names."""
    text = (HERE / "training_runs.toml").read_text()
    # Its words and releases; the column with what they say stays, for what holds of some stacks only.
    words = re.compile(r'(key = "job\.software"\n.*?)\[table\.words\.values\]\n.*?\n(?=\[\[table\.words\]\])', re.DOTALL)
    description = pathlib.Path(folder) / "training_runs.toml"
    description.write_text(words.sub(r"\1\n", text, count=1))
    return model.errors({}, [path for table in TABLES for path in (str(description), table)])


def main():
    model = Model(sys.argv[1])
    rows = model.rows({})
    as_is = model.errors({})
    fit = Fit(model, rows)
    experts = ["expert all-to-all" in row["parts_s"] for row in rows]
    stack_of = fit.stack_of
    print(f"{len(rows)} rows, {len(fit.stacks)} stacks, {len(fit.paths)} numbers")
    say("nothing left out", as_is, experts)

    by_row = list(as_is)
    for half in (0, 1):
        kept = [i % 2 == half for i in range(len(rows))]
        for i, error in enumerate(model.errors(fit.on(kept))):
            if not kept[i]:
                by_row[i] = error
    say("every other row left out, both ways", by_row, experts)
    coverage("  widths from other stacks", by_row, experts, stack_of)

    by_stack = list(as_is)
    for stack in fit.stacks:
        kept = [s != stack for s in stack_of]
        for i, error in enumerate(model.errors(fit.on(kept, stack))):
            if not kept[i]:
                by_stack[i] = error
    say("each stack left out", by_stack, experts)
    coverage("  widths from other stacks", by_stack, experts, stack_of)
    for stack in fit.stacks:
        of = [e for e, s in zip(by_stack, stack_of) if s == stack]
        print(f"  {stack:40}{100 * sum(math.expm1(abs(e)) for e in of) / len(of):6.1f} %   "
              f"{100 * sum(of) / len(of):+.1f} %, {len(of)} rows")

    with tempfile.TemporaryDirectory() as folder:
        not_named = without_names(model, folder)
    say("no stack named", not_named, experts)
    coverage("  widths from other stacks", not_named, experts, stack_of)

    new_gpu = without_generation(model, rows, as_is)
    say("a kind of GPU with the others' means", list(new_gpu.values()), [experts[i] for i in new_gpu])
    return 0


if __name__ == "__main__":
    sys.exit(main())
