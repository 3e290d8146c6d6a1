#!/usr/bin/python3
"""What 'railyard export' writes, read by parsers of its own and, where there is one, by 'railyard import'.

    run.py PATH_TO_RAILYARD [--update]

golden/ has the head and the digest of a small file of each kind; --update rewrites these.
The parsers hold each file against what the format asks for: counts that must agree, numbers that must fit, times that
must ascend.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]

import chakra_files  # noqa: E402
import checks  # noqa: E402
from checks import check  # noqa: E402

RATES = {"gpu": 0.02, "link": 0.01}  # of one_job.toml, per node and day


class Program(checks.Program):
    def run(self, *arguments, code=0):
        found, stdout, stderr = super().run(*arguments)
        check(found == code, f"{arguments}: exit {found}\n{stdout}{stderr}")
        return stdout + stderr

    def printed(self, *arguments):
        """Standard output alone, without warnings."""
        found, stdout, stderr = super().run(*arguments)
        check(found == 0, f"{arguments}: exit {found}\n{stderr}")
        return stdout


def case_rates_come_back_within_their_intervals(program, folder):
    """An interval of 95 % misses once in twenty: of ten, two at most."""
    missed = 0
    for replica in range(5):
        program.run("export", "sacct", FOLDER / "one_job.toml", "--replica", replica, "-o", folder / "j.txt")
        program.run("import", "slurm_events", folder / "j.txt.events.txt", "--cause", "gpu=gpu", "--cause", "link=link",
                    "-o", folder / "back.toml")
        text = (folder / "back.toml").read_text()
        for name, rate in RATES.items():
            found = re.search(rf'name = "{name}".*\n.*in ([\d.]+) node-days: ([\d.e-]+) to ([\d.e-]+) with', text)
            check(found, f"no rate of {name}:\n{text}")
            check(float(found[1]) == 32 * 360, f"{found[1]} node-days, expected {32 * 360}")
            missed += not float(found[2]) <= rate <= float(found[3])
            check(0.8 * rate < (float(found[2]) + float(found[3])) / 2 < 1.25 * rate, f"{name}: {found[0]}")
        mean = float(re.search(r'name = "gpu"(?:.*\n){3}repair_time = "(\d+) s"', text)[1]) / 3600
        check(8 < mean < 17, f"repairs take {mean} h, expected about 12")
    check(missed <= 2, f"{missed} of 10 intervals miss the rate that went in")


def case_xids_come_back_at_their_rates(program, folder):
    """Of ten intervals of 95 % two at most miss; what strikes while the job is down is no interruption."""
    text = (FOLDER / "one_job.toml").read_text().replace('"gpu"', '"gpu_gsp"').replace('"link"', '"nvlink"')
    (folder / "s.toml").write_text(text.replace("nodes = 36", "nodes = 10").replace("nodes = 32", "nodes = 8"))
    missed = 0
    for replica in range(5):
        program.run("export", "openmetrics", folder / "s.toml", "--replica", replica, "-o", folder / "m.txt")
        out = program.run("import", "dcgm", folder / "m.txt", "--node-days", 8 * 360)
        check("8 hosts" in out and "samples cover 2880 node-days" in out and "warning" not in out, out)
        metrics = parse_openmetrics((folder / "m.txt").read_text())
        struck = {cause: samples[-1][1] for cause, samples in metrics["railyard_interruptions"][1].items()}
        for name, rate in {"gpu_gsp": 0.02, "nvlink": 0.01}.items():
            found = re.search(rf'name = "{name}".*\n.*# (\d+) in 2880 node-days: ([\d.e-]+) to ([\d.e-]+) with', out)
            check(found and int(found[1]) == struck[f'cause="{name}"'], f"{name}: {struck}\n{out}")
            missed += not float(found[2]) <= rate <= float(found[3])
    check(missed <= 2, f"{missed} of 10 intervals miss the rate that went in")


class Scontrol:
    def __init__(self, conf):
        self.conf = str(conf)

    def show(self, *arguments):
        done = subprocess.run(["scontrol", "show", *arguments], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "SLURM_CONF": self.conf})
        check(done.returncode == 0, done.stderr)
        return done.stdout.split()


def unfolded(nodes):
    """The nodes' numbers, by a reader of its own."""
    folded = re.fullmatch(r"node(?:(\d{5})|\[([\d,-]+)\])", nodes)
    check(folded, f"{nodes} is no list of Slurm's")
    ends = [part.split("-") for part in (folded[1] or folded[2]).split(",")]
    return [number for end in ends for number in range(int(end[0]), int(end[-1]) + 1)]


