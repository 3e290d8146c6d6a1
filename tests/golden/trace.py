#!/usr/bin/python3
"""What `railyard trace` writes, decoded again by protoc and held against the program's other answers.

usage: trace.py RAILYARD

Every trace: the field numbers are Perfetto's, time never goes back, slices nest, whatever begins ends. A
replica: its phases follow each other from 0 to its end without a gap; the time in each, the checkpoints and
the interruptions are those of the database. Many jobs: each run, and the GPUs held and the jobs left as the
metrics say. A window: flows, pauses and the time paused are those of
`window --json`. A step: its parts add up to the step.
"""

import collections
import json
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTO = ROOT / "tools" / "trace" / "perfetto.proto"
# perfetto.dev/docs/reference/trace-packet-proto, by message.
PUBLIC = {
    "Trace": {"packet": 1},
    "TracePacket": {"timestamp": 8, "trusted_packet_sequence_id": 10, "track_event": 11, "sequence_flags": 13,
                    "track_descriptor": 60},
    "TrackDescriptor": {"uuid": 1, "name": 2, "process": 3, "parent_uuid": 5, "counter": 8},
    "ProcessDescriptor": {"pid": 1, "process_name": 6},
    "CounterDescriptor": {"unit_name": 6},
    "TrackEvent": {"debug_annotations": 4, "type": 9, "track_uuid": 11, "name": 23, "double_counter_value": 44},
    "DebugAnnotation": {"int_value": 4, "double_value": 5, "string_value": 6, "name": 10},
    "Type": {"TYPE_UNSPECIFIED": 0, "TYPE_SLICE_BEGIN": 1, "TYPE_SLICE_END": 2, "TYPE_INSTANT": 3, "TYPE_COUNTER": 4},
}

problems = []


def check(condition, message):
    if not condition:
        problems.append(message)


def declared():
    """The proto's fields by message."""
    found = collections.defaultdict(dict)
    inside = []
    for line in PROTO.read_text().splitlines():
        if opened := re.match(r"\s*(?:message|enum) (\w+) \{", line):
            inside.append(opened[1])
        elif line.strip() == "}":
            inside.pop()
        elif field := re.match(r"\s*(?:(?:optional|repeated) \w+ )?(\w+) = (\d+);", line):
            if inside:
                found[inside[-1]][field[1]] = int(field[2])
    return dict(found)


def decode(path):
    """Packets as nested dicts of lists, from protoc's text."""
    text = subprocess.run(["protoc", "--decode=railyard.perfetto.Trace", f"--proto_path={ROOT}", "tools/trace/perfetto.proto"],
                          stdin=path.open("rb"), cwd=ROOT, capture_output=True, text=True, check=True).stdout
    root = collections.defaultdict(list)
    stack = [root]
    for line in text.splitlines():
        line = line.strip()
        if line == "}":
            stack.pop()
        elif line.endswith("{"):
            stack[-1][line[:-2]].append(collections.defaultdict(list))
            stack.append(stack[-1][line[:-2]][-1])
        else:
            name, value = line.split(": ", 1)
            stack[-1][name].append(json.loads(value.replace("\\'", "'")) if value.startswith('"') else value)
    return root["packet"]


class Trace:
    """Tracks by uuid, slices and instants by track name."""

    def __init__(self, path):
        self.names, self.groups, self.counters = {}, {}, set()
        self.slices, self.instants, self.counts = (collections.defaultdict(list) for _ in range(3))
        open_slices = collections.defaultdict(list)
        now = 0
        for packet in decode(path):
            if packet["track_descriptor"]:
                track = packet["track_descriptor"][0]
                uuid = track["uuid"][0]
                check(uuid not in self.names, f"{path.name}: track {uuid} twice")
                self.names[uuid] = (track["name"] or track["process"][0]["process_name"])[0]
                self.groups[uuid] = (track["parent_uuid"] or [None])[0]
                if track["counter"]:
                    self.counters.add(uuid)
                continue
            event = packet["track_event"][0]
            at, uuid, kind = int(packet["timestamp"][0]), event["track_uuid"][0], event["type"][0]
            check(at >= now, f"{path.name}: time goes back to {at} ns")
            now = at
            check(uuid in self.names, f"{path.name}: nobody described track {uuid}")
            check((kind == "TYPE_COUNTER") == (uuid in self.counters), f"{path.name}: {kind} on {self.names.get(uuid)}")
            name = self.names[uuid]
            if kind == "TYPE_SLICE_BEGIN":
                open_slices[uuid].append((event["name"][0], at, event))
            elif kind == "TYPE_SLICE_END":
                check(open_slices[uuid], f"{path.name}: {name}: an end without a beginning at {at} ns")
                if open_slices[uuid]:
                    opened, begun, whole = open_slices[uuid].pop()
                    self.slices[uuid].append((opened, begun, at, len(open_slices[uuid]), whole))
            elif kind == "TYPE_INSTANT":
                self.instants[name].append((event["name"][0], at))
            else:
                self.counts[name].append((at, float(event["double_counter_value"][0])))
        for uuid, left in open_slices.items():
            check(not left, f"{path.name}: {self.names[uuid]}: {len(left)} slices never end")

    def of(self, name):
        """The slices of all tracks of this name, in order."""
        return sorted((s for uuid, all_of in self.slices.items() if self.names[uuid] == name for s in all_of),
                      key=lambda s: s[1])

    def in_group(self, part):
        return [s for uuid, all_of in self.slices.items() for s in all_of
                if self.groups[uuid] and part in self.names[self.groups[uuid]]]


