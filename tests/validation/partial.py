#!/usr/bin/python3
"""A cell that is understood in part must not be answered: each of a row's cells that say what was run gets a clause
that nobody knows, and the row must then be unexpressed, with its place.

usage: partial.py RAILYARD ORACLES
"""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
LAWS = FOLDER.parent / "laws" / "tables"
# The cells of a table that are read as text, whole; and rows of each that are tried, spread over the table.
CELLS = {
    "30_nccl_tests_published": ["op", "algo", "gpus", "bytes"],
    "32_nccl_summary_bars_and_nvls": ["op", "algo", "size", "busbw_GBps"],
    "73_oracle_network": ["oracle", "config", "quantity", "value", "unit"],
    "74_oracle_training_arithmetic": ["config", "value"],
    "85_megatron_bridge": ["recompute"],
    "72_oracle_collectives_alpha_beta": ["collective", "n", "bytes", "time_s"],
}
ROWS = 8
CLAUSES = [", proportionally fair above 1 MiB", " x 2"]
# Whole rows that say something else than what a model here answers.
OTHERS = {
    "30_nccl_tests_published": [("algo", "Ring LL up to 1 MiB, NVLS above"), ("algo", "Ring, Tree")],
    "73_oracle_network": [("oracle", "parking lot, 3 hops, proportional fair"),
                          ("config", "long flow + several cross flows per hop, C"), ("config", "k=4 or k=8"),
                          ("config", "C=12.5 GB/s"), ("value", "0.5 to 0.7 C")],
}


def read(name):
    path = next(folder / f"{name}.csv" for folder in (FOLDER, LAWS) if (folder / f"{name}.csv").exists())
    lines = [line for line in path.open() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def verifier(name):
    return [sys.argv[1], "verify"] if (FOLDER / f"{name}.csv").exists() else [sys.argv[2]]


def expressed(name, rows):
    """By row: whether a figure is printed for it. Each is a table of its own, so that no other answers for it."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i, row in enumerate(rows):
            paths.append(pathlib.Path(folder) / f"{name[:2]}_{i}.csv")
            with paths[-1].open("w", newline="") as file:
                writer = csv.DictWriter(file, row.keys())
                writer.writeheader()
                writer.writerow(row)
        done = subprocess.run([*verifier(name), "--json", *map(str, paths)], capture_output=True, text=True)
        # 4: outside the tolerance of the whole table, which a few of its rows need not keep; 2: a table without a row that is expressed.
        refused = done.returncode == 2 and "so nothing was compared" in done.stderr
        if done.returncode not in (0, 4) and not refused:
            sys.exit(done.stderr)
        answered = {row["table"] for row in json.loads(done.stdout or '{"rows": []}')["rows"]}
        return [path.stem in answered for path in paths]


def main():
    passed = failed = 0
    for name, columns in CELLS.items():
        rows = read(name)
        rows = rows[:: max(1, len(rows) // ROWS)] if name[:2] != "73" else rows
        rows = [row for row, known in zip(rows, expressed(name, rows)) if known]
        wrong = [(column, row[column] + clause, {**row, column: row[column] + clause})
                 for row in rows for column in columns for clause in CLAUSES]
        wrong += [(column, text, {**row, column: text}) for row in rows for column, text in OTHERS.get(name, [])
                  if row[column] != text]
        for (column, text, _), answered in zip(wrong, expressed(name, [row for _, _, row in wrong])):
            if answered:
                failed += 1
                print(f"{name}: {column} = '{text}' is answered")
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


sys.exit(main())
