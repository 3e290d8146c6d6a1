#!/usr/bin/python3
"""Files that people have, and what 'railyard import' makes of each, or why it refuses it.

    run.py PATH_TO_RAILYARD [--update]

A case is NAME.args, one argument per line ({out}: an empty folder), run in this folder, and NAME.expected: 'exit
CODE', standard output, standard error, then the files in {out} by name, byte for byte. --update writes what comes out today: read the difference.
Figures that are known from elsewhere are checked below. Where ../shared/formats/samples is beside the checkout,
every file of others that is in it is tried, too (samples.py).
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import samples

FOLDER = pathlib.Path(__file__).resolve().parent
# What the models' own pages say, in 1e9.
PARAMETERS = {"hf_qwen3_8b": 8.19, "hf_qwen3_235b": 235, "hf_deepseek_v3": 671, "hf_mixtral_8x7b": 46.7,
              "hf_gemma_7b": 8.54, "hf_gpt_oss_120b": 116.8, "hf_llama_checked": 8.03, "hf_nemotron_h_8b": 8.1,
              "hf_llama4_maverick": 400, "hf_qwen3_next": 80}

# Cases that make parts of scenarios.
PARTS = ("hf_", "tt_", "slurm_", "ev_", "jobs_", "mg_", "net_", "sonic_", "xid_", "node_", "nic_", "ki_steps", "ki_jitter")


def of_families(railyard):
    """A model of each family (a line of families.jsonl): its config.json, and the 1e9 parameters that are printed of it."""
    for line in (FOLDER / "families.jsonl").read_text().splitlines():
        model = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "config.json"
            config.write_text(json.dumps(model["config"], indent=1))
            _, out, err = run(railyard, ["import", "huggingface", str(config), "--sequence-length", "4096", "--name", "mine",
                                          *model.get("options", [])])
        count = re.search(r"has ([\d.e+]+) parameters", out)
        if not count or abs(float(count[1]) / 1e9 / model["published"] - 1) > 0.01:
            yield f"{model['name']}: {count and count[1]} parameters, expected {model['published']}e9\n{err}"


def run(railyard, arguments):
    done = subprocess.run([railyard] + arguments, cwd=FOLDER, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def problems(railyard, case, update):
    with tempfile.TemporaryDirectory() as folder:
        arguments = [line.replace("{out}", folder) for line in case.read_text().splitlines()]
        code, out, err = run(railyard, arguments)
        written = {path.name: path.read_text() for path in sorted(pathlib.Path(folder).iterdir())}
    found = f"exit {code}\n{out}{err}".replace(folder, "{out}")
    found += "".join(f"--- {name}\n{text}" for name, text in written.items())
    expected = case.with_suffix(".expected")
    if update:
        expected.write_text(found)
    elif not expected.exists() or expected.read_text() != found:
        yield f"{case.stem}: not what {expected.name} says:\n{found}"
    if case.stem in PARAMETERS:
        count = re.search(r"has ([\d.e+]+) parameters", out)
        if not count or abs(float(count[1]) / 1e9 / PARAMETERS[case.stem] - 1) > 0.01:
            yield f"{case.stem}: {count and count[1]} parameters, expected {PARAMETERS[case.stem]}e9"
    if code == 0 and case.stem.startswith("table_"):
        yield from cannot_be_verified(railyard, case.stem, written)
    if code == 0 and case.stem.startswith(PARTS):
        yield from cannot_be_included(railyard, case.stem, written or {"part.toml": out})


def cannot_be_verified(railyard, name, written):
    """A table of measurements must be one that 'verify' reads, each row of it, by the file beside it."""
    with tempfile.TemporaryDirectory() as folder:
        for file, text in written.items():
            (pathlib.Path(folder) / file).write_text(text)
        code, out, err = run(railyard, ["verify", str(pathlib.Path(folder) / "mine.csv")])
        rows = sum(not line.startswith("#") for line in written["mine.csv"].splitlines()) - 1
        if code != 0 or rows < 1 or not re.search(rf" {rows} +{rows} ", out):
            yield f"{name}: can't be verified: {out}{err}"


def cannot_be_included(railyard, name, files):
    """What was imported must be a part that a scenario can include and run on."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for file, text in files.items():
            (folder / file).write_text(text)
        part_name = next(file for file in files if file.endswith(".toml"))
        part = files[part_name]
        (folder / "all.toml").write_text(f'include = ["{part_name}"]\n' + around(part))
        code, _, err = run(railyard, ["check", str(folder / "all.toml")])
        if code != 0:
            yield f"{name}: can't be included: {err}"


def around(part):
    """The rest of a scenario that a part needs."""
    nodes = 8 if "megatron" in part or "nemo" in part else 128
    cluster = "" if "\nnodes = " in part else f"[cluster]\nnodes = {nodes}\n"
    run_for = '[run]\nduration = "1 h"\nreplicas = 1\n'
    if "\n[job]" in part:
        return run_for + cluster + '[job.checkpoint]\nmode = "none"\n'
    if "\n[jobs]" in part:
        return run_for + cluster + "[scheduler]\n"
    if "\n[scheduler" in part:
        return run_for + cluster + '[[jobs.kind]]\nname = "any"\nrate = "1 /h"\ngpus = 8\n'
    if "[job.parallel]" in part:
        return run_for + cluster + '[job]\nmodel = "llama2_7b"\n'
    if "[model.mine]" in part:
        plan = '[job.parallel]\ntensor = 8\nzero = 3\nrecompute = "full"\n'
        return run_for + cluster + f'[job]\nmodel = "mine"\n{plan}'
    return run_for + cluster + '[job]\nmodel = "llama2_7b"\n'


def main():
    railyard = str(pathlib.Path(sys.argv[1]).resolve())
    cases = sorted(FOLDER.glob("*.args"))
    wrong = 0
    for case in cases:
        for problem in problems(railyard, case, "--update" in sys.argv[2:]):
            print(problem)
            wrong += 1
    for problem in of_families(railyard):
        print(problem)
        wrong += 1
    tried = 0
    for problem in samples.problems(railyard):
        tried += problem is None
        if problem is not None:
            print(problem)
            wrong += 1
    print(f"{tried} samples" if tried else "no samples beside the checkout")
    print(f"{len(cases)} cases, {wrong} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