def replica(railyard, folder, scenario, number, settings=()):
    path, db = folder / "replica.pftrace", folder / "replica.sqlite"
    db.unlink(missing_ok=True)
    more = [word for setting in settings for word in ("--set", setting)]
    subprocess.run([railyard, "trace", scenario, "-o", path, "--replica", str(number), *more], cwd=ROOT, check=True,
                   capture_output=True)
    subprocess.run([railyard, "run", scenario, "--db", db, "--replicas", str(number + 1), "--json", *more], cwd=ROOT,
                   check=True, capture_output=True)
    rows = sqlite3.connect(db)
    simulated = rows.execute("SELECT simulated_ns FROM replicas WHERE replica = ?", [number]).fetchone()[0]
    # Where a metric is a mean per interruption, the sum of its seconds.
    metrics = dict(rows.execute("SELECT name, coalesce(sum, value) FROM metrics WHERE replica = ?", [number]))
    trace = Trace(path)
    phases = trace.of("phase")
    at = 0
    spent = collections.Counter()
    for name, begun, ended, depth, _ in phases:
        check(depth == 0 and begun == at, f"{scenario}: phase {name} begins at {begun} ns, the one before ended at {at}")
        at = ended
        spent[name] += ended - begun
    check(at == simulated, f"{scenario}: phases end at {at} ns, the replica at {simulated}")
    for phase in ("detection", "replacement", "requeue_wait", "restart", "restore"):
        told = metrics[f"{phase}_per_interruption"] or 0
        # A planned stop's restart and restore belong to no interruption.
        close = spent[phase] * 1e-9 >= told - 1e-6 if metrics["planned_interruptions"] else \
            abs(spent[phase] * 1e-9 - told) < 1e-6 * max(1, told)
        check(close, f"{scenario}: {phase} for {spent[phase] * 1e-9} s, the database says {told}")
    check(len(trace.instants["checkpoints"]) == metrics["checkpoints"], f"{scenario}: checkpoints")
    happened = len(trace.instants["interruptions"])
    check(happened >= metrics["interruptions"] > 0, f"{scenario}: {happened} interruptions")
    rates = [v for name, values in trace.counts.items() if "write" in name for _, v in values]
    check(max(rates) > 0 and min(rates) == 0, f"{scenario}: the stores' rates")
    for _, begun, ended, _, _ in trace.in_group("nodes out of service"):
        check(0 <= begun <= ended <= simulated, f"{scenario}: a node is away outside of the replica")
    return len(phases)


def world(railyard, folder, scenario, settings=()):
    path, db = folder / "world.pftrace", folder / "world.sqlite"
    db.unlink(missing_ok=True)
    more = [word for setting in settings for word in ("--set", setting)]
    subprocess.run([railyard, "trace", scenario, "-o", path, *more], cwd=ROOT, check=True, capture_output=True)
    subprocess.run([railyard, "run", scenario, "--db", db, "--replicas", "1", "--json", *more], cwd=ROOT, check=True,
                   capture_output=True)
    rows = sqlite3.connect(db)
    simulated = rows.execute("SELECT simulated_ns FROM replicas").fetchone()[0]
    gpus = rows.execute("SELECT gpus FROM points").fetchone()[0]
    metrics = dict(rows.execute("SELECT name, value FROM metrics"))
    trace = Trace(path)
    runs = trace.in_group("jobs that run")
    started = rows.execute("SELECT count(*) FROM events WHERE kind = 'started'").fetchone()[0]
    check(len(runs) == started > 0, f"{scenario}: {len(runs)} runs of {started}")
    check(all(depth == 0 and 0 <= begun <= ended <= simulated for _, begun, ended, depth, _ in runs),
          f"{scenario}: runs of one track overlap, or lie outside of the replica")
    held = trace.counts["GPUs that jobs hold"] + [(simulated, 0.0)]
    check(max(v for _, v in held) <= gpus, f"{scenario}: jobs hold more GPUs than there are")
    utilisation = sum(v * (after - at) for (at, v), (after, _) in zip(held, held[1:])) / (gpus * simulated)
    # The metric also has what pods hold whose job has not all of them yet.
    check(-1e-9 < metrics["utilisation"] - utilisation < 1e-3, f"{scenario}: GPUs held {utilisation}, not {metrics['utilisation']}")
    unfinished = trace.counts["jobs that run"][-1][1] + trace.counts["jobs that wait"][-1][1]
    check(unfinished == metrics["jobs_running"] + metrics["jobs_waiting"], f"{scenario}: {unfinished} jobs are left")
    check(len(trace.instants["interruption"]) == metrics["interruptions"], f"{scenario}: interruptions")
    return len(runs)


