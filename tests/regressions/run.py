#!/usr/bin/python3
"""Wrong answers that the program once gave, asked for again: each a command and what is right.

    run.py PATH_TO_RAILYARD [NAME...]

Each case is a function below; it gets the program and an empty folder. What crashed, was lost or was not escaped
is in tests/errors, tests/sweep and tests/report; what the exact oracles are asked is in tests/validation/partial.py.
"""

import csv
import json
import pathlib
import re
import sqlite3
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))

import checks  # noqa: E402
from checks import check  # noqa: E402

DENSE = """
[run]
replicas = 2
duration = "1 day"
[cluster]
nodes = 8
[job]
model = "llama2_13b"
checkpoint = { mode = "sync", interval = "1 h" }
[job.parallel]
tensor = 8
global_batch = 512
[failures]
profile = "none"
"""
MIXTURE = """
[run]
replicas = 1
duration = "1 h"
[cluster]
node = "dgx_b200"
nodes = 16
[job]
model = "mixtral_8x7b"
checkpoint = { mode = "sync", interval = "10 min" }
[job.parallel]
tensor = 4
pipeline = 2
global_batch = 512
sequence_length = 4096
[failures]
profile = "none"
"""
HASHED = """
[run]
replicas = 8
duration = "1 h"
fidelity = "flow"
[cluster]
nodes = 32
[fabric.compute]
kind = "roce"
topology = "fat_tree"
leaf = "sn5600_spectrum4"
nodes_per_leaf = 4
[job]
model = "llama2_70b"
checkpoint = { mode = "none" }
[job.parallel]
tensor = 8
global_batch = 256
overlap_data = false
[failures]
profile = "none"
"""
MANY = """
[run]
replicas = 2
duration = "10 day"
[cluster]
nodes = 10
[scheduler]
[[jobs.kind]]
name = "j"
gpus = 8
rate = "100 /day"
work = "24 h"
"""


def near(what, expected, found, tolerance=1e-6):
    check(abs(found - expected) <= tolerance * abs(expected), f"{what}: expected {expected:.9g}, found {found:.9g}")


class Program(checks.Program):
    seconds_max = 60

    def refused(self, *arguments):
        code, _, stderr = self.run(*arguments)
        check(code == 2 and "error: " in stderr, f"{' '.join(map(str, arguments))}: exit {code}, where an error was due\n{stderr}")
        return stderr

    def json(self, *arguments):
        return json.loads(self.text(*arguments, "--json"))

    def metric(self, name, *arguments):
        return self.json("run", *arguments, "--no-estimates")["metrics"][name]["mean"]

    def file(self, name, text):
        (self.folder / name).write_text(text)
        return name


def changed(*pairs):
    return [part for pair in pairs for part in ("--set", pair)]


def cell(text, row):
    """The first number of a table's row."""
    found = re.search(rf"(?m)^ *{re.escape(row)} +(-?[\d.]+)", text)
    check(found, f"no row {row}:\n{text}")
    return float(found[1])


# ---- a model's parameters are its shape's ----


def case_a_shape_has_its_own_memory_checkpoint_and_gradients(program):
    scenario = program.file("dense.toml", DENSE)
    once, twice = (program.text("plan", scenario, "--top", "1", *more)
                   for more in ((), changed("override.model.llama2_13b.layers=80")))
    # Two vocabularies of 32,000 x 5,120 are not doubled.
    for row in ("weights", "gradients"):
        near(row, (2 - 0.025), cell(twice, row) / cell(once, row), 0.003)
    exchange = [next(part["seconds"] for part in program.json("plan", scenario, "--top", "1", *more)["critical_path"]
                     if part["name"] == "gradients and weights") for more in
                (changed("job.parallel.overlap_data=false"),
                 changed("job.parallel.overlap_data=false", "override.model.llama2_13b.layers=80"))]
    near("gradient exchange", 1.975, exchange[1] / exchange[0], 0.02)
    saved = [program.json("storage", scenario, *more)["checkpoint"]["bytes"]
             for more in ((), changed("override.model.llama2_13b.layers=80"))]
    near("checkpoint", 1.975, saved[1] / saved[0], 0.003)


def case_a_mixture_with_other_experts_has_their_weights(program):
    scenario = program.file("mixture.toml", MIXTURE)
    plans = [program.text("plan", scenario, "--top", "1", "--set", f"override.model.mixtral_8x7b.experts={experts}")
             for experts in (4, 8, 16, 64)]
    weights = [cell(plan, "weights") for plan in plans]
    check(0 < weights[0] < weights[1] < weights[2] < weights[3], f"weights in GB by experts: {weights}")
    near("eight more experts and eight once more", 2 * (weights[2] - weights[1]), 2 * 2 * (weights[1] - weights[0]), 0.01)
    huge = program.file("huge.toml", MIXTURE.replace("mixtral_8x7b", "deepseek_v3").replace("pipeline = 2", "pipeline = 1"))
    memory = [program.json("plan", huge, "--top", "1", "--set", f"override.model.deepseek_v3.experts={experts}")["given"]
              ["memory_bytes"] for experts in (256, 512)]
    check(1e12 < 1.5 * memory[0] < memory[1], f"memory by experts: {memory}")


