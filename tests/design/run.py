#!/usr/bin/python3
"""Questions as people ask, stop and repeat them: the answer, its files, and the studies that ship.

    run.py PATH_TO_RAILYARD [NAME...]

Each case is a function below; it gets the program and an empty folder.
"""

import html.parser
import importlib.util
import json
import pathlib
import signal
import sys
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
spec = importlib.util.spec_from_file_location("sweeps", HERE.parent / "sweep" / "sweeps.py")
sweeps = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sweeps)
check, query = sweeps.check, sweeps.query

QUESTION = """
title = "stores, <script>spares</script> & intervals"

[design]
objective = "least_cost"
tokens = 1e11
replicas_most = 16
worlds = 8
shown = 3

[[design.axis]]
name = "store"
[[design.axis.option]]
name = "WEKA"
set = { "storage.system" = "weka", "storage.servers" = 8 }
[[design.axis.option]]
name = "VAST"
set = { "storage.system" = "vast", "storage.servers" = 8 }

[[design.axis]]
name = "nodes"
key = "cluster.nodes"
values = [16, 17, 18, 20]

[[design.axis]]
key = "job.checkpoint.interval"
values = ["15 min", "1 h"]
free = true

[run]
duration = "30 day"
[cluster]
node = "dgx_h100"
nodes = 18
[fabric.compute]
topology = "fat_tree"
[storage]
system = "weka"
[job]
nodes = 16
model = "llama2_7b"
[job.parallel]
global_batch = 512
[job.checkpoint]
interval = "1 h"
[failures]
profile = "meta_rsc1"
[cost]
"""


def ask(program, folder, *more, code=0):
    return program.run(folder, ["design", "question.toml", *more], code)


def case_any_number_of_threads_gives_the_same_answer(program, folder):
    (folder / "question.toml").write_text(QUESTION)
    answers = {}
    for threads in ("1", "2"):
        text, _ = ask(program, folder, "--db", f"{threads}.sqlite", "-j", threads, "-o", f"out{threads}")
        answers[threads] = [text, *(path.read_bytes() for path in sorted((folder / f"out{threads}").iterdir()))]
    check(len(answers["1"]) == 5, f"three designs and a page: {sorted((folder / 'out1').iterdir())}")
    check(answers["1"] == answers["2"], f"-j 1:\n{answers['1'][0]}\n-j 2:\n{answers['2'][0]}")


def case_a_search_that_was_stopped_comes_to_the_same_end(program, folder):
    (folder / "question.toml").write_text(QUESTION)
    whole, _ = ask(program, folder, "--db", "whole.sqlite", "--json")
    for wait in (0.3, 0.8, 1.5):
        process = program.start(folder, ["design", "question.toml", "--db", "x.sqlite", "--json"])
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=sweeps.SECONDS_MAX)
        check(process.returncode in (0, 130), f"exit {process.returncode}: {error}")
        check(process.returncode == 0 or "goes on from there" in error, error)
    resumed, _ = ask(program, folder, "--db", "x.sqlite", "--json")
    check(resumed == whole, f"{whole}\n{resumed}")


def case_the_best_design_is_the_best_of_all_that_are_run_one_by_one(program, folder):
    (folder / "question.toml").write_text(QUESTION.replace("replicas_most = 16", "replicas_most = 40"))
    out, _ = ask(program, folder, "--db", "x.sqlite", "--json", "-o", "out")
    answer = json.loads(out)
    for number, best in enumerate(answer["best"], 1):
        text = (folder / "out" / f"design_{number}.toml").read_text()
        check("design" not in tomllib.loads(text), text)
        ran, _ = program.run(folder, ["run", f"out/design_{number}.toml", "--json", "--no-estimates", "--replicas",
                                      str(best["replicas"])])
        cost = json.loads(ran)["metrics"]["cost_per_1e12_tokens"]["mean"] / 10
        check(abs(cost / best["figure"] - 1) < 1e-9, f"{number}: run says {cost}, design {best['figure']}")
        for other in answer["front"]:
            check(other["cost"] >= 0.97 * answer["best"][0]["figure"], f"{other} is cheaper than the best")
        sums = [sum(row) for row in answer["regret"]]
        check(abs(sums[number - 1] - best["regret"]["mean"]) <= 1e-6 * max(1, sums[number - 1]), str(sums))
    spent = sum(line["usd"] for line in answer["best"][0]["bill_of_materials"])
    check(abs(spent / answer["best"][0]["capital_usd"] - 1) < 1e-9, f"{spent}")