def window(railyard, folder, scenario):
    path = folder / "window.pftrace"
    subprocess.run([railyard, "trace", scenario, "--window", "-o", path], cwd=ROOT, check=True, capture_output=True)
    told = json.loads(subprocess.run([railyard, "window", scenario, "--json"], cwd=ROOT, check=True, capture_output=True,
                                     text=True).stdout)["windows"]
    trace = Trace(path)
    flows = trace.in_group("flows by sender")
    check(len(flows) == sum(t["flows"] for w in told for t in w["traffic"]), f"{scenario}: {len(flows)} flows")
    check(max(f[2] for f in flows) == max(int(t["last_end_s"] * 1e9) for w in told for t in w["traffic"]),
          f"{scenario}: the last flow's end")
    for w in told:
        waits = trace.in_group(f"{w['network']} network: links that wait")
        check(len(waits) == sum(t["pauses"] for t in w["tiers"]), f"{scenario}: {w['network']}: {len(waits)} pauses")
        paused = sum(ended - begun for _, begun, ended, _, _ in waits) * 1e-9
        said = sum(t["paused_s"] for t in w["tiers"])
        check(abs(paused - said) <= 2e-9 * len(waits), f"{scenario}: {w['network']}: paused for {paused}, not {said} s")
    check(trace.in_group("links that wait") and any(v > 0 for _, v in trace.counts["links paused"]),
          f"{scenario}: nothing waits: the case proves nothing")
    return len(flows)


def step(railyard, folder, scenario):
    path = folder / "step.pftrace"
    subprocess.run([railyard, "trace", scenario, "--step", "-o", path], cwd=ROOT, check=True, capture_output=True)
    told = json.loads(subprocess.run([railyard, "run", scenario, "--json", "--replicas", "1"], cwd=ROOT, check=True,
                                     capture_output=True, text=True).stdout)
    trace = Trace(path)
    length = told["metrics"]["step_time"]["mean"]
    for track in ("where the time goes", "critical path, each kind of work together"):
        slices = trace.of(track)
        check(slices and abs(max(s[2] for s in slices) * 1e-9 - length) < 1e-6 * length, f"{scenario}: {track}")
        check(all(a[2] == b[1] for a, b in zip(slices, slices[1:])), f"{scenario}: {track} has gaps")
    return len(trace.names)


def main():
    railyard = sys.argv[1]
    check(declared() == PUBLIC, f"tools/trace/perfetto.proto is not the public format: {declared()}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        phases = replica(railyard, folder, "scenarios/hello/first.toml", 2)
        phases += replica(railyard, folder, "scenarios/studies/tiers.toml", 1)
        phases += replica(railyard, folder, "scenarios/studies/llama3_405b_54_days.toml", 0,
                          ["run.duration=6 days"])
        runs = world(railyard, folder, "scenarios/studies/year_of_research_cluster.toml", ["run.duration=3 days"])
        for scheduler in ("slurm", "kubernetes", "volcano", "kueue"):
            runs += world(railyard, folder, "scenarios/studies/slurm_vs_kubernetes.toml", [f"scheduler.kind={scheduler}"])
        flows = window(railyard, folder, "tests/determinism/window.toml")
        step(railyard, folder, "scenarios/studies/llama3_405b_54_days.toml")
    for problem in problems[:20]:
        print(problem)
    print(f"{phases} phases, {runs} runs of jobs, {flows} flows")
    print(f"{0 if problems else 1} passed, {1 if problems else 0} failed")
    return 1 if problems else 0


sys.exit(main())