def case_a_printed_count_is_a_check(program):
    scenario = program.file("dense.toml", DENSE)
    for count, right in ((13_000_000_000, True), (13_200_000_000, False), (26_000_000_000, False)):
        setting = changed(f"override.model.llama2_13b.params={count}")
        code, _, stderr = program.run("check", scenario, *setting)
        check((code == 0) == right and ("params" in stderr or right), f"{count} parameters: exit {code}\n{stderr}")


def case_a_mesh_that_says_nothing_of_one_pair_splits_its_links(program):
    for node in ("gh200_4", "mi250x_8"):
        mesh = DENSE.replace("[cluster]", f'[cluster]\nnode = "{node}"').replace("tensor = 8", "tensor = 4")
        scenario = program.file("mesh.toml", mesh)
        code, _, stderr = program.run("check", scenario)
        check(code == 0, f"{node}: exit {code}\n{stderr}")


# ---- experts ----


def case_one_expert_rank_has_no_imbalance(program):
    scenario = program.file("mixture.toml", MIXTURE)
    plans = {(ranks, uneven): program.json("plan", scenario, "--top", "1", *changed(
        f"job.parallel.expert={ranks}", f"job.parallel.expert_imbalance={uneven}"))["given"]
        for ranks in (1, 8) for uneven in (1.0, 1.1, 2.0)}
    for key in ("step_s", "memory_bytes"):
        one = {plans[1, uneven][key] for uneven in (1.0, 1.1, 2.0)}
        check(len(one) == 1, f"{key} with one rank, by imbalance: {sorted(one)}")
        check(plans[8, 1.0][key] < plans[8, 1.1][key] < plans[8, 2.0][key], f"{key} with eight ranks hangs on it")
    calc = program.text("calc", "memory", "--model", "mixtral_8x7b", "--gpu-node", "dgx_b200", "--tensor=4", "--pipeline=2",
                        "--data=16", "--sequence-length=4096", "--microbatches=32")
    near("memory of plan and of calc", cell(calc, "total") * 1e9, plans[1, 1.1]["memory_bytes"], 2e-4)


# ---- saves ----


def case_a_save_to_the_nodes_own_drives_or_memory_is_serialised(program):
    for system in ("local_nvme_raid0", "host_memory"):
        scenario = program.file("own.toml", DENSE + f'[storage]\nsystem = "{system}"\n')
        stalls = []
        for rate in ("0.05 GB/s", "0.5 GB/s", "200 GB/s"):
            setting = changed(f"job.checkpoint.serialization={rate}")
            walls = program.json("storage", scenario, *setting)["checkpoint"]
            longest = max(walls[key] for key in ("bandwidth_s", "metadata_s", "files_s", "serialisation_s"))
            stalls.append(program.metric("checkpoint_time_to_stall_end", scenario, *setting))
            near(f"a save to {system} at {rate}", longest, stalls[-1], 1e-5)
        check(stalls[0] > 5 * stalls[1] > 5 * stalls[2], f"stalls on {system}: {stalls}")


def case_a_save_that_the_end_cuts_off_is_no_save(program):
    # The second save begins 20 s before the end and takes a minute.
    scenario = program.file("cut.toml", """
[run]
replicas = 1
duration = "2 h"
[cluster]
nodes = 1
[job]
step.time = "1 s"
checkpoint = { mode = "sync", size = "240 GB", interval = "58 min" }
[storage]
system = "generic"
servers = 1
server_write_bandwidth = "4 GB/s"
[failures]
profile = "none"
""")
    near("one save", 60, program.metric("checkpoint_time_to_stall_end", scenario, *changed("run.duration=7040 s")), 0.02)


def case_fewer_replicas_wait_for_a_save_as_long_as_its_walls_say(program):
    scenario = program.file("shrink.toml", DENSE.replace("replicas = 2", "replicas = 4").replace("1 day", "20 day").replace(
        'profile = "none"', """profile = "none"
[job.recovery]
policy = "shrink"
[storage]
system = "generic"
servers = 1
server_write_bandwidth = "4 GB/s"
[[failures.cause]]
name = "node"
remedy = "replace"
mtbf_job = "1 day"
repair_time = "3 day"
"""))
    metrics = program.json("run", scenario, "--no-estimates")["metrics"]
    walls = sum(m["mean"] for name, m in metrics.items()
                if name.startswith("checkpoint_stall_") and name != "checkpoint_stall_time")
    near("all walls, beside the stall", metrics["checkpoint_stall_time"]["mean"], walls, 1e-6)


