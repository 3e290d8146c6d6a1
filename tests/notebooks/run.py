#!/usr/bin/python3
"""Executes every notebook from its first cell to its last, and looks at what came out.

usage: run.py RAILYARD FOLDER    the executed copies go into FOLDER

A notebook passes when no cell fails and at least two of its plots have something on them. The reader
is held against the database by SQL.
"""

import base64
import io
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

import nbformat
from matplotlib import image
from nbconvert.preprocessors import CellExecutionError, ExecutePreprocessor

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
SECONDS_MAX = 120  # a cell


def coloured(png):
    """Pixels of a plot that have a colour: lines, bars and maps have, axes and text are grey."""
    pixels = image.imread(io.BytesIO(base64.b64decode(png)))[:, :, :3]
    return int((pixels.max(axis=2) - pixels.min(axis=2) > 0.2).sum())


def execute(path, folder):
    """What is wrong with the notebook."""
    notebook = nbformat.read(path, as_version=4)
    try:
        ExecutePreprocessor(timeout=SECONDS_MAX, kernel_name="python3").preprocess(
            notebook, {"metadata": {"path": str(NOTEBOOKS)}})
    except CellExecutionError as error:
        return [f"{path.name}: {error}"]
    nbformat.write(notebook, folder / path.name)
    plots = [output.data["image/png"] for cell in notebook.cells for output in cell.get("outputs", [])
             if output.output_type == "display_data" and "image/png" in output.data]
    problems = [f"{path.name}: plot {i} is blank" for i, plot in enumerate(plots) if coloured(plot) < 200]
    if len(plots) < 2:
        problems.append(f"{path.name}: {len(plots)} plots")
    return problems


def read_back(railyard):
    """What railyard says, against the tables."""
    sys.path.insert(0, str(NOTEBOOKS))
    sys.dont_write_bytecode = True
    from railyard import Results, railyard as run
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/out.sqlite"
        run("run", ROOT / "scenarios/hello/first.toml", "--db", path, "--replicas", 3, "--set", "run.seed=5", "--no-estimates")
        results = Results(path)
        plain = sqlite3.connect(path)
        mean = plain.execute("SELECT mean FROM point_metrics WHERE name = 'goodput'").fetchone()[0]
        events = plain.execute("SELECT count(*), max(time_ns) FROM events").fetchone()
        seen = results.events(1)
        if results.metrics().goodput.iloc[0] != mean or results.points().goodput[0] != mean:
            yield "the mean goodput is not the database's"
        if abs(results.replicas("goodput")[1].mean() - mean) > 1e-12 or len(results.replicas("goodput")) != 3:
            yield "the replicas are not the database's"
        if results.points()["run.seed"][0] != "5":
            yield "the settings are not the point's"
        if abs(results.ledger().iloc[0].sum() - 1) > 1e-9:
            yield "the ledger does not add up"
        if len(seen) != events[0] or abs(seen.day.max() * 86400e9 - events[1]) > 1e4:
            yield "the events are not the database's"
        study = pathlib.Path(folder) / "study.toml"
        study.write_text(f'sweep = {{ scenario = "{ROOT}/scenarios/hello/first.toml", replicas = 2, axis = [{{ key = '
                         '"job.checkpoint.interval", values = ["90 min", "0.5 h"] }, { key = "cluster.node", values = '
                         '["dgx_h100"] }] }\n')
        run("sweep", study, "--db", f"{folder}/sweep.sqlite")
        axes = Results(f"{folder}/sweep.sqlite").axes(1)
        if list(axes["job.checkpoint.interval"]) != [90, 30] or list(axes["cluster.node"]) != ["dgx_h100"] * 2:
            yield f"the axes are not the study's: {axes}"
        plain.close()
        writer = sqlite3.connect(path)
        writer.execute("UPDATE meta SET value = '1' WHERE key = 'schema_version'")
        writer.commit()
        try:
            Results(path)
            yield "a database of another version is read all the same"
        except ValueError:
            pass


