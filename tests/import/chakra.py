#!/usr/bin/python3
"""Traces of Chakra, written here as its schema has them, and what 'railyard import chakra' replays them to.

    chakra.py PATH_TO_RAILYARD
"""

import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

COMP, SEND, RECV, COLL = 4, 5, 6, 7
ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, SCATTER = 0, 2, 7, 4
SCENARIO = """
[run]
duration = "1 h"
replicas = 1
[cluster]
node = "dgx_h100"
nodes = 4
nics_per_node = 8
[job]
step.time = "1 s"
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
    """Bools are field 27, int64 9, doubles 3, texts 29; members of a oneof are written though they are 0."""
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
                              timeout=60)
        return done.returncode, done.stdout + done.stderr

    def replay(self, *nodes, groups=None, scenario=SCENARIO, file=None):
        """Milliseconds of the step, or why there are none."""
        (self.folder / "s.0.et").write_bytes(file if file is not None else trace(*nodes))
        (self.folder / "s.toml").write_text(scenario)
        (self.folder / "g.json").write_text(json.dumps(groups or {}))
        code, out = self.run("import", "chakra", "s.0.et", "g.json", "s.toml")
        found = re.search(r'step.time = "([\d.e+]+) ms"', out)
        assert (code == 0) == bool(found), out
        return float(found[1]) if found else f"exit {code}: {out}"

    def measured(self, collective, size, nodes, scenario=SCENARIO):
        """Milliseconds of it by 'railyard perf'."""
        (self.folder / "p.toml").write_text(scenario)
        code, out = self.run("perf", collective, "p.toml", "-b", size, "-e", size, "--nodes", nodes, "--json")
        assert code == 0, out
        return json.loads(out)["rows"][0]["time_s"] * 1e3


def near(what, found, expected, tolerance=1e-3):
    assert isinstance(found, float) and abs(found / expected - 1) < tolerance, f"{what}: {found}, expected {expected}"


def cases(t):
    kernel = dict(is_cpu_op=False)
    near("kernels, one after another", t.replay(node(0, COMP, (), 300, **kernel), node(1, COMP, (), 200, **kernel)), 0.5)
    near("the host beside them", t.replay(node(0, COMP, (), 300, is_cpu_op=True), node(1, COMP, (), 200, **kernel)), 0.3)
    near("a kernel waits for the host", t.replay(node(0, COMP, (), 300, is_cpu_op=True), node(1, COMP, (0,), 200, **kernel)), 0.5)
    size = 1 << 30
    alone = t.measured("all_reduce", size, 4)
    reduce = dict(is_cpu_op=False, comm_type=ALL_REDUCE, comm_size=size)
    near("a collective by its size", t.replay(node(0, COLL, **reduce)), alone)
    near("and a kernel, hidden", t.replay(node(0, COLL, **reduce), node(1, COMP, (), 900, **kernel)), alone)
    near("that waits for it", t.replay(node(0, COLL, **reduce), node(1, COMP, (0,), 900, **kernel)), alone + 0.9)
    # Each rank gives its part of a gather.
    near("a gather", t.replay(node(0, COLL, is_cpu_op=False, comm_type=ALL_GATHER, comm_size=size // 32)),
         t.measured("all_gather", size, 4))
    near("a scatter", t.replay(node(0, COLL, is_cpu_op=False, comm_type=REDUCE_SCATTER, comm_size=size)),
         t.measured("reduce_scatter", size, 4))
    inside = {"tp": list(range(8)), "dp": list(range(0, 32, 8)), "odd": [0, 1, 3]}
    near("a group of one node", t.replay(node(0, COLL, pg_name="tp", **reduce), groups=inside),
         t.measured("all_reduce", size, 1))
    both = t.replay(node(0, COLL, pg_name="tp", **reduce), node(1, COLL, pg_name="dp", **reduce), groups=inside)
    data = t.replay(node(1, COLL, pg_name="dp", **reduce), groups=inside)
    assert data > 1.5 * alone, f"eight groups share the NICs: {data}, one has {alone}"
    near("two groups at once", both, data)
    narrow = SCENARIO.replace('replicas = 1', 'replicas = 1\nfidelity = "flow"') + NARROW
    held_up = t.replay(node(0, COLL, pg_name="dp", **reduce), groups=inside, scenario=narrow)
    assert held_up > 2 * data, f"a narrow network: {held_up}, a full one {data}"
    sends = t.replay(node(0, SEND, is_cpu_op=False, comm_src=0, comm_dst=8, comm_size=10 ** 9))
    assert 15 < sends < 40, f"1 GB over a NIC of 50 GB/s: {sends} ms"
    flops = 10 ** 15
    modelled = t.replay(node(0, COMP, num_ops=flops, tensor_size=1, **kernel))
    assert 1000 < modelled < 2000, f"10^15 FLOPs on an H100: {modelled} ms"

    refused = {
        "does not begin with its version": dict(file=b"\x1f\x8bxx"),
        "expected schema 0.0.4, found '0.0.2'": dict(file=trace(node(0, COMP, (), 5), version="0.0.2")),
        "cut off": dict(file=trace(node(0, COMP, (), 5))[:-2]),
        "the trace has no nodes": dict(file=trace()),
        "another node has this id": dict(nodes=(node(0, COMP, (), 5), node(0, COMP, (), 6))),
        "it depends on node 7, which is not there": dict(nodes=(node(0, COMP, (7,), 5),)),
        "it depends on itself": dict(nodes=(node(1, COMP, (2,), 5), node(2, COMP, (1,), 5))),
        "nothing says which ranks the group 'tp' has": dict(nodes=(node(0, COLL, pg_name="tp", **reduce),)),
        "not ranks in equal steps": dict(nodes=(node(0, COLL, pg_name="odd", **reduce),), groups=inside),
        "expected a rank below 32": dict(nodes=(node(0, COLL, pg_name="far", **reduce),), groups={"far": [0, 32]}),
        "neither duration_micros nor num_ops": dict(nodes=(node(0, COMP, **kernel),)),
        "has comm_type 4": dict(nodes=(node(0, COLL, is_cpu_op=False, comm_type=SCATTER, comm_size=5),)),
        "comm_size does not say": dict(nodes=(node(0, COLL, is_cpu_op=False, comm_type=ALL_REDUCE),)),
        "said to run on the host": dict(nodes=(node(0, COLL, comm_type=ALL_REDUCE, comm_size=5, is_cpu_op=True),)),
        "two ranks below 32": dict(nodes=(node(0, RECV, comm_src=3, comm_dst=3, comm_size=5),)),
        "two ranks below 32) and comm_size": dict(nodes=(node(0, SEND, comm_src=3, comm_dst=3.5, comm_size=5),)),
        "neither duration_micros nor num_ops nor tensor_size": dict(nodes=(node(0, COMP, num_ops=-5.0, **kernel),)),
        "which one is traced": dict(nodes=(node(0, COMP, (), 5),), scenario=MANY),
        "more than an hour": dict(nodes=(node(0, COMP, (), 10 ** 10, **kernel),)),
        "no node has the type 0": dict(nodes=(node(0, 0),)),
        "the step takes no time": dict(nodes=(node(0, 1),)),
    }
    for said, given in refused.items():
        found = t.replay(*given.pop("nodes", ()), **given)
        assert isinstance(found, str) and "exit 2" in found and said in found, f"not said: {said}\n{found}"
    code, out = t.run("import", "chakra", "s.0.et")
    assert code == 2, out
    return len(refused)


def main():
    with tempfile.TemporaryDirectory() as folder:
        try:
            count = cases(Tester(str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(folder)))
        except AssertionError as wrong:
            print(wrong)
            return 1
    print(f"replays as they should be, {count} refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