# ---- luck ----


def case_hashes_are_drawn_for_each_replica(program):
    scenario = program.file("hashed.toml", HASHED)
    step = program.json("run", scenario, "--no-estimates")["metrics"]["step_time"]
    check(step["ci95"][0] < step["mean"] < step["ci95"][1], f"a step on hashed paths, as if it were certain: {step}")
    # What another hash seed says lies in the interval of the first.
    other = program.json("run", scenario, "--no-estimates", "--seed", "2")["metrics"]["step_time"]
    apart = abs(other["mean"] - step["mean"])
    check(apart <= step["ci95"][1] - step["ci95"][0] + other["ci95"][1] - other["ci95"][0], f"{step} and {other}")
    # And so has the difference of two designs.
    pair = program.json("compare", scenario, *changed("fabric.compute.oversubscription=2"), "--no-estimates")
    spread = [arm["metrics"]["step_time"] for arm in pair["arms"]]
    check(all(s["ci95"][0] < s["mean"] < s["ci95"][1] for s in spread), f"{spread}")


def case_verbs_print_the_range_over_draws(program):
    scenario = program.file("hashed.toml", HASHED)
    for verb in (["plan", scenario, "--top", "1"], ["perf", "all_reduce", scenario, "-b", "1G", "-e", "1G"], ["topo", scenario]):
        said = program.text(*verb)
        check(re.search(r"\bdraws\b", said), f"{verb[0]} does not say what draws of the network differ by:\n{said}")


# ---- fabrics that could carry all ----


def case_few_entropy_values_are_as_many_hashed_paths(program):
    scenario = program.file("hashed.toml", HASHED)

    def step(*settings):
        return program.json("run", scenario, "--no-estimates", *changed("fabric.compute.hash_seed=1", *settings))["metrics"]["step_time"]["mean"]

    values = [step("fabric.compute.kind=ultra_ethernet", f"fabric.compute.transport.entropy_values={n}") for n in (1, 4)]
    pairs = [step("fabric.compute.kind=roce", f"fabric.compute.queue_pairs={n}") for n in (1, 4)]
    for which, (value, pair) in enumerate(zip(values, pairs)):
        near(f"values or queue pairs, {which}", pair, value)
    check(step("fabric.compute.kind=ultra_ethernet") < values[0], "one path is as good as all")


def case_adaptive_packets_do_not_collide_on_three_tiers(program):
    scenario = program.file("tiers.toml", HASHED.replace("nodes = 32", "nodes = 512").replace("replicas = 8", "replicas = 1")
                            .replace('kind = "roce"', 'kind = "infiniband"').replace("sn5600_spectrum4", "qm9700_ndr")
                            .replace("nodes_per_leaf = 4\n", "routing = \"adaptive\"\n")
                            .replace("global_batch = 256", "global_batch = 4096"))
    times = [program.json("perf", "all_reduce", scenario, "-b", "1G", "-e", "1G", *changed(
        f"fabric.compute.hash_seed={seed}"))["rows"][0]["time_s"] for seed in (1, 2, 3, 4, 5, 6)]
    check(len(set(times)) == 1, f"an all_reduce of 4,096 GPUs by hash seed: {times}")


# ---- plans ----


def plan_settings(plan):
    return changed(*(f"job.parallel.{key}={plan[key]}" for key in (
        "tensor", "context", "pipeline", "data", "expert", "interleave", "microbatch", "zero", "recompute")))


def case_the_best_plans_take_on_the_network_what_they_say(program):
    scenario = program.file("slow.toml", HASHED + "")
    slow = changed("fabric.compute.oversubscription=8", "job.parallel.overlap_data=true")
    out = program.json("plan", scenario, "--top", "3", *slow)
    for best in out["best"]:
        again = program.json("plan", scenario, "--top", "1", *slow, *plan_settings(best))["given"]
        near("a plan's step", again["step_s"], best["step_s"], 1e-6)
    splits = {tuple(best[key] for key in ("tensor", "context", "pipeline", "data", "expert")) for best in out["best"]}
    check(len(splits) == len(out["best"]), f"near-duplicates: {out['best']}")
    said = program.text("plan", scenario, "--top", "3", *slow)
    check("network: " in said and "ideal network" in said, f"whose network?\n{said}")


def case_a_plan_needs_no_end_of_the_campaign(program):
    scenario = program.file("endless.toml", DENSE.replace('duration = "1 day"', ""))
    check(program.json("plan", scenario, "--top", "1")["given"]["step_s"] > 0, "no step")