def case_jobs_name_their_nodes(program, folder):
    """As many as they hold, none twice at a time, none that is out of service; Slurm's scontrol folds them alike."""
    (folder / "slurm.conf").write_text("ClusterName=railyard\nSlurmctldHost=localhost\nNodeName=node[00000-00035]\n"
                                       "PartitionName=all Nodes=ALL Default=YES\n")
    for scenario, nodes in (("one_job.toml", 32), ("many_jobs.toml", 4)):
        program.run("export", "sacct", FOLDER / scenario, "-o", folder / "j.txt")
        lines = [line.split("|") for line in (folder / "j.txt").read_text().splitlines()]
        rows = [dict(zip(lines[0], line)) for line in lines[1:]]
        held = [unfolded(row["NodeList"]) for row in rows]
        check(all(len(set(numbers)) == len(numbers) == int(row["NNodes"]) == nodes for numbers, row in zip(held, rows)),
              f"{scenario}: {nodes} nodes each")
        times = sorted({row["Start"] for row in rows})
        for at in times:
            now = [number for numbers, row in zip(held, rows) if row["Start"] <= at < row["End"] for number in numbers]
            check(len(set(now)) == len(now), f"{scenario}: a node is in two jobs at {at}")
        check(len({row["NodeList"] for row in rows}) > 10, f"{scenario}: jobs move")
        if nodes == 32:
            out = [line.split("|") for line in (folder / "j.txt.events.txt").read_text().splitlines()[2:]]
            for name, begin, end in ((row[1], row[2], row[3]) for row in out):
                check(not any(int(name[4:]) in numbers for numbers, row in zip(held, rows) if begin < row["Start"] < end),
                      f"{name} is out from {begin} to {end}")
        text = program.run("import", "sacct", folder / "j.txt", "-o", folder / "back.toml")
        text += (folder / "back.toml").read_text()
        used = sorted({number for numbers in held for number in numbers})
        check(f"{len(used)} nodes have run jobs: node{used[0]:05} to node{used[-1]:05}" in text, text)
        if shutil.which("scontrol"):
            for numbers, row in list(zip(held, rows))[:20]:
                names = [f"node{number:05}" for number in numbers]
                show = Scontrol(folder / "slurm.conf").show
                check(show("hostnames", row["NodeList"]) == names, row["NodeList"])
                check(show("hostlist", ",".join(names)) == [row["NodeList"]], row["NodeList"])


def case_slurm_reads_the_nodes_of_outages(program, folder):
    """Slurm's own scontrol, where it is installed, folds the names and unfolds them again."""
    if not shutil.which("scontrol"):
        return
    program.run("export", "sacct", FOLDER / "one_job.toml", "-o", folder / "j.txt")
    names = sorted({line.split("|")[1] for line in (folder / "j.txt.events.txt").read_text().splitlines()[1:]} - {""})
    (folder / "slurm.conf").write_text("ClusterName=railyard\nSlurmctldHost=localhost\nNodeName=node[00000-00035]\n"
                                       "PartitionName=all Nodes=ALL Default=YES\n")

    scontrol = Scontrol(folder / "slurm.conf").show
    folded = scontrol("hostlist", ",".join(names))
    check(len(names) > 20 and len(folded) == 1, f"{folded}")
    check(scontrol("hostnames", folded[0]) == names, f"{folded} is not {names}")


def case_one_job_is_a_row_for_each_run(program, folder):
    program.run("export", "sacct", FOLDER / "one_job.toml", "-o", folder / "j.txt")
    rows = [line.split("|") for line in (folder / "j.txt").read_text().splitlines()]
    header, rows = rows[0], [dict(zip(rows[0], row)) for row in rows[1:]]
    check(len(rows) > 100, f"{len(rows)} runs")
    check([row["State"] for row in rows[:-1]] == ["NODE_FAIL"] * (len(rows) - 1), "states")
    check(rows[-1]["State"] == "RUNNING" and rows[-1]["End"] == "Unknown", str(rows[-1]))
    for before, after in zip(rows, rows[1:]):
        check(before["Start"] < before["End"] <= after["Submit"] <= after["Start"], f"{before}\n{after}")
    check(all(len(row) == len(header) for row in rows), "fields")


STAGES = """
[run]
replicas = 1
failures = false
[cluster]
nodes = 16
[job]
nodes = 16
model = "llama2_13b"
parallel = { tensor = 4, global_batch = 512 }
checkpoint = { interval = "100 steps" }
recovery = { recompute = true }
[[job.stage]]
steps = 500
[[job.stage]]
nodes = 8
steps = 500
stop = "10 min"
"""


def case_a_stage_on_other_nodes_is_a_row_and_no_failure(program, folder):
    (folder / "stages.toml").write_text(STAGES)
    program.run("export", "sacct", folder / "stages.toml", "-o", folder / "j.txt")
    rows = [line.split("|") for line in (folder / "j.txt").read_text().splitlines()]
    rows = [dict(zip(rows[0], row)) for row in rows[1:]]
    check([row["State"] for row in rows] == ["COMPLETED", "COMPLETED"], f"{rows}")
    gpus = [next(row[key] for key in row if key.endswith("TRES") and "gres/gpu" in row[key]) for row in rows]
    check("gres/gpu=128,node=16" in gpus[0] and "gres/gpu=64,node=8" in gpus[1], f"{gpus}")
    program.run("export", "openmetrics", folder / "stages.toml", "-o", folder / "m.txt")
    alloc = [value for _, value in parse_openmetrics((folder / "m.txt").read_text())["slurm_nodes_alloc"][1][None]]
    check(alloc[0] == 16 and 8 in alloc and alloc.index(8) > alloc.index(16), f"{alloc}")


def case_jobs_come_back_with_their_durations(program, folder):
    program.run("export", "sacct", FOLDER / "many_jobs.toml", "-o", folder / "j.txt")
    program.run("import", "sacct", folder / "j.txt", "-o", folder / "back.toml")
    rows = [line.split("|") for line in (folder / "j.txt").read_text().splitlines()[1:]]
    ended = [row for row in rows if row[9] != "RUNNING"]
    jobs = [line.split(",") for line in (folder / "back.csv").read_text().splitlines()[1:]]
    check(len(jobs) == len(ended) > 300, f"{len(jobs)} of {len(ended)}")
    check([row[8] for row in ended] == [job[5] for job in jobs], "durations")
    check(all(job[3] == "32" for job in jobs), "GPUs")
    check(any(row[9] == "NODE_FAIL" for row in rows), "no job has lost a node")
    out = program.run("jobs", folder / "j.txt", "--nodes", 16, "--gpus-per-node", 8)
    check(str(len(ended)) in out.replace(",", ""), out)