def case_a_cluster_that_is_used_half_of_the_time_trains_half_as_much(program, folder):
    """Days and tokens are the calendar's, as the money is."""
    (folder / "question.toml").write_text(QUESTION)
    figures = {}
    for objective in ("most_tokens", "least_time"):
        for share in ("1", "0.5"):
            out, _ = ask(program, folder, "--db", f"{objective}{share}.sqlite", "--json",
                         "--set", f"design.objective={objective}", "--set", "design.over=365 day",
                         "--set", f"cost.utilisation={share}")
            figures[objective, share] = json.loads(out)["best"][0]["figure"]
    more = figures["most_tokens", "1"] / figures["most_tokens", "0.5"]
    longer = figures["least_time", "0.5"] / figures["least_time", "1"]
    check(abs(more - 2) < 1e-9 and abs(longer - 2) < 1e-9, f"{more} {longer} {figures}")
    days = 1.5 * figures["least_time", "1"]  # between what it takes used always, and half of the time
    _, error = ask(program, folder, "--db", "late.sqlite", "--set", f"design.limits.deadline={days:g} day",
                   "--set", "cost.utilisation=0.5", code=2)
    check("design.limits.deadline: no design keeps" in error, error)


def case_of_designs_that_are_as_good_the_cheaper_leads(program, folder):
    """More spares than ever break train no more tokens."""
    text = QUESTION.replace("[16, 17, 18, 20]", "[22, 18]").replace('"least_cost"', '"most_tokens"\nover = "365 day"')
    text = text.replace("tokens = 1e11\n", "")
    for failures in ("true", "false"):
        (folder / "question.toml").write_text(text.replace("[run]", f"[run]\nfailures = {failures}"))
        out, _ = ask(program, folder, "--db", f"{failures}.sqlite", "--json")
        best = json.loads(out)["best"]
        check("cluster.nodes=18" in best[0]["settings"], str(best[0]))
        check(best[0]["capital_usd"] == min(each["capital_usd"] for each in best), str(best))
        said, _ = ask(program, folder, "--db", f"{failures}.sqlite")
        check("the first is the cheaper one, by" in said, said)


SPARE = """
title = "a spare"
[run]
duration = "30 day"
seed = 5
[cluster]
nodes = 8
[storage]
system = "weka"
servers = 8
[job]
nodes = 8
model = "llama2_13b"
[job.parallel]
tensor = 4
data = 16
global_batch = 512
[job.checkpoint]
interval = "1 h"
[failures]
profile = "meta_rsc1"
[cost]
years = "4 years"
[design]
objective = "most_tokens"
over = "730 day"
replicas_most = 4
worlds = 8
[[design.axis]]
key = "cluster.nodes"
values = [8, 9, 10]
"""


def case_a_cheaper_design_that_few_replicas_do_not_tell_from_the_best_does_not_lead(program, folder):
    """Without a spare a seventh less is trained in the mean, and four replicas do not tell."""
    def answer(name, *more):
        said, _ = ask(program, folder, "--db", name, *more)
        out, _ = ask(program, folder, "--db", name, "--json", *more)
        return said, json.loads(out)
    (folder / "question.toml").write_text(SPARE)
    said, found = answer("three.sqlite")
    check([best["design"][-1] for best in found["best"]] == ["9", "0", "8"], str(found["best"]))
    check(found["cheaper_not_told_from_the_first"]["design"] == "nodes = 8", str(found))
    check("nodes = 8 is cheaper, by" in said and "not told from the first by luck alone" in said, said)
    check("is the same in each of 4 replicas: the first is the cheaper one, by" in said, said)
    check("exactly as good as the first in each of 4 replicas, and dearer: no estimate was tried" in said, said)
    two = ["--set", "design.axis.0.values=[8, 9]"]
    said, found = answer("two.sqlite", *two)
    check(found["best"][0]["design"] == "nodes = 9", str(found["best"]))
    check("not told from it by luck alone. It is cheaper, by" in said, said)
    check("as good as" not in said and "no estimate was tried" not in said, said)
    # Who minds no such difference takes the cheaper one, whatever the estimates.
    said, found = answer("any.sqlite", *two, "--set", "design.indifference=0.6")
    check(found["best"][0]["design"] == "nodes = 8" and found["cheaper_not_told_from_the_first"] is None, str(found))
    check("tokens more, 60 % at most: the first is the cheaper one, by" in said, said)
    check("at no end of any is the second better by more than 60 %" in said, said)


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = set()
        self.policy = ""
        self.text = ""

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if dict(attributes).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attributes)["content"]

    def handle_data(self, data):
        self.text += data