def case_a_plan_of_a_given_step_is_that_of_its_model(program):
    scenario = program.file("given.toml", DENSE + '[job.step]\ntime = "9 s"\n')
    given = program.json("plan", scenario, "--top", "1")["given"]
    modelled = program.json("plan", program.file("dense.toml", DENSE), "--top", "1")["given"]
    near("memory", modelled["memory_bytes"], given["memory_bytes"])
    check(0 < given["step_s"] < 1e4 and given["mfu"] and 0 < given["mfu"] < 1, f"{given}")
    check("9 s" in program.text("plan", scenario, "--top", "1"), "the text does not say the measured step")


def case_a_rank_alone_gathers_no_layers(program):
    scenario = program.file("alone.toml", DENSE.replace("nodes = 8", "nodes = 1").replace("global_batch = 512",
                                                                                         "global_batch = 64"))
    whole, alone = (program.json("plan", scenario, "--top", "1", "--set", f"job.parallel.zero={zero}")["given"]["memory_bytes"]
                    for zero in (0, 3))
    near("memory of one rank with ZeRO-3 and without", whole, alone)


def case_an_eight_bit_plan_says_whose_peak_its_mfu_is_of(program):
    scenario = program.file("eight.toml", DENSE)
    said = program.text("plan", scenario, "--top", "1", *changed("job.parallel.precision=fp8"))
    check("of the bf16 peak" in said, said)


def case_nothing_is_achieved_beyond_the_peak(program):
    scenario = program.file("dense.toml", DENSE)
    program.text("check", scenario)
    check("peak" in program.refused("check", scenario, *changed("override.gpu.h100_sxm.bf16_achievable=2000 TFLOPS")), "")


# ---- collectives ----


def case_perf_forces_an_algorithm_in_both_columns(program):
    scenario = program.file("hashed.toml", HASHED)
    analytic = {}
    for names in (("ring", "LL"), ("ring", "Simple"), ("tree", "Simple")):
        rows = program.json("perf", "all_reduce", scenario, "-b", "1M", "-e", "1M", "--algorithm", names[0],
                            "--protocol", names[1])["rows"][0]
        key = next((k for k in rows if "analytic" in k or "ideal" in k), None)
        check(key, f"no column of the ideal network: {rows}")
        analytic[names] = rows[key]
    check(len(set(analytic.values())) == 3, f"the ideal network's column does not hear of --algorithm: {analytic}")


# ---- many jobs ----


def many_failures(program, kind_rate, nodes, rate):
    cause = f'[[failures.cause]]\nname = "job"\nremedy = "restart"\n{rate}\n'
    scenario = program.file("many.toml", MANY.replace("nodes = 10", f"nodes = {nodes}").replace("100 /day", kind_rate) + cause)
    metrics = program.json("run", scenario, "--no-estimates")["metrics"]
    return next(metrics[name]["mean"] for name in ("node_failures", "failures", "interruptions") if name in metrics), metrics


def case_a_rate_per_job_is_each_jobs(program):
    # Ten jobs of a node run all the time: each fails once a day.
    for rate in ('rate_per_job = "1 /day"', 'mtbf_job = "1 day"'):
        failures, metrics = many_failures(program, "100 /day", 10, rate)
        near(f"failures of ten jobs in ten days, {rate}, {sorted(metrics)}", 100, failures, 0.3)


def warned(program, text, *keys):
    name = program.file("warned.toml", text)
    code, _, stderr = program.run("check", name)
    check(code == 0, f"exit {code}\n{stderr}")
    for key in keys:
        check(re.search(rf"warning: {re.escape(key)}", stderr), f"nothing is said of {key}:\n{stderr}")


def case_keys_that_do_nothing_with_many_jobs_are_named(program):
    warned(program, MANY.replace("[run]", '[run]\nfidelity = "packet"').replace(
        "nodes = 10", 'nodes = 10\nacs = true\npeer_to_peer = false\n[[cluster.fault]]\npart = "nic"\nspeed = 0.5')
        + '[fabric.storage]\ntopology = "fat_tree"\n',
        "run.fidelity", "cluster.acs", "cluster.peer_to_peer", "cluster.fault", "fabric.storage")


def case_keys_of_slurm_are_named_under_other_schedulers(program):
    slurm = ('[scheduler.priority]\nage = 1000\n[scheduler.backfill]\nwindow = "2 day"\n[[scheduler.qos]]\nname = "low"\n'
             'gpus_max = 16\n')
    for kind in ("volcano", "kueue", "kubernetes"):
        text = MANY.replace("[scheduler]\n", f'[scheduler]\nkind = "{kind}"\nnodes_per_leaf = 2\n')
        text = text.replace("[[jobs.kind]]", slurm + "[[jobs.kind]]") + "switches = 1\n"
        warned(program, text, "scheduler.priority", "scheduler.backfill", "scheduler.qos", "jobs.kind[0].switches",
               "scheduler.nodes_per_leaf")