def parse_ns3(text):
    lines = [line.split() for line in text.splitlines()]
    nodes, switches, links = map(int, lines[0])
    ids = set(map(int, lines[1]))
    check(len(ids) == switches and len(lines) == 2 + links, "counts of the head")
    cables = []
    for line in lines[2:]:
        check(len(line) == 5 and re.fullmatch(r"\d+Gbps", line[2]) and re.fullmatch(r"[\d.]+us", line[3]), str(line))
        a, b = int(line[0]), int(line[1])
        check(a != b and 0 <= a < nodes and 0 <= b < nodes, str(line))
        cables.append((a, b))
    hosts = set(range(nodes)) - ids
    check(all(sum(host in cable for cable in cables) == 1 for host in hosts), "each host has one cable")
    return hosts, cables


def case_ns3_files_agree(program, folder):
    program.run("export", "ns3", FOLDER / "window.toml", "-o", folder / "t.txt")
    hosts, cables = parse_ns3((folder / "t.txt").read_text())
    check(len(hosts) == 8 and len(cables) == 8 + 4, f"{hosts} {cables}")
    lines = (folder / "t.txt.flow.txt").read_text().splitlines()
    flows = [line.split() for line in lines[1:]]
    check(int(lines[0]) == len(flows) == 7, lines[0])
    check(all(int(f[0]) in hosts and int(f[1]) in hosts and 0 < int(f[4]) < 2**32 for f in flows), str(flows))
    check([float(f[5]) for f in flows] == sorted(float(f[5]) for f in flows), "flows by start")
    check(sum(int(f[4]) for f in flows) == 7 * 3_000_000_000, "bytes")
    config = dict(line.split(" ", 1) for line in (folder / "t.txt.config.txt").read_text().splitlines())
    check(config["BUFFER_SIZE"] == "64" and config["CC_MODE"] == "1", str(config))
    check(config["KMIN_MAP"].split()[1:] == ["400000000000", "400"], config["KMIN_MAP"])
    check(config["KMAX_MAP"].split()[2] == "1600" and config["PMAX_MAP"].split()[2] == "0.2", str(config))


