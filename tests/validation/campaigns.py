#!/usr/bin/python3
"""Published trainings from start to end: what `railyard run` says of scenarios/published beside what was printed.

usage: campaigns.py RAILYARD [--json]

campaigns.csv has the figures. A row is "inside" when the published value is in the interval of prediction that holds nine in ten.
"""

import csv
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Answer:
    """What one scenario comes to."""

    def __init__(self, railyard, name):
        done = subprocess.run([railyard, "run", f"scenarios/published/{name}.toml", "--json"], cwd=ROOT,
                              capture_output=True, text=True, check=True)
        out = json.loads(done.stdout)
        self.means = {metric: of["mean"] for metric, of in out["metrics"].items()}
        self.prediction = out.get("prediction", {}).get("answers", {})

    def figure(self, text):
        """Arithmetic on the names of metrics."""
        return eval(compile(text, "campaigns.csv", "eval"), {"__builtins__": {}}, self.means)

    def interval(self, name, value, shrinks):
        """The interval of a figure that goes as the predicted answer does, or as one over it."""
        found = self.prediction.get(name)
        if found is None:
            return None
        low, high = (end / found["value"] for end in found["nine_tenths_within"])
        return (value / high, value / low) if shrinks else (value * low, value * high)


def rows():
    with open(HERE / "campaigns.csv") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def judged(row, value):
    """How far off, as text, and whether that is within the bar."""
    published = float(row["published"])
    if row["bar"] == "at least":
        return "", value >= published
    if row["bar"] == "4 points":
        return f"{value - published:+.1f} points", abs(value - published) <= 4
    off = value / published - 1
    return f"{100 * off:+.1f} %", abs(off) <= 0.1


def main():
    answers = {}
    results = []
    for row in rows():
        name = row["scenario"]
        if name not in answers:
            answers[name] = Answer(sys.argv[1], name)
        value = answers[name].figure(row["figure"])
        off, within = judged(row, value)
        bounds = answers[name].interval(row["interval"], value, row["unit"] == "tokens/s") if row["interval"] else None
        inside = bounds is not None and bounds[0] <= float(row["published"]) <= bounds[1]
        results.append({**row, "simulated": value, "off": off, "within_bar": within, "bounds": bounds, "inside": inside})
    if "--json" in sys.argv:
        print(json.dumps(results))
        return 0
    print("| campaign | figure | published | simulated | off | nine in ten |")
    print("|---|---|---|---|---|---|")
    for r in results:
        bounds = "" if r["bounds"] is None else f"{r['bounds'][0]:.3g} to {r['bounds'][1]:.3g}"
        if r["bounds"] is not None and not r["inside"] and r["bar"] != "at least":
            bounds += ", outside"
        print(f"| {r['scenario']} | {r['quantity']} | {r['published']} {r['unit'] if r['unit'] != '1' else ''} | "
              f"{r['simulated']:.3g} | {r['off']}{'' if r['within_bar'] else ' (!)'} | {bounds} |")
    judgeable = [r for r in results if r["bounds"] is not None and r["bar"] != "at least"]
    print(f"{sum(r['within_bar'] for r in results)} of {len(results)} within their bar, "
          f"{sum(r['inside'] for r in judgeable)} of {len(judgeable)} inside nine in ten")
    return 0


if __name__ == "__main__":
    sys.exit(main())