def case_no_more_is_used_than_is_held(program):
    scenario = program.file("idle.toml", MANY.replace('rate = "100 /day"', 'rate = "4 /day"').replace(
        "[scheduler]\n", "[scheduler]\nhealth.epilog = false\n") + """
[[failures.cause]]
name = "node"
rate_per_node = "2 /day"
remedy = "reset"
reset_time = "3 h"
detection = "2 h"
""")
    metrics = program.json("run", scenario, "--no-estimates")["metrics"]
    check(metrics["utilisation"]["mean"] <= metrics["occupancy"]["mean"] <= 1,
          f"utilisation {metrics['utilisation']['mean']}, occupancy {metrics['occupancy']['mean']}")


def case_waits_hold_those_who_never_started(program):
    scenario = program.file("overload.toml", MANY.replace("nodes = 10", "nodes = 2"))
    metrics = program.json("run", scenario, "--no-estimates")["metrics"]
    # A hundred come a day, two are done: all others have waited since they came, five days in the mean.
    near("mean wait", 5 * 86400, metrics["wait_mean"]["mean"], 0.1)


def case_a_traces_job_keeps_its_own_name(program):
    program.file("jobs.csv", "job_id,submit_time,gpu_num,duration,state\n7041,0,8,600,COMPLETED\n9023,60,8,600,COMPLETED\n")
    scenario = program.file("trace.toml", '[run]\nreplicas = 1\nduration = "1 day"\n[cluster]\nnodes = 2\n[scheduler]\n'
                            '[jobs]\ntrace = "jobs.csv"\n[[failures.cause]]\nname = "node"\nremedy = "restart"\n'
                            'rate_per_node = "500 /day"\n')
    program.text("run", scenario, "--no-estimates", "--db", "x.db")
    with sqlite3.connect(program.folder / "x.db") as db:
        said = " ".join(str(row) for row in db.execute("SELECT * FROM events"))
    check(re.search(r"\b(7041|9023)\b", said) and not re.search(r"\bjob [01]\b", said), f"jobs' names: {said[:500]}")


# ---- verdicts ----


def decided_by(program, *arguments):
    out = program.json("compare", *arguments, "--no-estimates")
    found = out.get("decided_by", out.get("metric"))
    return (found["metric"] if isinstance(found, dict) else found), out


def case_many_jobs_are_judged_by_what_they_wait(program):
    scenario = program.file("many.toml", MANY.replace("nodes = 10", "nodes = 100"))
    metric, _ = decided_by(program, scenario, *changed("cluster.nodes=80"))
    check(metric not in (None, "goodput"), f"decided by {metric}")


def case_designs_of_other_gpus_are_judged_by_what_they_train(program):
    scenario = program.file("dense.toml", DENSE)
    metric, out = decided_by(program, scenario, *changed("cluster.node=dgx_a100"))
    check(metric not in (None, "goodput"), f"decided by {metric}")
    said = program.text("compare", scenario, *changed("cluster.node=dgx_a100"), "--no-estimates")
    check("A over B" in said and "decided by" in said, said)
    for arm in out["arms"]:
        for name, each in arm["metrics"].items():
            ends = each["ci95"]
            check(None in ends or ends[0] <= each["mean"] * (1 + 1e-9) and each["mean"] <= ends[1] * (1 + 1e-9),
                  f"{name} has the interval {ends} around {each['mean']}")


RARE = """
[run]
replicas = 3
duration = "1 day"
[cluster]
nodes = 4
[job]
nodes = 4
step.time = "1 s"
checkpoint.mode = "none"
[[failures.cause]]
name = "rare"
mtbf_job = "30000 day"
remedy = "replace"
repair_time = "1 day"
"""


def case_replicas_without_a_failure_do_not_make_designs_equal(program):
    scenario = program.file("rare.toml", RARE)
    longer = changed("failures.cause.0.repair_time=20 day")
    said = program.text("compare", scenario, *longer, "--no-estimates")
    check("no difference between A and B was seen" in said and "less than 3 times" in said, said)
    pairs = program.json("compare", scenario, *longer, "--no-estimates")["comparisons"]
    check(pairs[0]["may_differ_in"] == 1, pairs[0])
    said = program.text("compare", program.file("dense.toml", DENSE), *changed("failures.repair_sigma=0.1"), "--no-estimates")
    check("A and B are equal" in said and "excluded" not in said, said)