def case_simai_has_a_gpu_for_each_nic(program, folder):
    program.run("export", "simai", FOLDER / "window.toml", "--set", "cluster.nics_per_node=8", "-o", folder / "t.txt")
    lines = [line.split() for line in (folder / "t.txt").read_text().splitlines()]
    nodes, per_server, nvswitches, switches, links = map(int, lines[0][:5])
    check((per_server, nvswitches, switches, lines[0][5]) == (8, 8, 3, "H100"), str(lines[0]))
    gpus = nodes - nvswitches - switches
    check(gpus == 64 and lines[1] == [str(i) for i in range(gpus, nodes)], "switches follow the GPUs, NVSwitches first")
    check(len(lines) == 2 + links, f"{len(lines)} lines, {links} links")
    cables = [(int(a), int(b), rate) for a, b, rate, _, _ in lines[2:]]
    for gpu in range(gpus):
        own = sorted((b, rate) for a, b, rate in cables if a == gpu)
        check(own == [(gpus + gpu // 8, "3600Gbps"), (gpus + nvswitches + gpu // 32, "400Gbps")], f"GPU {gpu}: {own}")
    check(all(a >= gpus + nvswitches and b >= gpus + nvswitches for a, b, _ in cables if a >= gpus), "no cable between NVSwitches")
    program.run("export", "ns3", FOLDER / "window.toml", "-o", folder / "n.txt")
    check((folder / "t.txt.config.txt").read_text() == (folder / "n.txt.config.txt").read_text(), "the configuration of ns-3")
    check("one NIC for each GPU" in program.run("export", "simai", FOLDER / "window.toml", "-o", folder / "x", code=2), "one NIC a node")


COMMUNICATION = {"NONE", "ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL", "ALLTOALL_EP", "ALLGATHER_DP_EP",
                 "REDUCESCATTER_DP_EP", "ALLREDUCE_DP_EP"}


def parse_simai_workload(text):
    """The head's words, and rows: name, [(ns, kind, bytes)] forward, of the input's and of the weights' gradients."""
    lines = text.splitlines()
    words = lines[0].split()
    check(words[0] == "HYBRID_TRANSFORMER_FWD_IN_BCKWD" and text.endswith("\n"), lines[0])
    names = ["model_parallel_NPU_group:", "ep:", "pp:", "vpp:", "ga:", "all_gpus:", "checkpoints:", "checkpoint_initiates:"]
    check(words[1:17:2] == names and words[17:18] in ([], ["pp_comm"]), lines[0])
    rows = []
    for line in lines[2:]:
        cells = line.split("\t")
        check(len(cells) == 12 and cells[1] == "-1" and cells[11] == "100", line)
        passes = [(int(cells[i]), cells[i + 1], int(cells[i + 2])) for i in (2, 5, 8)]
        check(all(ns >= 1 and kind in COMMUNICATION and (size > 0) == (kind != "NONE") for ns, kind, size in passes), line)
        rows.append((cells[0], passes))
    check(int(lines[1]) == len(rows), f"{lines[1]} rows, found {len(rows)}")
    return dict(zip(names, map(int, words[2:17:2]))) | {"pp_comm": int(words[18]) if len(words) > 17 else 0}, rows


def case_simai_workload_is_the_step(program, folder):
    """Kernels of a rank as 'railyard plan' has them; collectives as the Chakra trace of the same step has them."""
    scenario = FOLDER / "simai.toml"
    for settings in (["job.parallel.pipeline=1", "job.parallel.data=4"], []):
        words = [word for one in settings for word in ("--set", one)]
        program.run("export", "simai", scenario, "-o", folder / "t.txt", *words)
        head, rows = parse_simai_workload((folder / "t.txt.workload.txt").read_text())
        stages = head["pp:"]
        check(head["vpp:"] * stages == 8, f"the stage's layers: {head}")
        check((head["model_parallel_NPU_group:"], head["all_gpus:"], head["ga:"]) == (8, 32, 8 // (4 // stages)), str(head))
        check(head["pp_comm"] == (8192 * 4096 * 2 // 8 if stages == 2 else 0), str(head))
        ns = sum(forward[0] * (forward[0] > 1) + back[0] * (back[0] > 1) for _, (forward, back, _) in rows)
        if stages == 1:
            kernels, _, _ = planned(program, scenario, *settings)
            check(abs(ns * 1e-9 / kernels - 1) < 1e-3, f"{ns} ns of kernels, planned {kernels} s")
        found = {}
        for _, passes in rows:
            for _, kind, size in passes:
                if kind != "NONE":
                    total = found.setdefault(kind, [0, 0])
                    total[0], total[1] = total[0] + 1, total[1] + size
        ranks, groups = astra_sim(program, scenario, folder / f"d{stages}", *settings)
        traced = {}
        for (kind, members, _), (count, size) in bytes_by_kind(ranks[0], groups).items():
            total = traced.setdefault(kind.replace("_", ""), [0, 0])
            total[0] += count
            total[1] += size * (members if kind == "ALL_GATHER" else 1)
        check(found.keys() == traced.keys(), f"{found}\n{traced}")
        check(all(found[kind][0] == traced[kind][0] and abs(found[kind][1] / traced[kind][1] - 1) < 1e-6 for kind in found),
              f"{found}\n{traced}")
    for setting, said in (("job.parallel.zero=3", "layer by layer"), ("job.parallel.context=2", "keys and values")):
        words = ["--set", setting] + ["--set", "job.parallel.data=1"] * ("context" in setting)
        out = program.run("export", "simai", scenario, "-o", folder / "x", *words, code=2)
        check(said in out, out)


def case_htsim_files_multiply_out(program, folder):
    program.run("export", "htsim", FOLDER / "window.toml", "-o", folder / "t.topo")
    tiers, head, tier = [], {}, None
    for line in (folder / "t.topo").read_text().splitlines():
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if words[0] == "Tier":
            tier = {}
            tiers.append(tier)
        else:
            (head if tier is None else tier)[words[0].lower()] = float(words[1])
    check(head == {"nodes": 8, "tiers": 2, "podsize": 8}, str(head))
    leaf, spine = tiers
    check(leaf["radix_down"] * spine["radix_down"] / spine["bundle"] == 8 and "radix_up" not in spine, str(tiers))
    check(leaf["oversubscribed"] == 2 == leaf["radix_down"] / leaf["radix_up"], str(leaf))
    check(abs(leaf["downlink_latency_ns"] - 101) <= 1, f"20 m of cable: {leaf}")
    lines = (folder / "t.topo.cm").read_text().splitlines()
    check(lines[0] == "Nodes 8", lines[0])
    rows = [re.fullmatch(r"(\d+)->(\d+) id (\d+) start (\d+) size (\d+)", line) for line in lines[2:]]
    check(all(rows) and lines[1] == f"Connections {len(rows)}", lines[1])
    check(all(int(r[5]) < 2**31 and int(r[4]) >= 0 and int(r[1]) != int(r[2]) for r in rows), "sizes")
    check([int(r[3]) for r in rows] == list(range(1, len(rows) + 1)), "ids, of which 0 is none")
    check(sum(int(r[5]) for r in rows) == 7 * 3_000_000_000, "bytes")


def parse_goal(text):
    """For each rank, by label: (op, arguments, what it waits for). A label stands before it is named."""
    lines = [line for line in text.splitlines() if line]
    count = int(re.fullmatch(r"num_ranks (\d+)", lines[0])[1])
    ranks = []
    for line in lines[1:]:
        if begin := re.fullmatch(r"rank (\d+) {", line):
            check(int(begin[1]) == len(ranks), line)
            ranks.append({})
        elif wait := re.fullmatch(r"(\w+) requires (\w+)", line):
            check(wait[2] in ranks[-1] and wait[1] != wait[2], line)
            ranks[-1][wait[1]][2].append(wait[2])
        elif line != "}":
            op = re.fullmatch(r"([a-zA-Z]\w*): (calc (\d+) cpu 1|(send|recv) (\d+)b (?:to|from) (\d+) tag (\d+))", line)
            check(op and op[1] not in ranks[-1], line)
            ranks[-1][op[1]] = ("calc", (int(op[3]),), []) if op[3] else (op[4], tuple(map(int, op.groups()[4:])), [])
    check(len(ranks) == count, "ranks")
    sends = {(r, peer, tag): size for r, ops in enumerate(ranks) for op, (size, *end), _ in ops.values()
             if op == "send" for peer, tag in [end]}
    recvs = {(peer, r, tag): size for r, ops in enumerate(ranks) for op, (size, *end), _ in ops.values()
             if op == "recv" for peer, tag in [end]}
    check(sends == recvs and len({tag for _, _, tag in sends}) == len(sends), "each message is sent and received once")
    return ranks


def goal_seconds(ranks, bytes_per_s):
    """When the last receives has ended, were a NIC all that a message needs: it sends one after another."""
    done, free, left = {}, [0.0] * len(ranks), True
    while left:
        left, moved = False, False
        for r, ops in enumerate(ranks):
            for label, (op, (size, *end), waits) in ops.items():
                if (r, label) in done:
                    continue
                begin = None if op == "recv" or any((r, w) not in done for w in waits) else max(
                    [0.0] + [done[r, w] for w in waits])
                if begin is None:
                    left = True
                elif op == "calc":
                    done[r, label], moved = begin + size * 1e-9, True
                else:
                    free[r] = max(begin, free[r]) + size / bytes_per_s
                    done[r, label] = done[end[0], f"r{end[1]}"] = free[r]
                    moved = True
        check(moved or not left, "nothing can go on")
    return max(done.values())


def case_goal_takes_as_long_as_the_window(program, folder):
    ring = (FOLDER / "window.toml").read_text().replace('"incast"', '"ring"').replace('"3 GB"', '"3 MB"')
    ring = ring.replace("oversubscription = 2\n", "")
    (folder / "ring.toml").write_text(ring)
    program.run("export", "goal", folder / "ring.toml", "-o", folder / "g.goal")
    ranks = parse_goal((folder / "g.goal").read_text())
    check([sum(op[0] == "send" for op in ops.values()) for ops in ranks] == [8] * 8, "eight steps on eight nodes")
    last = json.loads(program.run("window", folder / "ring.toml", "--json"))
    ends = max(flow["last_end_s"] for network in last["windows"] for flow in network["traffic"])
    modelled = goal_seconds(ranks, 50e9)
    check(abs(modelled - 8 * 3e6 / 50e9) < 1e-9 and modelled < ends < 1.15 * modelled, f"{ends} s, GOAL has {modelled}")


def case_goal_has_starts(program, folder):
    later = (FOLDER / "window.toml").read_text() + 'start = "2 us"\n[[window.traffic]]\nkind = "permutation"\nbytes = "1 MB"\n'
    later += 'start = "7 us"\n'
    (folder / "later.toml").write_text(later)
    program.run("export", "goal", folder / "later.toml", "-o", folder / "g.goal")
    ranks = parse_goal((folder / "g.goal").read_text())
    for ops in ranks:
        for label, (op, (size, *_), waits) in ops.items():
            if op == "send":
                clock, = waits
                total, at = 0, [clock]
                while at:
                    total += ops[at[0]][1][0]
                    at = ops[at[0]][2]
                check(total == (2000 if size > 1_000_000 else 7000), f"{label}: {total} ns")


def parse_openmetrics(text):
    """By family: type, and by labels a list of (time, value)."""
    lines = text.split("\n")
    check(lines[-2:] == ["# EOF", ""], "the end")
    families, name = {}, None
    for line in lines[:-2]:
        if head := re.fullmatch(r"# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) .+", line):
            name = head[1]
            check(name not in families, f"{name} is not in one place")
            families[name] = [None, {}]
        elif kind := re.fullmatch(r"# TYPE (\S+) (gauge|counter)", line):
            check(kind[1] == name and families[name] == [None, {}], line)
            families[name][0] = kind[2]
        else:
            sample = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)+)})?'
                                  r" (-?[\d.e+-]+) (\d+)", line)
            check(sample, line)
            check(sample[1] == name + "_total" * (families[name][0] == "counter"), line)
            series = families[name][1]
            check(sample[2] not in series or sample[2] == list(series)[-1], f"{line}: a series is not in one place")
            series.setdefault(sample[2], []).append((int(sample[4]), float(sample[3])))
    for kind, series in families.values():
        for samples in series.values():
            times, values = zip(*samples)
            check(all(a < b for a, b in zip(times, times[1:])), "times ascend")
            check(kind == "gauge" or list(values) == sorted(values), "a counter goes back")
    return families


def held_against_metrics(program, scenario, families):
    """What is exported has the ledger of the replica."""
    result = json.loads(program.run("run", scenario, "--replicas", 1, "--json"))
    ledger = {labels: samples[-1][1] for labels, samples in families["railyard_ledger_seconds"][1].items()}
    shares = {f'entry="{name}"': share for name, share in result["ledger"].items() if share > 0}
    check(ledger.keys() == shares.keys(), f"{ledger}\n{shares}")
    for entry, share in shares.items():
        check(abs(ledger[entry] / sum(ledger.values()) - share) < 1e-4, f"{entry}: {ledger[entry]} {share}")


def case_openmetrics_of_one_job(program, folder):
    text = (FOLDER / "one_job.toml").read_text().replace('name = "link"', 'name = "li\\"n\\\\k"')
    text = text.replace("nodes = 36", "nodes = 6").replace("nodes = 32", "nodes = 4")
    scenario = folder / "s.toml"
    scenario.write_text(text)
    program.run("export", "openmetrics", scenario, "-o", folder / "m.txt")
    families = parse_openmetrics((folder / "m.txt").read_text())
    gpus = families["DCGM_FI_DEV_GPU_UTIL"][1]
    check(len(gpus) == 4 * 8 and len(set(map(tuple, gpus.values()))) == 1, f"{len(gpus)} GPUs")
    labels = 'gpu="3",UUID="GPU-node00003-3",device="nvidia3",modelName="NVIDIA H100 SXM5 80GB",Hostname="node00003",instance="node00003"'
    samples = gpus[labels]
    check(samples[0][0] == 1767225600 and samples[-1][0] == 1767225600 + 360 * 86400, "the clock")
    check({value for _, value in samples} == {0, 100}, "busy or not")
    busy = sum(value == 100 for _, value in samples) / len(samples)
    check(0.97 < busy < 1, f"busy {busy}")
    watts = dict(families["DCGM_FI_DEV_POWER_USAGE"][1][labels])
    check(all((watts[at] > 200) == (value == 100) for at, value in samples), "power goes with work")
    nodes = [dict(families[f"slurm_nodes_{state}"][1][None]) for state in ("alloc", "down", "idle")]
    check(all(0 <= sum(state[at] for state in nodes) - 6 <= 1 for at in nodes[0]), "6 nodes, of which one may be "
          "broken in a job that has not noticed")
    check(max(nodes[1].values()) >= 1 and max(nodes[0].values()) == 4, "states")
    causes = families["railyard_interruptions"][1]
    check(set(causes) == {'cause="gpu"', 'cause="li\\"n\\\\k"'}, str(list(causes)))
    check(12 < causes['cause="gpu"'][-1][1] < 50, f"4 nodes, 360 days, 0.02 a day: {causes}")
    held_against_metrics(program, scenario, families)
    dashboard = json.loads((folder / "m.txt.dashboard.json").read_text())
    check(dashboard["id"] is None and dashboard["__inputs"][0]["name"] == "DS_PROMETHEUS", "dashboard")
    asked = {re.search(r"\w+(?=[{[])", panel["targets"][0]["expr"].split("(")[1])[0] for panel in dashboard["panels"]}
    check(asked == {name + "_total" * (kind == "counter") for name, (kind, _) in families.items()}, str(asked))
    check(len({panel["id"] for panel in dashboard["panels"]}) == len(families), "panels' ids")
    check(dashboard["time"]["from"] == "1767225600000", str(dashboard["time"]))


def case_openmetrics_of_many_jobs(program, folder):
    program.run("export", "openmetrics", FOLDER / "many_jobs.toml", "-o", folder / "m.txt")
    families = parse_openmetrics((folder / "m.txt").read_text())
    gpus = families["DCGM_FI_DEV_GPU_UTIL"][1]
    check(len(gpus) == 16 * 8 and not any("FB_USED" in name for name in families), f"{len(gpus)} GPUs; no model, no memory")
    held = dict(families["slurm_gpus_alloc"][1][None])
    running = dict(families["slurm_queue_running"][1][None])
    check(all(value == 32 * running[at] for at, value in held.items()) and max(held.values()) > 32, "GPUs of jobs")
    held_against_metrics(program, FOLDER / "many_jobs.toml", families)
    # At each time as many GPUs are busy as Slurm has given out, but for those of jobs that are being stopped.
    busy = {at: sum(dict(samples)[at] == 100 for samples in gpus.values()) for at in held}
    check(all(busy[at] <= held[at] for at in held), "no more GPUs are busy than are held")
    check(sum(busy.values()) > 0.97 * sum(held.values()), f"{sum(busy.values())} of {sum(held.values())} GPU samples")
    watts = families["DCGM_FI_DEV_POWER_USAGE"][1]
    check(all((dict(watts[name])[at] > 200) == (value == 100) for name, samples in gpus.items() for at, value in samples),
          "power goes with work")


def astra_sim(program, scenario, out, *settings):
    program.run("export", "astra-sim", scenario, "-o", out, *(word for s in settings for word in ("--set", s)))
    groups = json.loads((out / "groups.json").read_text())
    count = len(list(out.glob("workload.*.et")))
    ranks = [chakra_files.read_trace(out / f"workload.{rank}.et") for rank in range(count)]
    check(list(groups) == [str(i) for i in range(1, len(groups) + 1)], "groups are numbered from 1")
    return ranks, groups


def planned(program, scenario, *settings):
    """Seconds of the step that 'railyard plan' says: kernels, what is seen of communication, the bubble."""
    plan = json.loads(program.printed("plan", scenario, "--json", *(word for s in settings for word in ("--set", s))))
    parts = {part["name"]: part["seconds"] for part in plan["critical_path"]}
    bubble = parts.pop("pipeline bubble")
    parts.pop("waiting for stragglers")
    talk = sum(parts.pop(name) for name in list(parts) if name in {
        "tensor-parallel collectives", "context-parallel exchange", "expert all-to-all", "sends between stages",
        "gradients and weights", "activations to the host and back"})
    return sum(parts.values()), talk, bubble


def bytes_by_kind(nodes, groups):
    """(kind, ranks, apart): [count, bytes] of one rank's collectives."""
    out = {}
    for one in nodes:
        if one["type"] == chakra_files.COLL:
            members = groups[one["pg_name"]]
            key = chakra_files.COLLECTIVES[one["comm_type"]], len(members), members[1] - members[0]
            total = out.setdefault(key, [0, 0])
            total[0] += 1
            total[1] += one["comm_size"]
    return out


def case_astra_sim_has_the_step(program, folder):
    scenario, out = FOLDER / "step.toml", folder / "d"
    ranks, groups = astra_sim(program, scenario, out)
    check(len(ranks) == 32, f"{len(ranks)} ranks")
    check(chakra_files.check_together(ranks, groups) == 2 * 16 * 4, "four microbatches there and back on 16 pairs")
    # Each pass of a layer gathers and scatters twice: 8192 tokens x 4096 x 2 bytes. Of weights 2 bytes, of gradients 4.
    act = 8192 * 4096 * 2
    weights = (4 * (2 * 4096 * 5120 + 3 * 4096 * 14336 + 2 * 4096) + (2 * 128256 + 1) * 4096 / 2) / 8
    found = bytes_by_kind(ranks[0], groups)
    layers = 4 * 4 * 2 * 2
    expected = {("ALL_GATHER", 8, 1): (layers, layers * act / 8), ("REDUCE_SCATTER", 8, 1): (layers, layers * act),
                ("ALL_GATHER", 2, 8): (1, weights * 2 / 2), ("REDUCE_SCATTER", 2, 8): (1, weights * 4)}
    check(found.keys() == expected.keys(), str(found))
    for kind, (count, size) in expected.items():
        check(found[kind][0] == count and abs(found[kind][1] / size - 1) < 1e-4, f"{kind}: {found[kind]}, {size} bytes")
    sent = [one["comm_size"] for one in ranks[0] if one["type"] == chakra_files.SEND]
    check(sent == [act // 8] * 4, f"{sent}")
    # Imported again: the same counts and bytes of the first rank, and the step that 'railyard plan' has without
    # stragglers.
    text = program.run("import", "chakra", out, scenario)
    again = {(kind, int(n), int(apart)): [int(count), int(size)] for count, kind, n, apart, size in
             re.findall(r"# (\d+) ([A-Z_]+) of (\d+) ranks, (\d+) apart: (\d+) bytes", text)}
    check(again == found, f"{again}\n{found}")
    check(f"# 4 sends: {sum(sent)} bytes" in text, text)
    kernels, talk, bubble = planned(program, scenario)
    step = float(re.search(r"a step of ([\d.]+) ms", text)[1]) / 1e3
    check(abs(step / (kernels + talk + bubble) - 1) < 1e-4, f"imported {step} s, planned {kernels + talk + bubble} s")
    together = chakra_files.seconds_together(ranks)
    check(kernels < together < kernels + bubble, f"together {together} s, kernels {kernels} s, bubble {bubble} s")


def case_astra_sim_steps_come_back_within_a_percent(program, folder):
    """What hides slows the kernels beside it; messages of interleaved stages go around from the last to the first."""
    plans = {
        "no pipeline": "pipeline=1 data=4",
        "zero 2, between stages": "zero=2",
        "zero 2": "pipeline=1 data=4 zero=2",
        "recomputation": 'recompute="full"',
        "tensor-parallel collectives hide": "overlap_tensor=true",
        "four stages, interleaved": "tensor=2 pipeline=4 data=4 interleave=2 global_batch=32",
        "in buckets": 'tensor=1 pipeline=1 data=32 global_batch=32 software="nemo_25.09"',
        "eight stages on two nodes' GPUs each": "tensor=1 pipeline=8 data=4 global_batch=32",
    }
    for name, plan in plans.items():
        settings = [f"job.{'parallel.' * ('software' not in word)}{word}" for word in plan.split()]
        (folder / "s.toml").write_text(f'include = ["{FOLDER}/step.toml"]\n' + "\n".join(settings) + "\n")
        astra_sim(program, folder / "s.toml", folder / name)
        text = program.run("import", "chakra", folder / name, folder / "s.toml")
        step = float(re.search(r"a step of ([\d.]+) ms", text)[1]) / 1e3
        whole = sum(planned(program, folder / "s.toml"))
        check(abs(step / whole - 1) < 0.01, f"{name}: imported {step} s, planned {whole} s")


def case_astra_sim_collectives_take_as_long_as_perf_says(program, folder):
    """A rank that only talks: its collectives, one after another, at the sizes that perf is asked for."""
    settings = ("job.parallel.tensor=1", "job.parallel.pipeline=1", "job.parallel.data=32", "job.parallel.zero=0",
                "job.parallel.global_batch=32", "job.parallel.overlap_data=false")
    ranks, groups = astra_sim(program, FOLDER / "step.toml", folder / "d", *settings)
    reduce, = [one for one in ranks[0] if one["type"] == chakra_files.COLL]
    size = reduce["comm_size"]
    rows = json.loads(program.run("perf", "all_reduce", FOLDER / "step.toml", "-b", size, "-e", size, "--json"))["rows"]
    out = folder / "d"
    text = program.run("import", "chakra", out / "workload.0.et", out / "groups.json", FOLDER / "step.toml")
    talked = float(re.search(r"communication takes ([\d.]+) ms", text)[1])
    check(abs(talked / (rows[0]["time_s"] * 1e3) - 1) < 1e-3, f"{talked} ms, perf {rows[0]['time_s']} s")


def case_astra_sim_of_other_plans_goes_on(program, folder):
    """Every rank comes to its end, whatever the plan: messages and groups meet."""
    plans = {
        "interleaved": "tensor=2 pipeline=4 data=4 interleave=2 global_batch=32",
        "not overlapped": "overlap_data=false overlap_pipeline=false zero=0",
        "zero 2, between stages": "zero=2 recompute=full",
        "zero 2": "pipeline=1 data=4 zero=2 recompute=full",
        "zero 3, by shards": "tensor=1 pipeline=1 data=32 zero=3 shard_ranks=8 global_batch=64",
        "experts": "tensor=2 context=2 data=4 expert=8 overlap_expert=true sequence_parallel=false",
    }
    for name, plan in plans.items():
        settings = [f"job.parallel.{word}" for word in plan.split()]
        settings += ["job.model=mixtral_8x7b"] * (name == "experts")
        ranks, groups = astra_sim(program, FOLDER / "step.toml", folder / name, *settings)
        chakra_files.check_together(ranks, groups)
        kernels, talk, bubble = planned(program, FOLDER / "step.toml", *settings)
        together = chakra_files.seconds_together(ranks)
        check(0.99 * kernels < together < 1.01 * (kernels + talk + bubble),
              f"{name}: together {together} s, kernels {kernels} s, communication {talk} s, bubble {bubble} s")


def case_astra_sim_waits_for_activations_on_the_host(program, folder):
    settings = ["job.parallel.offload_layers=4", "override.gpu.h100_sxm.pcie_bandwidth=\"0.2 GB/s\""]
    ranks, _ = astra_sim(program, FOLDER / "step.toml", folder / "offloaded", *settings)
    kernels, talk, bubble = planned(program, FOLDER / "step.toml", *settings)
    together = chakra_files.seconds_together(ranks)
    check(talk > 10 * kernels, f"a wait that shows: {talk} s beside kernels of {kernels} s")
    check(abs(together / (kernels + talk + bubble) - 1) < 0.02, f"together {together} s, planned {kernels} + {talk} + {bubble} s")


def case_astra_sim_files_are_its_readers(program, folder):
    program.run("export", "astra-sim", FOLDER / "step.toml", "-o", folder / "d")
    lines = [re.fullmatch(r"(\w+): \[ (.*) \](?:  # .*)?", line)
             for line in (folder / "d" / "network.yml").read_text().splitlines() if not line.startswith("#")]
    network = {line[1]: line[2].split(", ") for line in lines}
    check(network["topology"] == ["Switch"] * 2 and network["npus_count"] == ["8", "4"], str(network))
    check(network["bandwidth"] == ["370.8", "48.5"] and len(network["latency"]) == 2, str(network))
    system = json.loads((folder / "d" / "system.json").read_text())
    check(all(len(system[f"{kind}-implementation"]) == 2 for kind in
              ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")), str(system))
    check(system["local-mem-bw"] == 3350 and system["roofline-enabled"] == 0, str(system))
    check(json.loads((folder / "d" / "memory.json").read_text()) == {"memory-type": "NO_MEMORY_EXPANSION"}, "memory")
    check(json.loads((folder / "d" / "logical_topology.json").read_text()) == {"logical-dims": ["8", "4"]}, "logical")


def case_astra_sim_refuses(program, folder):
    step = (FOLDER / "step.toml").read_text()
    fault = '\n[[cluster.fault]]\nnode = 1\npart = "nic"\nindex = 0\nspeed = 0.5\n'
    (folder / "fault.toml").write_text(step + fault)
    for scenario, said in ((FOLDER / "many_jobs.toml", "many jobs"), (folder / "fault.toml", "no slow parts"),
                           (FOLDER / "one_job.toml", "what a step of the job consists of")):
        out = program.run("export", "astra-sim", scenario, "-o", folder / "x", code=2)
        check(said in out and not (folder / "x").exists(), out)


# Settings that keep it small.
GOLDEN = {
    "astra-sim": ("step.toml", ("model.small.layers=2", "job.parallel.global_batch=4", "job.parallel.tensor=2",
                                "job.parallel.data=4", "cluster.nodes=2")),
    "goal": ("window.toml", ()),
    "htsim": ("window.toml", ()),
    "ns3": ("window.toml", ()),
    "openmetrics": ("one_job.toml", ("cluster.nodes=3", "job.nodes=2", "run.duration=90 day")),
    "openmetrics_of_many_jobs": ("many_jobs.toml", ("run.duration=2 day",)),
    "sacct": ("one_job.toml", ("cluster.nodes=3", "job.nodes=2", "run.duration=90 day")),
    "sacct_of_many_jobs": ("many_jobs.toml", ("run.duration=10 day",)),
    "simai": ("window.toml", ("cluster.nics_per_node=8",)),
    "simai_of_a_step": ("simai.toml", ("model.small.layers=2", "job.parallel.global_batch=4", "cluster.nodes=2",
                                       "job.parallel.pipeline=1")),
}


def golden_text(program, kind, folder):
    """Each file's digest, and its head as people read it."""
    scenario, settings = GOLDEN[kind]
    program.run("export", kind.split("_")[0], FOLDER / scenario, "-o", folder / "x",
                *(word for s in settings for word in ("--set", s)))
    files = sorted((folder / "x").iterdir()) if (folder / "x").is_dir() else sorted(folder.glob("x*"))
    lines = []
    for path in files:
        data = path.read_bytes()
        lines.append(f"== {path.name}, {len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}")
        if path.name in {"workload.0.et", f"workload.{len(files) - 6}.et"}:
            lines += [", ".join(f"{key} {value}" for key, value in one.items())
                      for one in chakra_files.read_trace(path)]
        elif path.suffix != ".et":
            text = path.read_text().splitlines()
            lines += text[:60] + ["..."] * (len(text) > 60)
    return "\n".join(lines) + "\n"


def case_bytes_are_those_recorded(program, folder):
    kinds = set(re.findall(r"^  ([\w-]+) ", program.run("export", "--list"), re.M)) - {"kind"}
    check(kinds == {kind.split("_")[0] for kind in GOLDEN}, f"a golden for each of {kinds}")
    for kind in GOLDEN:
        (folder / kind).mkdir()
        found, path = golden_text(program, kind, folder / kind), FOLDER / "golden" / f"{kind}.txt"
        if "--update" in sys.argv:
            path.write_text(found)
        recorded = path.read_text() if path.exists() else ""
        changed = [f"- {old}\n+ {new}" for old, new in zip(recorded.splitlines(), found.splitlines()) if old != new]
        check(found == recorded, f"{path.name} (--update rewrites it):\n" + "\n".join(changed[:5]))


def case_what_a_form_cannot_say_is_refused(program, folder):
    window = (FOLDER / "window.toml").read_text()
    (folder / "rails.toml").write_text(window.replace('"fat_tree"', '"single_switch"').replace("nodes_per_leaf = 4\n", "")
                                       .replace("oversubscription = 2\n", ""))
    check("regular trees of two tiers" in program.run("export", "htsim", folder / "rails.toml", "-o", folder / "x", code=2),
          "one switch")
    (folder / "ring.toml").write_text(window.replace('"incast"', '"ring"').replace('"3 GB"', '"3 MB"'))
    check("when another has ended" in program.run("export", "ns3", folder / "ring.toml", "-o", folder / "x", code=2), "ring")
    check("nothing exports 'sact'" in program.run("export", "sact", folder / "ring.toml", "-o", folder / "x", code=2), "kind")
    check("expected one from 0 to 4" in program.run("export", "sacct", FOLDER / "one_job.toml", "--replica", 5, "-o",
                                                    folder / "x", code=2), "replica")


if __name__ == "__main__":
    sys.exit(checks.run_cases(globals(), Program(sys.argv[1])))
