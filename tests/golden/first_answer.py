#!/usr/bin/python3
"""The program that has the verb `run` alone, which tools/railyard builds first, answers as the whole program does.

usage: first_answer.py RAILYARD RAILYARD_RUN
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# One job with failures and a store, many jobs, and one that isn't there; with the exit codes to expect.
SCENARIOS = {"scenarios/studies/llama3_405b_54_days.toml": 0, "scenarios/studies/noisy_neighbours.toml": 0,
             "scenarios/studies/no_such_file.toml": 2}


def answer(program, scenario):
    """Exit code, result without the one thing that is about this machine, and messages."""
    done = subprocess.run([program, "run", scenario, "--replicas", "2", "--json"], cwd=ROOT, capture_output=True, text=True)
    result = json.loads(done.stdout) if done.returncode == 0 else {}
    result.pop("cpu_s", None)
    return done.returncode, result, done.stderr


wrong = False
for scenario, code in SCENARIOS.items():
    whole, first = (answer(program, scenario) for program in sys.argv[1:3])
    if whole != first or first[0] != code:
        print(f"{scenario}: exit codes {whole[0]} and {first[0]}, expected {code}; the answers "
              f"{'agree' if whole == first else 'differ'}")
        wrong = True
sys.exit(wrong)
