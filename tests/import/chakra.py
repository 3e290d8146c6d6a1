#!/usr/bin/python3
"""Traces of Chakra, written here as its schema has them, and the steps that jobs with them as `trace` have.

    chakra.py PATH_TO_RAILYARD
"""

import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import traceback

COMP, SEND, RECV, COLL = 4, 5, 6, 7
ALL_REDUCE, ALL_GATHER, SCATTER, REDUCE_SCATTER = 0, 2, 4, 7
KERNEL, HOST = dict(is_cpu_op=False), dict(is_cpu_op=True)
SCENARIO = """
[run]
duration = "1 h"
replicas = 1
[cluster]
node = "dgx_h100"
nodes = 4
nics_per_node = 8
[job]
checkpoint.mode = "none"
"""
MANY = SCENARIO[:SCENARIO.index("[job]")] + """
[scheduler]
[[jobs.kind]]
name = "any"
rate = "1 /h"
gpus = 8
work = "1 h"
"""
# A leaf for each node, an eighth of what its NICs bring above it.
NARROW = """
[fabric.compute]
topology = "fat_tree"
nodes_per_leaf = 2
oversubscription = 8
"""


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value) if value else b""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    """Bools are field 27, lists of them 28, int64 9, doubles 3, texts 29; members of a oneof are written though they are 0."""
    if isinstance(value, list):
        values = b"".join(varint(v) for v in value)
        return field(1, name) + varint(28 << 3 | 2) + varint(len(values) + 2) + field(1, values)
    if isinstance(value, bool):
        return field(1, name) + varint(27 << 3) + varint(value)
    if isinstance(value, int):
        return field(1, name) + varint(9 << 3) + varint(value)
    return field(1, name) + field(3 if isinstance(value, float) else 29, value)


def node(number, kind, needs=(), micros=0, **attributes):
    out = field(1, number) + field(2, f"n{number}") + field(3, kind)
    out += field(5, b"".join(varint(i) for i in needs)) if needs else b""
    out += field(7, micros)
    return out + b"".join(field(10, attribute(name, value)) for name, value in attributes.items())


def trace(*nodes, version="0.0.4"):
    return b"".join(varint(len(m)) + m for m in (field(1, version), *nodes))


