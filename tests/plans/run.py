#!/usr/bin/python3
"""'railyard plan', 'calc memory' and 'run' say the same of a plan's memory and parameters.

usage: run.py RAILYARD

For every model of the catalogue and plans at random: the memory per GPU that the three print, and the
checkpoint, whose bytes are the parameters'. A given step is planned like a modelled one, and what 'plan'
calls the best takes as long in 'run' as it says, on either network.
"""

import json
import pathlib
import random
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))

from checks import Program  # noqa: E402

PLANS_EACH = 4
TRIES_MAX = 60
SCENARIO = """
[run]
duration = "1 min"
replicas = 1
failures = false
[cluster]
node = "dgx_b200"
nodes = 16
[job]
model = "{model}"
[job.checkpoint]
mode = "none"
"""
# The keys of [job.parallel] on which memory depends.
OPTIONS = ("tensor", "context", "pipeline", "expert", "shard_ranks", "interleave", "microbatch", "zero", "recompute",
           "sequence_length", "expert_imbalance", "images")


def random_plan(draw, mixture, sees):
    plan = {"tensor": draw.choice([1, 2, 4, 8]), "context": draw.choice([1, 2]), "pipeline": draw.choice([1, 2, 4]),
            "expert": draw.choice([1, 2, 4, 8]) if mixture else 1, "microbatch": draw.choice([1, 2]),
            "zero": draw.choice([0, 1, 2, 3]), "sequence_length": draw.choice([1024, 2048, 4096]),
            "recompute": draw.choice(["none", "selective", "elementwise", "full"])}
    if plan["zero"] > 0 and draw.random() < 0.5:
        plan["shard_ranks"] = 8
    if plan["pipeline"] > 1 and draw.random() < 0.5:
        plan["interleave"] = 2
    if mixture:
        plan["expert_imbalance"] = draw.choice([1.0, 1.3])
    if sees:
        plan["images"] = draw.choice([0.0, 0.5, 1.0, 3.0])
    plan["data"] = 128 // (plan["tensor"] * plan["context"] * plan["pipeline"])
    plan["global_batch"] = 8 * plan["data"] * plan["microbatch"]
    return plan


def settings(plan):
    return [part for key, value in plan.items() for part in ("--set", f"job.parallel.{key}={value}")]


def compare(program, scenario, model, plan):
    """Nothing when the model can't be split so: then all three refuse."""
    options = [f"--{key.replace('_', '-')}={plan[key]}" for key in OPTIONS if key in plan]
    code, calculation, calc_error = program.run("calc", "memory", "--model", model, "--gpu-node", "dgx_b200",
                                                f"--data={plan['data']}", "--microbatches=8", *options)
    plan_code, planned, plan_error = program.run("plan", scenario, "--json", *settings(plan))
    assert code == plan_code, (plan, calc_error, plan_error)
    if code != 0:
        return False
    calculated = float(re.search(r"total +([\d.]+) GB", calculation)[1])
    memory = json.loads(planned)["given"]["memory_bytes"]
    assert memory > 0 and abs(memory * 1e-9 - calculated) <= 0.0051, (model, plan, memory, calculated)
    code, ran, error = program.run("run", scenario, *settings(plan))
    fits = float(re.search(r"memory ([\d.]+) of", ran)[1]) if code == 0 else None
    assert fits is None or abs(memory * 1e-9 - fits) <= 0.051, (model, plan, memory, fits)
    assert (fits is not None) == ("too much" not in calculation), (model, plan, error)
    return True


def check_memory(program, folder):
    models = re.findall(r"(?m)^\[model\.(\w+)\]", (ROOT / "models/catalogue/models.toml").read_text())
    draw = random.Random(3)
    for model in models:
        scenario = folder / f"{model}.toml"
        scenario.write_text(SCENARIO.format(model=model))
        listed = program.text("list", "model", model)
        mixture, sees = "experts" in listed, "vision_layers" in listed
        compared = 0
        for _ in range(TRIES_MAX):
            compared += compare(program, scenario, model, random_plan(draw, mixture, sees))
            if compared == PLANS_EACH:
                break
        assert compared == PLANS_EACH, f"{model}: {compared} plans"
    return len(models)


def check_given_step(program, folder):
    """With job.step.time, and with nothing that ends a campaign."""
    scenario = folder / "given.toml"
    scenario.write_text(SCENARIO.format(model="llama2_13b").replace('duration = "1 min"', ""))
    modelled = json.loads(program.text("plan", scenario, "--json", "--set", "job.parallel.tensor=8"))
    given = json.loads(program.text("plan", scenario, "--json", "--set", "job.parallel.tensor=8",
                                "--set", "job.step.time=7 s"))
    assert given["given"].pop("measured_step_s") == 7
    # What other software would make of a step is said of one that is modelled.
    assert modelled.pop("software")["stacks"] > 1 and "software" not in given
    for out in (modelled, given):
        del out["cpu_s"]
    assert given == modelled


def check_best(program):
    for fidelity in ("analytic", "flow"):
        scenario = "scenarios/studies/rail_vs_fat_tree.toml"
        run = ["--set", f"run.fidelity={fidelity}", "--set", "cluster.nodes=16"]
        out = json.loads(program.text("plan", scenario, "--json", *run))
        assert out["fidelity"] == fidelity and out["mfu_peak"]["precision"] == "bf16"
        splits = {tuple(best[key] for key in ("tensor", "context", "pipeline", "data", "expert"))
                  for best in out["best"]}
        assert len(splits) == len(out["best"]) == 5
        for best in out["best"]:
            plan = {key: best[key] for key in ("tensor", "context", "pipeline", "data", "expert", "interleave",
                                               "microbatch", "zero", "recompute", "shard_ranks")}
            ran = json.loads(program.text("run", scenario, "--json", "--replicas", 1, *run, *settings(plan)))
            step = ran["metrics"]["step_time"]["mean"]
            assert abs(step - best["step_s"]) < 1e-6 * step, (fidelity, plan, step, best["step_s"])
            assert best["step_s"] >= best["ideal_network_step_s"]


def main():
    program = Program(sys.argv[1], ROOT)
    with tempfile.TemporaryDirectory() as folder:
        count = check_memory(program, pathlib.Path(folder))
        check_given_step(program, pathlib.Path(folder))
    check_best(program)
    print(f"memory of {count} models, given steps and best plans agree")


if __name__ == "__main__":
    main()