GANGS = """
[run]
duration = "200 h"
[cluster]
nodes = 4
[scheduler]
kind = "kubernetes"
[[jobs.kind]]
name = "gang"
gpus = 32
work = "10 h"
count = 2
"""
GANG_STUDY = GANGS + """
[sweep]
[[sweep.axis]]
key = "jobs.kind.0.work"
values = ["10 h", "11 h"]
"""
GANG_QUESTION = GANGS + """
[design]
objective = "metric"
metric = "utilisation"
plan = "given"
replicas_most = 2
replicas_first = 2
worlds = 2
[[design.axis]]
key = "cluster.nodes"
values = [4, 8]
"""


def case_a_deadlock_in_a_given_time_is_told_by_all_that_run_it(program):
    """Two gangs that bind their pods one by one hold half of the cluster each."""
    gangs = program.file("gangs.toml", GANGS)
    waits = "replica 0: 2 of 2 jobs wait, and nothing will happen any more\ndeadlock: job 1 waits for job 2"
    code, stdout, stderr = program.run("run", gangs, "--json", "--no-estimates")
    stuck = json.loads(stdout)["stuck"]
    check(code == 0 and stuck["replica"] == 0 and "deadlock: job 1 waits for job 2" in stuck["report"], stuck)
    check("warning: " + waits in stderr, stderr)
    larger = program.run("run", gangs, "--json", "--no-estimates", *changed("cluster.nodes=8"))
    check("stuck" not in json.loads(larger[1]) and "wait" not in larger[2], larger)
    code, stdout, stderr = program.run("compare", gangs, *changed("cluster.nodes=8"), "--no-estimates", "--json")
    arms = json.loads(stdout)["arms"]
    check(code == 0 and ["stuck" in arm for arm in arms] == [True, False], arms)
    check("warning: A: " + waits in stderr and "B: " not in stderr, stderr)
    code, _, stderr = program.run("sweep", program.file("study.toml", GANG_STUDY), "--no-estimates")
    check(code == 0 and stderr.count(waits) == 2 and "11 h: " + waits in stderr, stderr)
    code, _, stderr = program.run("design", program.file("question.toml", GANG_QUESTION))
    check(code == 0 and "warning: nodes = 4: " + waits in stderr and "nodes = 8: " not in stderr, stderr)


DRAWN = """
[run]
duration = "2 day"
replicas = 2
[cluster]
nodes = 64
[scheduler]
kind = "easy"
estimate = "work"
[failures]
profile = "none"
[[jobs.kind]]
name = "a"
gpus = 8
work = "1 h"
rate = "1 /h"
"""


def case_replicas_whose_jobs_are_drawn_do_not_make_designs_equal(program):
    """No two of these jobs wait for each other in two replicas; in a third one they may."""
    sjf = changed('scheduler.kind="sjf"')
    drawn = program.file("drawn.toml", DRAWN)
    said = program.text("compare", drawn, *sjf, "--no-estimates")
    check("no difference between A and B was seen" in said and "are equal" not in said, said)
    for of_kind in ('count = 3', 'count = 3\nown_failure_rate_per_gpu = "1e-9 /h"'):
        all_at_once = program.file("at_once.toml", DRAWN.replace('rate = "1 /h"', of_kind))
        said = program.text("compare", all_at_once, *sjf, "--no-estimates")
        check(("A and B are equal" in said) == (of_kind == "count = 3"), said)


PRICED = DENSE + '[storage]\nsystem = "weka"\nservers = 8\n[cost]\nyears = "4 years"\n'


def case_compared_money_has_its_prices_intervals(program):
    scenario = program.file("priced.toml", PRICED)
    out = program.json("compare", scenario, *changed("job.checkpoint.interval=2 h"), "--no-estimates")
    for arm in out["arms"]:
        money = {name: m for name, m in arm["metrics"].items() if m["unit"].startswith("USD")}
        check(money, f"no money: {sorted(arm['metrics'])}")
        for name, m in money.items():
            check(m["mean"] == 0 or m["ci95"][1] > 1.05 * m["ci95"][0], f"{name}: {m}")
    program.text("compare", scenario, *changed("job.checkpoint.interval=2 h"), "--no-estimates", "--db", "x.db")
    with sqlite3.connect(program.folder / "x.db") as db:
        kept = db.execute("SELECT name, mean, low, high FROM metric_means WHERE unit LIKE 'USD%'").fetchall()
    check(kept and all(mean == 0 or high > 1.05 * low for _, mean, low, high in kept), f"what a report reads: {kept}")


def case_each_store_has_a_price_of_its_own(program):
    scenario = program.file("priced.toml", PRICED)
    weka, vast = (program.text("cost", scenario, "--no-estimates", *changed(f"storage.system={system}"))
                  for system in ("weka", "vast"))
    found = program.text("list", "price")
    names = set(re.findall(r"\bstorage[a-z_]*_(?:weka|vast|ddn|lustre|[a-z0-9]+)\b|\b(?:weka|vast|ddn)[a-z_]*\b", found))
    check(len(names) >= 3 and weka != vast, f"prices of stores: {sorted(names)}")