def case_the_page_runs_nothing_that_somebody_typed(program, folder):
    (folder / "question.toml").write_text(QUESTION.replace('name = "WEKA"', 'name = "<img src=x onerror=1> \\"W\\""'))
    ask(program, folder, "--db", "x.sqlite", "-o", "out")
    page = Page()
    page.feed((folder / "out" / "decision.html").read_text())
    check(page.policy == "default-src 'none'; style-src 'unsafe-inline'", page.policy)
    check(not page.tags & {"script", "img", "a", "iframe", "link"}, str(page.tags))
    check("<script>spares</script> & intervals" in page.text and "<img src=x" in page.text, page.text)
    for section in ("The best designs", "What each would be regretted by", "What would change the decision",
                    "Bill of materials of the first", "How much of the space was seen"):
        check(section in page.text, section)


# Where the whole of it takes too long.
SMALL = {"four_thousand_gpus.toml": ["--set", "cluster.nodes=40", "--set", "job.nodes=32",
                                     "--set", "job.parallel.global_batch=256"],
         "grow_or_wait.toml": ["--set", "run.duration=800 day"]}


def case_a_plan_of_the_file_rules_out_no_other_nodes(program, folder):
    """The file's plan splits 16 nodes and no 12; 6,000 GPUs share no 512 sequences."""
    text = QUESTION.replace("[job.parallel]", "[job.parallel]\ntensor = 8\npipeline = 16\ndata = 1")
    text = text.replace("global_batch = 512", "global_batch = 1536").replace("[16, 17, 18, 20]", "[16, 750]")
    text = text.replace('key = "cluster.nodes"', "").replace("values = [16, 750]", """
[[design.axis.option]]
name = "12"
set = { "cluster.nodes" = 13, "job.nodes" = 12 }
[[design.axis.option]]
name = "16"
set = { "cluster.nodes" = 17, "job.nodes" = 16 }
[[design.axis.option]]
name = "685"
set = { "cluster.nodes" = 685, "job.nodes" = 685 }
""")
    (folder / "question.toml").write_text(text)
    out, _ = ask(program, folder, "--db", "x.sqlite")
    lines = [line for line in out.splitlines() if "impossible: " in line]
    check(len(lines) == 1 and "2 impossible: store = WEKA, nodes = 685; store = VAST, nodes = 685: no way of sharing "
          "32 layers and 1536 sequences a step of llama2_7b among 5480 GPUs" in lines[0], out)
    check("6 designs: 2 impossible" in out, out)


def case_a_free_range_is_tuned_between_its_steps(program, folder):
    """Young's interval of this job lies between 15 min and 1 h; the page of settings names what was found."""
    text = QUESTION.replace('values = ["15 min", "1 h"]', 'from = "1 min"\nto = "241 min"\nscale = "log"')
    (folder / "question.toml").write_text(text)
    out, _ = ask(program, folder, "--db", "x.sqlite", "--json", "-o", "out")
    best = json.loads(out)["best"][0]
    found = [s for s in best["settings"] if s.startswith("job.checkpoint.interval=")]
    check(len(found) == 1, str(best["settings"]))
    minutes = float(found[0].split('"')[1].split()[0])
    check(1 < minutes < 241, found[0])
    for given in (minutes / 4, minutes * 4):
        ran = {}
        for which in (given, minutes):
            out, _ = program.run(folder, ["run", "out/design_1.toml", "--json", "--no-estimates", "--replicas", "40",
                                          "--set", f'job.checkpoint.interval="{which} min"'])
            ran[which] = json.loads(out)["metrics"]["cost_per_1e12_tokens"]["mean"]
        check(ran[minutes] < ran[given], f"{ran}")


def case_every_study_is_answered(program, folder):
    for question in sorted((ROOT / "scenarios" / "questions").glob("*.toml")):
        out, _ = program.run(folder, ["design", str(question), "--db", "x.sqlite", "--json",
                                      "--set", "design.replicas_most=8", "--set", "design.worlds=4",
                                      "--set", "design.shown=2", "--set", "run.duration=30 day",
                                      *SMALL.get(question.name, [])])
        answer = json.loads(out)
        check(answer["best"] and answer["front"], f"{question.name}: {answer}")
        check(answer["impossible"] == [], f"{question.name}: {answer['impossible']}")