class Tester:
    def __init__(self, railyard, folder):
        self.railyard, self.folder = railyard, folder

    def run(self, *arguments):
        done = subprocess.run([self.railyard, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              timeout=120)
        return done.returncode, done.stdout + done.stderr

    def replay(self, ranks, groups=None, scenario=SCENARIO):
        """The step's milliseconds and shares, or why there is none. `ranks`: files by rank, or one of all ranks."""
        if (self.folder / "t").exists():
            shutil.rmtree(self.folder / "t")
        (self.folder / "t").mkdir()
        for rank, file in (ranks if isinstance(ranks, dict) else {0: ranks}).items():
            (self.folder / f"t/s.{rank}.et").write_bytes(file)
        if groups is not None:
            (self.folder / "t/groups.json").write_text(groups if isinstance(groups, str) else json.dumps(groups))
        (self.folder / "s.toml").write_text(scenario)
        code, out = self.run("import", "chakra", "t" if isinstance(ranks, dict) else "t/s.0.et", "s.toml")
        found = re.search(r"a step of ([\d.e+-]+) ms; compute ([\d.]+) %, exposed communication ([\d.]+) %, "
                          r"waiting for other ranks ([\d.]+) %", " ".join(out.replace("#", " ").split()))
        assert (code == 0) == bool(found), out
        return [float(n) for n in found.groups()] if found else f"exit {code}: {out}"

    def alike(self, *nodes, **given):
        """Milliseconds of a step that all ranks do alike."""
        found = self.replay(trace(*nodes), **given)
        return found if isinstance(found, str) else found[0]

    def measured(self, collective, size, nodes, scenario=SCENARIO):
        """Milliseconds of it by 'railyard perf'."""
        (self.folder / "p.toml").write_text(scenario + 'step.time = "1 s"\n')
        code, out = self.run("perf", collective, "p.toml", "-b", size, "-e", size, "--nodes", nodes, "--json")
        assert code == 0, out
        return json.loads(out)["rows"][0]["time_s"] * 1e3


def near(what, found, expected, tolerance=1e-6):
    assert isinstance(found, float) and abs(found / expected - 1) < tolerance, f"{what}: {found}, expected {expected}"


def all_ranks(of):
    return {rank: trace(*of(rank)) for rank in range(32)}


def computing(t):
    kernels = (node(0, COMP, (), 300, **KERNEL), node(1, COMP, (), 200, **KERNEL))
    near("kernels, one after another", t.alike(*kernels), 0.5)
    near("the host beside them", t.alike(node(0, COMP, (), 300, **HOST), node(1, COMP, (), 200, **KERNEL)), 0.3)
    near("a kernel waits for the host",
         t.alike(node(0, COMP, (), 300, **HOST), node(1, COMP, (0,), 200, **KERNEL)), 0.5)
    # The longest way: 0, 2, 4, 5 of 7 + 90 + 1 + 3 us, whatever the host does beside it.
    diamond = (node(0, COMP, (), 7, **KERNEL), node(1, COMP, (0,), 40, **HOST), node(2, COMP, (0,), 90, **KERNEL),
               node(3, COMP, (1,), 49, **HOST), node(4, COMP, (2, 3), 1, **KERNEL), node(5, COMP, (4,), 3, **HOST))
    assert t.alike(*diamond) == 0.101
    assert t.replay(all_ranks(lambda rank: diamond))[:2] == [0.101, 100.0]
    flops = 10 ** 15
    modelled = t.alike(node(0, COMP, num_ops=flops, tensor_size=1, **KERNEL))
    assert 1000 < modelled < 2000, f"10^15 FLOPs on an H100: {modelled} ms"
    slow = SCENARIO.replace("[job]", '[[cluster.fault]]\npart = "gpu"\nspeed = 0.5\n[job]')
    near("a GPU at half its clocks", t.alike(node(0, COMP, (), 300, **KERNEL), scenario=slow), 0.6)


def communicating(t):
    size = 1 << 30
    alone = t.measured("all_reduce", size, 4)
    reduce = dict(comm_type=ALL_REDUCE, comm_size=size, **KERNEL)
    near("a collective by its size", t.alike(node(0, COLL, **reduce)), alone)
    near("of all ranks", t.replay(all_ranks(lambda rank: [node(0, COLL, **reduce)]))[0], alone)
    near("and a kernel, hidden", t.alike(node(0, COLL, **reduce), node(1, COMP, (), 900, **KERNEL)), alone)
    near("that waits for it", t.alike(node(0, COLL, **reduce), node(1, COMP, (0,), 900, **KERNEL)), alone + 0.9)
    # Each rank gives its part of a gather.
    near("a gather", t.alike(node(0, COLL, comm_type=ALL_GATHER, comm_size=size // 32, **KERNEL)),
         t.measured("all_gather", size, 4))
    near("a scatter", t.alike(node(0, COLL, comm_type=REDUCE_SCATTER, comm_size=size, **KERNEL)),
         t.measured("reduce_scatter", size, 4))
    inside = {"tp": list(range(8)), "dp": list(range(0, 32, 8))}
    near("a group of one node", t.alike(node(0, COLL, pg_name="tp", **reduce), groups=inside),
         t.measured("all_reduce", size, 1))
    both = t.alike(node(0, COLL, pg_name="tp", **reduce), node(1, COLL, pg_name="dp", **reduce), groups=inside)
    data = t.alike(node(1, COLL, pg_name="dp", **reduce), groups=inside)
    assert data > 1.5 * alone, f"eight groups share the NICs: {data}, one has {alone}"
    near("two groups at once", both, data)
    narrow = SCENARIO.replace("replicas = 1", 'replicas = 1\nfidelity = "flow"') + NARROW
    held_up = t.alike(node(0, COLL, pg_name="dp", **reduce), groups=inside, scenario=narrow)
    assert held_up > 2 * data, f"a narrow network: {held_up}, a full one {data}"
    sent = t.alike(node(0, SEND, comm_dst=8, comm_size=10 ** 9, **KERNEL))
    assert 15 < sent < 40, f"1 GB over a NIC of 50 GB/s: {sent} ms"
    return alone, sent


def ranks_together(t, alone, sent):
    """Against sums by hand."""
    size = 1 << 30
    # Rank 5 comes 3 ms after the others: 31 of 32 wait for it, then all are in the collective.
    late = all_ranks(lambda rank: [node(0, COMP, (), 4000 if rank == 5 else 1000, **KERNEL),
                                   node(1, COLL, (0,), comm_type=ALL_REDUCE, comm_size=size, **KERNEL)])
    whole, compute, exposed, waiting = t.replay(late)
    near("all wait for the last", whole, 4 + alone)
    near("computing", compute, 100 * (31 + 4) / 32 / whole, 0.1)
    near("the collective", exposed, 100 * alone / whole, 0.1)
    near("waiting", waiting, 100 * 31 * 3 / 32 / whole, 0.1)
    # Four stages of eight ranks, a microbatch from one to the next and another behind it: 5 kernels of 2 ms deep,
    # and 3 sends of the first. Sends of the second hide behind kernels where these are longer.
    def stage(rank):
        out = []
        for i in range(2):
            at = 10 * i
            if rank >= 8:
                out.append(node(at, RECV, comm_src=rank - 8, comm_size=10 ** 9, comm_tag=i, **KERNEL))
            out.append(node(at + 1, COMP, (at,) if rank >= 8 else (), 60_000, **KERNEL))
            if rank < 24:
                out.append(node(at + 2, SEND, (at + 1,), comm_dst=rank + 8, comm_size=10 ** 9, comm_tag=i, **KERNEL))
        return out
    whole, compute, *_ = t.replay(all_ranks(stage))
    near("a pipeline", whole, 5 * 60 + 3 * sent)
    near("each stage computes", compute, 100 * 120 / whole, 2e-3)


def modelled_step_comes_back(t):
    """The critical path of a step that the model made, as a trace, takes what the model says."""
    scenario = SCENARIO + '''model = "llama3_8b"
software = "megatron_lm"
parallel.tensor = 8
parallel.global_batch = 16
parallel.jitter = 0.0
parallel.overlap_data = false
'''
    (t.folder / "m.toml").write_text(scenario)
    code, out = t.run("plan", "m.toml", "--json")
    assert code == 0, out
    plan = json.loads(out)["given"]
    step_s, compute = plan["step_s"], plan["compute_s"]
    layers, hidden, tokens, passes = 32, 4096, 8192, 4
    parameters = 8030261248 / 8
    groups = {"tp": list(range(8)), "dp": list(range(0, 32, 8))}
    nodes, last, number = [], (), 0
    per_layer = round(compute * 1e6 / (2 * layers * passes))

    def add(kind, micros=0, **attributes):
        nonlocal last, number
        nodes.append(node(number, kind, last, micros, **attributes, **KERNEL))
        last, number = (number,), number + 1

    moved = tokens * hidden * 2
    for _ in range(2 * layers * passes):  # forward and backward
        add(COMP, per_layer)
        for _ in range(2):
            add(COLL, comm_type=ALL_GATHER, comm_size=moved // 8, pg_name="tp")
            add(COLL, comm_type=REDUCE_SCATTER, comm_size=moved, pg_name="tp")
    add(COLL, comm_type=REDUCE_SCATTER, comm_size=int(4 * parameters), pg_name="dp")
    add(COLL, comm_type=ALL_GATHER, comm_size=int(2 * parameters / 4), pg_name="dp")
    near("a modelled step", t.alike(*nodes, groups=groups), step_s * 1e3, 0.01)


def in_a_job(t):
    """A job runs on it as on any other step."""
    (t.folder / "j.toml").write_text(SCENARIO + 'trace = "t/s.0.et"\n')
    t.alike(node(0, COMP, (), 9 * 10 ** 5, **KERNEL),
            node(1, COLL, (0,), comm_type=ALL_REDUCE, comm_size=10 ** 10, **KERNEL))
    code, out = t.run("run", "j.toml", "--json")
    assert code == 0, out
    ledger = json.loads(out)["ledger"]
    step = 0.9 + t.measured("all_reduce", 10 ** 10, 4) * 1e-3
    near("the ledger's computing", ledger["productive"] / (ledger["productive"] + ledger["exposed_communication"]),
         0.9 / step, 1e-6)
    for key, said in {'stage = [{ name = "a", steps = 5 }]': "how long a step takes in each stage must be modelled",
                      'step.time = "1 s"': "one of the two is the step",
                      'recovery.policy = "shrink"': "how long a step takes on fewer nodes must be modelled"}.items():
        (t.folder / "k.toml").write_text(SCENARIO + f'trace = "t/s.0.et"\n{key}\n')
        code, out = t.run("run", "k.toml")
        assert code == 2 and said in out, out
    step = json.loads(t.run("run", "j.toml", "--json")[1])
    (t.folder / "k.toml").write_text(SCENARIO + 'trace = "t/s.0.et"\ntrace_node = "dgx_b200"\n')
    older = json.loads(t.run("run", "k.toml", "--json")[1])
    ratio = older["ledger"]["exposed_communication"] / older["ledger"]["productive"]
    assert ratio < 0.7 * step["ledger"]["exposed_communication"] / step["ledger"]["productive"], ratio
    every = t.alike(node(1, COLL, involved_dim=[True, True], comm_type=ALL_REDUCE, comm_size=10 ** 10, **KERNEL))
    near("all dimensions are all ranks", every, t.alike(node(1, COLL, comm_type=ALL_REDUCE, comm_size=10 ** 10, **KERNEL)))
    (t.folder / "k.toml").write_text(SCENARIO + 'model = "llama3_8b"\nparallel.tensor = 8\nparallel.jitter = 0.01\n'
                                     'software = "megatron_lm"\ntrace = "t/s.0.et"\n'
                                     '[[cluster.fault]]\npart = "hbm"\nspeed = 0.5\n')
    code, out = t.run("run", "k.toml")
    said = ("job.parallel.jitter: has no effect beside job.trace", "its kernels have their times",
            "the fault of hbm 0 of node 0 at 50 % slows nothing", "MFU of a step")
    assert code == 0 and all(text in " ".join(out.split()) for text in said), out


def refused(t):
    reduce = dict(comm_type=ALL_REDUCE, comm_size=1 << 20, **KERNEL)
    odd = {"odd": [0, 1, 3], "far": [0, 32], "other": [1, 2], "tp": list(range(8))}
    one = trace(node(0, COMP, (), 5, **KERNEL))
    lone = {rank: trace(node(3, SEND, comm_dst=1, comm_size=5, **KERNEL)) if rank == 0 else one for rank in range(32)}
    sizes = all_ranks(lambda rank: [node(3, COLL, **{**reduce, "comm_size": 8 if rank == 7 else 9})])
    fewer = all_ranks(lambda rank: [node(i, COLL, **reduce) for i in range(1 if rank == 7 else 2)])
    # Ranks 0 and 1 each send only when they have received.
    knot = {rank: trace(node(3, RECV, comm_src=1 - rank, comm_size=5, **KERNEL),
                        node(4, SEND, (3,), comm_dst=1 - rank, comm_size=5, **KERNEL)) if rank < 2 else one
            for rank in range(32)}
    cases = [
        ("does not begin with its version", b"\x1f\x8bxx", None),
        ("expected schema 0.0.4, found '0.0.2'", trace(node(0, COMP, (), 5), version="0.0.2"), None),
        ("cut off", one[:-2], None),
        ("the trace has no nodes", trace(), None),
        ("node 0 'n0': another node has this id", trace(node(0, COMP, (), 5), node(0, COMP, (), 6)), None),
        ("node 0 'n0': it depends on node 7, which is not there", trace(node(0, COMP, (7,), 5)), None),
        ("it depends on itself", trace(node(1, COMP, (2,), 5), node(2, COMP, (1,), 5)), None),
        ("nothing says which ranks the group 'tp' has", trace(node(0, COLL, pg_name="tp", **reduce)), None),
        ("no ranks in equal steps", trace(node(0, COLL, pg_name="odd", **reduce)), odd),
        ("gives its group 'far' the rank 32: the job has 32 GPUs", trace(node(0, COLL, pg_name="far", **reduce)), odd),
        ("its group 'other' the trace's own rank, 0", trace(node(0, COLL, pg_name="other", **reduce)), odd),
        ("expected the ranks of the group 'tp'", one, {"tp": "all"}),
        ("expected groups and their ranks in JSON", one, "{"),
        ("neither duration_micros nor num_ops", trace(node(0, COMP, **KERNEL)), None),
        ("has comm_type 4", trace(node(0, COLL, comm_type=SCATTER, comm_size=5, **KERNEL)), None),
        ("comm_size does not say", trace(node(0, COLL, comm_type=ALL_REDUCE, **KERNEL)), None),
        ("expected comm_size of 0 or more, found -5", trace(node(0, COLL, **{**reduce, "comm_size": -5.0})), None),
        ("expected num_ops of 0 or more, found -5", trace(node(0, COMP, num_ops=-5.0, **KERNEL)), None),
        ("said to run on the host", trace(node(0, COLL, comm_type=ALL_REDUCE, comm_size=5, **HOST)), None),
        ("two ranks below 32", trace(node(0, RECV, comm_src=0, comm_size=5, **KERNEL)), None),
        ("two ranks below 32) and comm_size", trace(node(0, SEND, comm_dst=3.5, comm_size=5, **KERNEL)), None),
        ("says that it sends from rank 2", trace(node(0, SEND, comm_src=2, comm_dst=3, comm_size=5)), None),
        ("more than an hour", trace(node(0, COMP, (), 10 ** 10, **KERNEL)), None),
        ("no node has the type 0", trace(node(0, 0)), None),
        ("no node has the type 9", trace(node(0, 9)), None),
        ("nothing in it takes time", trace(node(0, 1)), None),
        ("rank 1 is missing: the last one is 2", {0: one, 2: one}, None),
        ("traces of 2 ranks; the job has 32 GPUs", {0: one, 1: one}, None),
        ("node 3 'n3': rank 1 does not receive it", lone, None),
        ("its kind or its size differs from that of rank 0, node 3", sizes, None),
        ("node 1 'n1': collective 2 of its group: rank 7 has 1", fewer, None),
        ("it depends on itself, by way of others", knot, None),
        ("takes no time", trace(node(1, COLL, **{**reduce, "comm_size": 0})), None),
        ("expected a text for pg_name", trace(node(0, COLL, pg_name=3, **reduce)), None),
        ("expected a number for is_cpu_op", trace(node(0, COMP, (), 5, is_cpu_op="no")), None),
        ("involved_dim leaves out dimensions", trace(node(0, COLL, involved_dim=[True, False], **reduce)), None),
        ("the group 'tp' is there twice", one, '{"tp": [0, 1], "tp": [0, 2]}'),
    ]
    for said, ranks, groups in cases:
        found = t.replay(ranks, groups)
        assert isinstance(found, str), f"not refused: {said}"
        assert "exit 2" in found and said in " ".join(found.split()), f"not said: {said}\n{found}"
    found = t.replay(one, scenario=MANY)
    assert "exit 2" in found, found
    code, out = t.run("import", "chakra", "t/s.0.et")
    assert code == 2, out
    return len(cases)


def main():
    with tempfile.TemporaryDirectory() as folder:
        t = Tester(str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(folder))
        try:
            computing(t)
            ranks_together(t, *communicating(t))
            modelled_step_comes_back(t)
            in_a_job(t)
            count = refused(t)
        except AssertionError as wrong:
            print(wrong or traceback.format_exc())
            return 1
    print(f"steps as they should be, {count} refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