def case_list_prints_ranges_and_all_kinds(program):
    target = re.search(r"target_delay +0.5 +0.25 to 1 +estimate", program.text("list", "delay_control", "srd"))
    check(target, "the range of an estimate is not listed")
    kinds = program.text("list", "kinds")
    for key, name in (("kind", "efa"), ("topology", "custom")):
        check(re.search(rf"fabric\.compute\.{key} +{name}\b", kinds), f"fabric.compute.{key} has no {name}")


def upgrades(program, scenario, *more):
    return {each["change"]: each for each in program.json("explain", scenario, "--orders", "1", "--no-estimates", *more)["upgrades"]}


def case_what_costs_nothing_is_tried_before_another_fabric(program):
    tried = upgrades(program, program.file("hashed.toml", HASHED.replace("replicas = 8", "replicas = 2").replace(
        'checkpoint = { mode = "none" }', 'checkpoint = { mode = "sync", interval = "10 min" }')))
    said = " | ".join(tried)
    for word in ("routing|spray|adaptive", "queue pair", "order", "microbatch", "recompu", "checkpoint every"):
        check(re.search(word, said), f"{word} was not tried: {said}")
    # With its leaf switch named, the fabric of the other kind is a design.
    other = [name for name in tried if "infiniband" in name.lower()]
    check(other and all(tried[name].get("speed") for name in other), f"the other fabric: {other}: {said}")


def case_a_newer_gpu_does_not_launch_slower(program):
    scenario = program.file("small.toml", DENSE.replace('checkpoint = { mode = "sync", interval = "1 h" }',
                                                        'checkpoint = { mode = "none" }').replace("llama2_13b", "llama2_7b")
                            .replace("tensor = 8", "tensor = 8\nsequence_length = 512\nmicrobatch = 1"))
    old, new = (program.json("plan", scenario, "--top", "1", *changed(f"cluster.node={node}"))["given"]["step_s"]
                for node in ("dgx_h100", "dgx_b200"))
    check(new <= old, f"a step takes {old} s on H100 and {new} s on B200")


# ---- data ----


def case_a_global_shuffle_finds_in_a_cache_what_the_cache_holds(program):
    scenario = program.file("data.toml", """
[run]
replicas = 1
duration = "2 day"
[cluster]
nodes = 8
[job]
step.time = "1 s"
checkpoint = { mode = "none" }
[storage]
system = "generic"
servers = 1
server_read_bandwidth = "1 GB/s"
[job.data]
source = "storage"
sample_size = "1 MB"
batch = 64
dataset = "8 TB"
page_cache = "1 TB"
[failures]
profile = "none"
""")
    # Each node's cache holds an eighth of the data, its own shard. Read at random, seven in eight come from the store.
    starved = program.json("run", scenario, "--no-estimates")["ledger"]["data_wait"]
    check(starved > 0.5, f"waiting for data: {starved}")
    check("job.data.sampler" in program.text("list", "keys"), "the sampler is no key")


# ---- traces ----


SACCT = "JobID|Submit|Start|End|Elapsed|State|AllocTRES|TimelimitRaw\n"


def jobs(program, text, *more):
    trace = program.file("jobs.txt", text)
    return program.json("jobs", trace, "--nodes", "8", "--gpus-per-node", "8", *more)["all"]["jobs"]


def case_the_time_of_a_running_job_is_not_its_length(program):
    trace = program.file("running.txt", SACCT + "1|2024-01-01T00:00:00|2024-01-01T00:00:00|Unknown|00:10:00|RUNNING|"
                         "gres/gpu=8|60\n2|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T01:00:00|01:00:00|COMPLETED|"
                         "gres/gpu=8|60\n")
    code, stdout, stderr = program.run("jobs", trace, "--nodes", "8", "--gpus-per-node", "8", "--json")
    # Left out, or refused: not a job of ten minutes.
    check(code == 2 or json.loads(stdout)["all"]["jobs"] == 1, f"exit {code}: {stdout}{stderr}")
    check("runn" in (stderr + stdout).lower() or "still" in stderr, f"nothing is said of it: {stderr}")


def case_the_parts_of_a_gang_are_one_job(program):
    row = "|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T01:00:00|01:00:00|COMPLETED|gres/gpu=32|120\n"
    near("a heterogeneous job of two parts", 1, jobs(program, SACCT + "7+0" + row + "7+1" + row))
    near("an array of two tasks", 2, jobs(program, SACCT + "8_0" + row + "8_1" + row))


# ---- verify ----


