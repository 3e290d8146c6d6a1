"""Chakra's execution traces (schema 0.0.4), as the format has them, and a step of all ranks together."""

import collections
import pathlib

COMP, SEND, RECV, COLL = 4, 5, 6, 7
COLLECTIVES = ["ALL_REDUCE", "REDUCE", "ALL_GATHER", "GATHER", "SCATTER", "BROADCAST", "ALL_TO_ALL", "REDUCE_SCATTER"]


class Malformed(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Malformed(message)


def varint(data, at):
    value = shift = 0
    while True:
        check(at < len(data), "cut off")
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            size = {1: 8, 5: 4}[key & 7]
            value, at = data[at:at + size], at + size
        check(at <= len(data), "cut off")
        yield key >> 3, value


def attribute(data):
    parts = dict(fields(data))
    (number, value), = [(k, v) for k, v in parts.items() if k > 2]
    name = parts[1].decode()
    expected = {"is_cpu_op": 27, "comm_type": 9, "comm_size": 9, "pg_name": 29, "comm_src": 7, "comm_dst": 7,
                "comm_tag": 7}
    check(expected.get(name) == number, f"{name} is field {number}")
    return name, value.decode() if number == 29 else value


def node(data):
    out = {"id": 0, "deps": [], "micros": 0}
    for number, value in fields(data):
        if number in {4, 5}:
            at = 0
            while at < len(value):
                one, at = varint(value, at)
                out["deps"].append(one)
        elif number == 10:
            name, given = attribute(value)
            check(name not in out, f"{name} twice")
            out[name] = given
        else:
            out[{1: "id", 2: "name", 3: "type", 7: "micros"}[number]] = value.decode() if number == 2 else value
    return out


def read_trace(path):
    data, at, messages = pathlib.Path(path).read_bytes(), 0, []
    while at < len(data):
        size, at = varint(data, at)
        messages.append(data[at:at + size])
        at += size
    check(at == len(data) and dict(fields(messages[0])) == {1: b"0.0.4"}, f"{path}: head or end")
    nodes = [node(message) for message in messages[1:]]
    seen = set()
    for one in nodes:
        check(one["id"] not in seen and set(one["deps"]) <= seen, f"{path}: node {one['id']}: behind what it waits for")
        check(len(set(one["deps"])) == len(one["deps"]), f"{path}: node {one['id']} waits twice for the same")
        check(one["is_cpu_op"] == 0, f"{path}: {one}")
        check((one["type"] == COMP) == (one["micros"] > 0), f"{path}: {one}")
        check(one["type"] == COMP or one["comm_size"] > 0, f"{path}: {one}")
        seen.add(one["id"])
    return nodes


def check_together(ranks, groups):
    """Each message has both its ends; the members of a group ask for the same collectives in the same order."""
    ends = {SEND: collections.Counter(), RECV: collections.Counter()}
    asked = collections.defaultdict(dict)
    for rank, nodes in enumerate(ranks):
        for one in nodes:
            if one["type"] in ends:
                check(rank == one["comm_src" if one["type"] == SEND else "comm_dst"], str(one))
                ends[one["type"]][one["comm_src"], one["comm_dst"], one["comm_tag"], one["comm_size"]] += 1
            elif one["type"] == COLL:
                check(rank in groups[one["pg_name"]], f"rank {rank}: {one}")
                asked[one["pg_name"]].setdefault(rank, []).append((one["comm_type"], one["comm_size"]))
    check(ends[SEND] == ends[RECV] and set(ends[SEND].values()) <= {1}, "messages")
    for group, by_rank in asked.items():
        check(sorted(by_rank) == groups[group], f"group {group}: {sorted(by_rank)}")
        check(len({tuple(calls) for calls in by_rank.values()}) == 1, f"group {group} disagrees")
    return len(ends[SEND])


def seconds_together(ranks):
    """When the last rank has ended, were talking free: kernels one after another, and each waits for its peers."""
    end, free, waiting = {}, [0.0] * len(ranks), collections.defaultdict(dict)
    count = collections.Counter()
    keys = {}
    for rank, nodes in enumerate(ranks):
        for one in nodes:
            if one["type"] == COLL:
                count[rank, one["pg_name"]] += 1
                keys[rank, one["id"]] = ("group", one["pg_name"], count[rank, one["pg_name"]])
            elif one["type"] != COMP:
                keys[rank, one["id"]] = ("message", one["comm_src"], one["comm_dst"], one["comm_tag"])
    needs = collections.Counter(keys.values())
    left = {rank: list(nodes) for rank, nodes in enumerate(ranks)}
    while any(left.values()):
        moved = False
        for rank in left:
            later = []
            for one in left[rank]:
                if any((rank, i) not in end for i in one["deps"]):
                    later.append(one)
                    continue
                at = max([0.0] + [end[rank, i] for i in one["deps"]])
                if one["type"] == COMP:
                    free[rank] = end[rank, one["id"]] = max(at, free[rank]) + one["micros"] * 1e-6
                    moved = True
                    continue
                key = keys[rank, one["id"]]
                moved |= (rank, one["id"]) not in waiting[key]
                waiting[key][rank, one["id"]] = at
                if len(waiting[key]) < needs[key]:
                    later.append(one)
                elif (rank, one["id"]) not in end:
                    moved = True
                    # A sender goes on when its message is ready; who receives waits for it.
                    for place, begun in waiting[key].items():
                        end[place] = max(waiting[key].values())
            left[rank] = [one for one in later if (rank, one["id"]) not in end]
        check(moved, "nothing can go on")
    return max(end.values())
