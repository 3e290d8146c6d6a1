#!/usr/bin/python3
"""What 'railyard export' writes, read by parsers of its own and, where there is one, by 'railyard import'.

    run.py PATH_TO_RAILYARD

The parsers hold each file against what the format asks for: counts that must agree, numbers that must fit, times that
must ascend.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
RATES = {"gpu": 0.02, "link": 0.01}  # of one_job.toml, per node and day


class Failure(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Failure(message)


class Program:
    def __init__(self, path):
        self.path = str(pathlib.Path(path).resolve())

    def run(self, *arguments, code=0):
        done = subprocess.run([self.path, *map(str, arguments)], capture_output=True, text=True, timeout=120)
        check(done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr


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


def main():
    program = Program(sys.argv[1])
    failed = passed = 0
    for name, run in list(globals().items()):
        if not name.startswith("case_"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                run(program, pathlib.Path(folder))
                passed += 1
            except Failure as failure:
                failed += 1
                print(f"--- {name.removeprefix('case_')}\n{failure}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