def one_row(program, table, **cells):
    """Rows of verify that are wrong, of a table's first row with other cells."""
    lines = [line for line in (ROOT / f"tests/validation/{table}.csv").open() if not line.startswith("#")]
    row = next(row for row in csv.DictReader(lines) if all(key in row for key in cells))
    with (program.folder / f"{table}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, row.keys())
        writer.writeheader()
        writer.writerow({**row, **cells})
    # A table of which no row could be held to its tolerance ends with 4.
    _, stdout, _ = program.run("verify", f"{table}.csv", "--json")
    return [row for row in json.loads(stdout)["rows"] if abs(row["simulated"] / row["published"] - 1) > 0.1]


def case_a_cell_of_two_algorithms_is_not_its_first(program):
    # NVLS took 1.14 ms; the cell's first algorithm would take a fifth more.
    wrong = one_row(program, "30_nccl_tests_published", algo="Ring LL up to 1 MiB, NVLS above", bytes="268435456",
                    time_oop_us="1139.2", busbw_oop_GBps="412.35")
    check(not wrong, f"{wrong}")


def case_nics_are_counted_in_the_words_of_posts(program):
    # The number in a product's name was taken for Gbit/s, and a rate that InfiniBand's generation says was not found.
    same = [("H100", "8x NDR400 IB", ["8x NDR", "8x CX7 400G", "8x ConnectX-7 400G", "8x400G CX7", "8×400G NDR",
                                        "8x mlx5 NDR", "8x ConnectX-7 (400 Gb/s)", "8x IB NDR400"]),
            ("A100", "4x HDR200 IB", ["4x HDR", "4x CX6 200G"]),
            ("A100", "4x100G EFA v1", ["4x100G EFA", "4x100G EFAv1"]),
            ("B300", "8x800G XDR", ["8x XDR", "8x CX8 800G"]),
            ("H100", "8x400G RoCE", ["8x400GbE", "8x400G Spectrum-X", "8x Thor2 400G"]),
            ("MI300X", "8x400G RoCE", ["8x400G Pollara", "8x400G AINIC"])]
    description = (ROOT / "tests/validation/30_nccl_tests_published.toml").read_text()
    program.file("mine.toml", description.replace("tolerance.mean = 0.1\n", ""))
    for device, plain, words in same:
        rows = "".join(f"a,{device},2,16,all_reduce,default,{network},,1073741824,1000,,x\n" for network in [plain] + words)
        table = program.file("mine.csv", "id,device,nodes,gpus,op,algo,network,nccl,bytes,time_oop_us,flag,source\n" + rows)
        _, stdout, stderr = program.run("verify", "mine.toml", table, "--json")
        took = [row["simulated"] for row in json.loads(stdout)["rows"]]
        check(len(took) == 1 + len(words) and max(took) < 1.001 * min(took), f"{device} {plain}, {words}: {took} {stderr}")


def case_estimates_of_own_entries_are_fitted_too(program):
    # One wrote 4 GB/s with a wide range, and measured checkpoints that need some four times that.
    own = DENSE + """
[storage_system.mine]
like = "generic"
write_bandwidth = { value = "4 GB/s", class = "estimate", source = "a guess", low = "1 GB/s", high = "40 GB/s" }
[storage]
system = "mine"
"""
    program.file("table.toml", own + """
[table]
row = "{id}"
[[table.expect]]
quantity = "s a checkpoint"
published = "s"
simulated = "checkpoint_stall_time / checkpoints"
""")
    scenario, table = program.file("own.toml", own), program.file("table.csv", "id,s\na,12\nb,12.2\n")
    fitted = program.folder / "fitted.toml"
    out = program.text("calibrate", scenario, program.folder / "table.toml", table, "-o", fitted)
    check("storage_system.mine.write_bandwidth" in out and "[override.storage.mine]" in fitted.read_text(), out)
    found = program.file("with.toml", f'include = ["{fitted.name}"]\n' + own)
    stall = program.metric("checkpoint_stall_time", found) / program.metric("checkpoints", found)
    check(abs(stall / 12.1 - 1) < 0.03, f"{stall} s a checkpoint, measured were 12 and 12.2")


# ---- what is refused, and said ----


def case_jobs_that_are_all_refused_take_no_time(program):
    trace = program.file("large.csv", "job_id,submit_time,gpu_num,duration,state\n1,1000000,640,600,COMPLETED\n")
    code, stdout, stderr = program.run("jobs", trace, "--nodes", "2", "--gpus-per-node", "8", "--json")
    check("1000000" not in stdout and "-1" not in stdout, f"exit {code}: {stdout}{stderr}")


def main():
    if len(sys.argv) < 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    tally = checks.Tally()
    for name, case in checks.cases_of(globals()).items():
        if len(sys.argv) == 2 or name in sys.argv[2:]:
            tally.run(name, lambda folder: case(Program(sys.argv[1], folder)))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