def case_a_limit_of_a_metric_that_no_design_keeps_names_the_nearest(program, folder):
    question = str(ROOT / "scenarios" / "questions" / "shared_cluster.toml")
    small = ["--set", "design.replicas_most=4", "--set", "run.duration=10 day"]
    limit = 'design.limits.most={ wait_mean_kind_evaluation = "1 ms" }'
    _, error = program.run(folder, ["design", question, "--db", "x.sqlite", *small, "--set", limit], 2)
    check("design.limits.most.wait_mean_kind_evaluation: no design keeps the limits" in error, error)
    limit = "design.limits.most={ goodness = 1 }"
    _, error = program.run(folder, ["design", question, "--db", "x.sqlite", *small, "--set", limit], 2)
    check("design.limits.most.goodness: no replica has this metric" in error, error)
    limit = 'design.limits.most={ wait_mean_kind_evaluaton = "8 h" }'
    _, error = program.run(folder, ["design", question, "--db", "y.sqlite", *small, "--set", limit], 2)
    check("no design has the metric 'wait_mean_kind_evaluaton'" in error, error)
    check("did you mean 'wait_mean_kind_evaluation'?" in error, error)


def case_an_objective_that_no_replica_has_is_named(program, folder):
    question = ROOT / "scenarios" / "questions" / "shared_cluster.toml"
    lines = question.read_text().splitlines(keepends=True)
    (folder / "x.toml").write_text("".join(line for line in lines if not line.startswith("worth")))
    _, error = program.run(folder, ["design", "x.toml", "--db", "x.sqlite", "--set", "design.replicas_most=4",
                                    "--set", "run.duration=10 day"], 2)
    check("no replica has the metric 'cost_per_work'" in error and "jobs.kind.worth" in error, error)


def case_phases_need_the_plan_of_the_file(program, folder):
    question = str(ROOT / "scenarios" / "questions" / "grow_or_wait.toml")
    _, error = program.run(folder, ["design", question, "--db", "x.sqlite", "--set", "design.plan=search"], 2)
    check("design.plan: a plan is searched for one cluster" in error and 'plan = "given"' in error, error)


def case_regret_is_over_worlds_in_which_the_plan_is_another(program, folder):
    """In many worlds the fastest plan of these nodes needs more memory than there is: another has to do."""
    question = str(ROOT / "scenarios" / "questions" / "twenty_million.toml")
    small = ["--json", "--set", "design.replicas_most=4", "--set", "design.worlds=16"]
    out, _ = program.run(folder, ["design", question, "--db", "x.sqlite", *small])
    check(json.loads(out)["worlds"] == 16, out)


def case_plans_are_searched_on_flows_when_asked(program, folder):
    text = QUESTION.replace('[run]', '[run]\nfidelity = "flow"\nnetwork_draws = 1')
    text = text.replace('topology = "fat_tree"', 'topology = "fat_tree"\noversubscription = 8\nrouting = "ecmp"')
    text = text.replace("[16, 17, 18, 20]", "[32]").replace("shown = 3", "shown = 1\nfinalists = 1")
    text = text.replace('"llama2_7b"', '"mixtral_8x7b"').replace("nodes = 16", "nodes = 32")
    text = text.replace("global_batch = 512", "global_batch = 512\nsequence_length = 4096")
    days = {}
    for plan in ("search", "search_flow"):
        (folder / "question.toml").write_text(text.replace("shown = 1", f'shown = 1\nplan = "{plan}"'))
        out, _ = ask(program, folder, "--db", f"{plan}.sqlite", "--json")
        days[plan] = json.loads(out)["best"][0]["figure"]
    check(days["search_flow"] < days["search"], str(days))
    (folder / "question.toml").write_text(QUESTION.replace("shown = 3", 'plan = "search_flow"'))
    _, error = ask(program, folder, "--db", "x.sqlite", code=2)
    check("search_flow has no effect: run.fidelity is analytic" in error, error)


if __name__ == "__main__":
    sys.exit(sweeps.run_cases(globals(), sweeps.Program(sys.argv[1]), wanted=sys.argv[2:]))
