#!/usr/bin/python3
"""Runs every scenario that ships, small, and compares its outcome with the recorded one.

usage: run.py RAILYARD [--update]

A golden file is readable: the digest of the outcome, and the means a person would look at. When a change
moves one on purpose, --update rewrites it and the commit says what moved and why.
"""

import fnmatch
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests import small  # noqa: E402
from tests.checks import Tally  # noqa: E402

GOLDEN = ROOT / "tests" / "golden"
REPLICAS = "3"
MARKER = "<!-- keys: written by tests/golden/run.py --update -->"
SHOWN = ["goodput", "ettr", "mfu_step", "step_time", "steps", "interruptions", "checkpoints", "wall_time",
         "utilisation", "jobs_completed", "wait_mean", "jct_mean"]


def metric_names(railyard):
    """What metrics are called, as patterns, and their units."""
    table = subprocess.run([railyard, "list", "metrics"], capture_output=True, text=True, check=True).stdout
    return [tuple(re.split(r"  +", line.strip())[:2]) for line in table.splitlines()[1:]]


def without_a_name(metrics, names):
    """Metrics that no name fits, or whose unit is not the name's."""
    for metric, value in metrics.items():
        unit = next((unit for pattern, unit in names if fnmatch.fnmatchcase(metric, pattern)), None)
        if unit != value["unit"]:
            yield f"{metric} is in '{value['unit']}', 'railyard list metrics' says '{unit}'"


def outcome_of(railyard, scenario, names):
    path = scenario.relative_to(ROOT)
    command = [railyard, "run", str(path), "--json", "--no-estimates", "--replicas", REPLICAS, *small.arguments(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        return f"exit {done.returncode}\n{done.stderr}"
    result = json.loads(done.stdout)
    lines = [f"digest {result['digest']}"]
    metrics = result["metrics"]
    lines += without_a_name(metrics, names)
    lines += [f"{name} {metrics[name]['mean']:.10g}" for name in SHOWN if name in metrics]
    lines += [f"ledger.{name} {value:.10f}" for name, value in result["ledger"].items() if value]
    return "\n".join(lines) + "\n"


def compare(tally, name, golden, found, update):
    if update:
        golden.write_text(found)
    expected = golden.read_text() if golden.exists() else "(nothing recorded)"
    tally.check(found == expected, f"{name}: expected\n{expected}\ngot\n{found}")


def verb_cases(railyard, update, tally):
    """verbs/NAME.args, one argument a line: what the verb prints is verbs/NAME.out."""
    for arguments in sorted((GOLDEN / "verbs").glob("*.args")):
        done = subprocess.run([railyard, *arguments.read_text().splitlines()], cwd=ROOT, capture_output=True,
                              text=True)
        found = done.stdout if done.returncode == 0 else f"exit {done.returncode}\n{done.stderr}"
        compare(tally, arguments.name, arguments.with_suffix(".out"), found, update)


def language_page(railyard):
    """scenarios/README.md with its list of keys as the program prints it now."""
    page = (ROOT / "scenarios" / "README.md").read_text()
    keys = subprocess.run([railyard, "list", "keys"], capture_output=True, text=True, check=True).stdout
    head = page[: page.index(MARKER) + len(MARKER)]
    return f"{head}\n\n```text\n{keys}```\n"


def main():
    railyard = sys.argv[1]
    update = "--update" in sys.argv
    scenarios = sorted((ROOT / "scenarios").rglob("*.toml"))
    tally = Tally()
    wanted = set()
    names = metric_names(railyard)
    for scenario in scenarios:
        name = "_".join(scenario.relative_to(ROOT / "scenarios").with_suffix("").parts)
        golden = GOLDEN / f"{name}.txt"
        wanted.add(golden)
        compare(tally, name, golden, outcome_of(railyard, scenario, names), update)
    page = ROOT / "scenarios" / "README.md"
    if update:
        page.write_text(language_page(railyard))
        schema = subprocess.run([railyard, "list", "schema"], capture_output=True, text=True, check=True).stdout
        (ROOT / "scenarios" / "schema.json").write_text(schema)
    tally.check(page.read_text() == language_page(railyard),
                "scenarios/README.md is not what 'railyard list keys' prints: --update rewrites it")
    verb_cases(railyard, update, tally)
    for stray in set(GOLDEN.glob("*.txt")) - wanted:
        tally.add([f"{stray.name}: no scenario of this name"])
    return tally.end()


sys.exit(main())
