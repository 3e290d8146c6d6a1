#!/usr/bin/python3
"""One job is one job, written either way: every scenario with a [job], rewritten as the [[jobs.kind]] of
scheduler.kind = "dedicated", has the digest that is recorded for it.

usage: dedicated.py RAILYARD
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests import small  # noqa: E402
from tests.checks import Tally  # noqa: E402

GOLDEN = ROOT / "tests" / "golden"
NAME = 'name = "the job"\n'


def as_kind(text):
    """The same with the job's tables under jobs.kind."""
    inner = re.sub(r"^(\[\[?)job\.", r"\1jobs.kind.", text, flags=re.M)
    if re.search(r"^\[job\]", inner, flags=re.M):
        inner = re.sub(r"^\[job\].*\n", "[[jobs.kind]]\n" + NAME, inner, flags=re.M)
        return inner + '\n[scheduler]\nkind = "dedicated"\n'
    first = re.search(r"^\[\[?jobs\.kind\.", inner, flags=re.M).start()
    return f'{inner[:first]}[[jobs.kind]]\n{NAME}\n{inner[first:]}\n[scheduler]\nkind = "dedicated"\n'


def digest_of(railyard, scenario, tree):
    arguments = small.arguments(pathlib.Path("scenarios") / scenario.relative_to(tree))
    done = subprocess.run([railyard, "run", str(scenario), "--json", "--no-estimates", "--replicas", "3", *arguments],
                          capture_output=True, text=True)
    return json.loads(done.stdout)["digest"] if done.returncode == 0 else done.stderr


def main():
    railyard = os.path.abspath(sys.argv[1])
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "scenarios"
        shutil.copytree(ROOT / "scenarios", tree)
        jobs = {}
        for scenario in sorted(tree.rglob("*.toml")):
            name = "_".join(scenario.relative_to(tree).with_suffix("").parts)
            text = scenario.read_text()
            golden = GOLDEN / f"{name}.txt"
            phased = re.search(r"^\[\[phase\]\]", text, flags=re.M)  # has one job, no scheduler
            if golden.exists() and not phased and re.search(r"^\[\[?job[.\]]", text, flags=re.M):
                scenario.write_text(as_kind(text))
                jobs[name] = scenario
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            found = pool.map(lambda scenario: digest_of(railyard, scenario, tree), jobs.values())
            for name, digest in zip(jobs, found):
                recorded = (GOLDEN / f"{name}.txt").read_text().split()[1]
                tally.check(digest == recorded, f"{name}: as a kind of jobs {digest}, as a [job] {recorded}")
    return tally.end()


sys.exit(main())