def through_python(program):
    """What Scenario gives, against what the program prints."""
    import railyard
    shown = []
    railyard.ProgressLine.show = lambda line, text: shown.append(text)
    base = railyard.Scenario(ROOT / "scenarios/hello/first.toml").set("run.replicas", 4)
    printed = json.loads(subprocess.run(
        [program, "run", base.path, "--set", "run.replicas=4", "--json", "--no-estimates"], capture_output=True,
        text=True, check=True).stdout)
    if base.run().metric("goodput")["mean"][0] != printed["metrics"]["goodput"]["mean"]:
        yield "Scenario.run: not the goodput that the program prints"
    other = base.set("job.checkpoint.interval", "30 min")
    rows = base.compare(other).comparisons().set_index("metric")
    if len(rows.loc[["goodput"]]) != 1:
        yield f"Scenario.compare: {len(rows.loc[['goodput']])} comparisons of two designs"
    elif rows.loc["goodput", "mean_a"] != printed["metrics"]["goodput"]["mean"] or rows.loc["goodput", "mean_b"] <= 0:
        yield "Scenario.compare: not the designs that were given"
    points = base.sweep({"job.checkpoint.interval": ["30 min", "1 h"], "cluster.nodes": [17, 18]}, replicas=2).points()
    if len(points) != 4 or set(points["cluster.nodes"]) != {"17", "18"}:
        yield f"Scenario.sweep: not the points of its axes: {points}"
    import numpy as np
    import pandas as pd
    swept = base.set("title", "a; b\u00e9").sweep({"cluster.nodes": np.array([17, 18]), "job.checkpoint.mode": ["sync"]})
    if set(swept.points()["job.checkpoint.mode"]) != {"sync"} or set(swept.metric("goodput").replicas) != {4}:
        yield f"Scenario.sweep: not the values of numpy, or not run.replicas: {swept.points()}"
    told = base.compare(base.set("title", "a; b").set("job.checkpoint.interval", pd.Timedelta(minutes=30)))
    if told.comparisons().set_index("metric").loc["goodput", "mean_b"] != rows.loc["goodput", "mean_b"]:
        yield "Scenario.compare: a text with a semicolon, or a time of pandas, is another one"
    for what, wrong, error in (("nothing to compare", lambda: base.compare(), ValueError),
                               ("a text for an axis", lambda: base.sweep({"cluster.node": "dgx_h100"}), TypeError),
                               ("no value", lambda: base.set("cluster.nodes", None), TypeError),
                               ("an unknown metric", lambda: swept.metric("godput"), KeyError),
                               ("a text file", lambda: railyard.Results(base.path), ValueError)):
        try:
            wrong()
            yield f"{what}: taken"
        except error:
            pass
    if base.settings != ("run.replicas=4",):
        yield "Scenario.set changed the scenario that it was called on"
    base.run(replicas=20000)
    if not any(re.search(r"\d+/20000, .* left", text) for text in shown):
        yield f"no progress was shown: {shown[:3]}"
    try:
        base.set("job.nods", 3).run()
        yield "an unknown key was accepted"
    except railyard.RailyardError as error:
        if error.code != 2 or "did you mean 'nodes'" not in str(error):
            yield f"the program's error is not passed on: {error}"


def main():
    railyard, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    os.environ["RAILYARD"] = str(railyard)
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # no debugger is meant to stop here
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    problems = list(read_back(railyard)) + list(through_python(railyard))
    notebooks = sorted(NOTEBOOKS.glob("*.ipynb"))
    for path in notebooks:
        begun = time.monotonic()
        found = execute(path, folder)
        problems += found
        print(f"{'FAIL' if found else 'ok  '} {path.name} ({time.monotonic() - begun:.1f} s)")
    if not notebooks:
        problems.append("there are no notebooks")
    for problem in problems:
        print(problem)
    print(f"{len(notebooks) + 1 - len(problems)} passed, {len(problems)} failed")
    return 1 if problems else 0


sys.exit(main())
