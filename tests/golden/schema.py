#!/usr/bin/python3
"""scenarios/schema.json, which editors check and complete scenarios with: is it the program's language?

usage: schema.py RAILYARD

It is what 'railyard list schema' prints; every scenario that ships is valid; what railyard refuses for one
key's sake (tests/errors: unknown, misspelt, without a unit, out of bounds) is refused here too; every
default and example is a value that its own key takes; and [sweep] has the keys that 'railyard sweep' reads.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "scenarios" / "schema.json"
# Errors that the value of one key makes, whatever the others say.
REFUSED = re.compile(r"unknown key|found .* without a unit|expected one of|expected (more than zero|zero or more|"
                     r"a fraction|true or false|text in quotes|a whole number|a number)|which has the unknown unit|"
                     r"no such (kind|entry) in the catalogue|expected the name of")
# Wrong for another reason than one key's text: a network file, what rounds to nothing, a model that divides by it; a stage's
# own keys of [job.parallel], which are an open table to the schema.
BEYOND = {"fabric_custom_wrong.toml", "world_trace_malformed.toml", "world_with_one_job.toml", "rounds_to_zero.toml",
          "override_zero.toml", "override_beyond_peak.toml", "stage_plan.toml", "stages_wrong.toml"}


def tables(schema, path=()):
    """(path, table) of the root and of every table below it."""
    yield path, schema
    for key, child in schema.get("properties", {}).items():
        if "properties" in child:
            yield from tables(child, path + (key,))
        elif "properties" in child.get("items", {}):
            yield from tables(child["items"], path + (key, 0))


def placed(path, value):
    """A document with the value at this path."""
    for key in reversed(path):
        value = [value] if key == 0 else {key: value}
    return value


# A study that names its scenario, and one that contains it.
NAMED = {"sweep": {"scenario": "base.toml", "axis": [{"key": "cluster.nodes", "values": [16, 18]}]}}
CONTAINED = {"cluster": {"nodes": 16}, "sweep": {"axis": [{"key": "cluster.nodes", "from": 16, "to": 18, "steps": 2}]}}
# Keys of studies that the schema must refuse, besides unknown ones.
NO_STUDIES = [{"sweep": {"axis": []}}, {"sweep": {"axis": [{"key": "cluster.nodes"}]}}, {"sweep": {}},
              {"sweep": {"axis": [{"key": "cluster.nodes", "values": [1], "from": 1, "to": 2}]}},
              {"sweep": {"axis": [{"values": [1]}]}}]


def toml_of(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml_of(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_of, value)) + "]"
    return json.dumps(value)


def study_problems(railyard, schema):
    """Each key of [sweep] that the schema has is one that 'railyard sweep' reads, and no other is."""
    validator = jsonschema.Draft7Validator(schema)
    for study in (NAMED, CONTAINED):
        for error in validator.iter_errors(study):
            yield f"{study}: {error.json_path}: {error.message}"
    for study in NO_STUDIES:
        if validator.is_valid({"cluster": {"nodes": 16}} | study):
            yield f"{study} is taken for a study"
    sweep = schema["properties"]["sweep"]
    tables = {"": sweep, "axis": sweep["properties"]["axis"]["items"], "stop": sweep["properties"]["stop"]}
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "base.toml").write_text("cluster.nodes = 16\njob.step.time = \"2 s\"\n")
        for name, table in tables.items():
            for key in [*table["properties"], "no_such_key"]:
                if key in ("axis", "stop", "scenario"):
                    continue
                study = json.loads(json.dumps(NAMED))
                place = study["sweep"] if name == "" else study["sweep"].setdefault(name, {})
                place = place[0] if name == "axis" else place
                place[key] = {"nothing": 1}
                (pathlib.Path(folder) / "study.toml").write_text(
                    "\n".join(f"{part} = {toml_of(value)}" for part, value in study.items()))
                done = subprocess.run([str(pathlib.Path(railyard).resolve()), "sweep", "study.toml"], cwd=folder, capture_output=True, text=True)
                if done.returncode != 2:
                    yield f"sweep {name} {key}: taken with a value that is none"
                if ("unknown key" in done.stderr) != (key == "no_such_key"):
                    yield f"sweep {name} {key}: {done.stderr}"
                if validator.is_valid(study):
                    yield f"sweep {name} {key}: the schema takes {{nothing = 1}}"


def overrides():
    """(what stands below [override], its path) for each number, quantity and truth value of the catalogue."""
    for file in sorted((ROOT / "models" / "catalogue").glob("*.toml")):
        for kind, entries in tomllib.loads(file.read_text()).items():
            single = any("value" in entry for entry in entries.values() if isinstance(entry, dict))
            for name, entry in ({"": entries} if single else entries).items():
                for key, value in entry.items() if isinstance(entry, dict) else ():
                    if isinstance(value, dict) and not isinstance(value.get("value", []), list):
                        path = (kind, key) if single else (kind, name, key)
                        yield placed(path, value["value"]), ".".join(path)


def problems(railyard):
    text = SCHEMA.read_text()
    printed = subprocess.run([railyard, "list", "schema"], capture_output=True, text=True, check=True).stdout
    if text != printed:
        yield "scenarios/schema.json is not what 'railyard list schema' prints: tests/golden/run.py --update rewrites it"
    schema = json.loads(printed)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)

    def complaints(document):
        """With the table that every scenario has: a complaint is of what is tried."""
        whole = {"cluster": {"nodes": 1}} | document
        if "cluster" in document:
            whole["cluster"] = {"nodes": 1} | document["cluster"]
        return [error.message for error in validator.iter_errors(whole)]

    scenarios = sorted((ROOT / "scenarios").rglob("*.toml"))
    for scenario in scenarios:
        for error in validator.iter_errors(tomllib.loads(scenario.read_text())):
            yield f"{scenario.relative_to(ROOT)}: {error.json_path}: {error.message}"

    # A table of measurements has from its columns what a scenario must say.
    tables_described = [path for path in sorted((ROOT / "tests" / "validation").glob("*.toml"))
                        if "table" in tomllib.loads(path.read_text())]
    for path in tables_described:
        for error in validator.iter_errors(tomllib.loads(path.read_text())):
            yield f"{path.relative_to(ROOT)}: {error.json_path}: {error.message}"
    # Entries of the scenario's own are named beside the catalogue's; without any, only those are.
    own = {"cluster": {"nodes": 1, "node": "mine"}}
    if not list(validator.iter_errors(own)):
        yield "cluster.node takes a node that nobody has"
    for where in ({"node": {"mine": {"like": "dgx_h100"}}}, {"include": ["mine.toml"]}):
        for error in validator.iter_errors(own | where):
            yield f"a node of one's own, {where}: {error.message}"
    for wrong in ({"cluster": {}}, {"job": {}}, {"table": {}}, {"cluster": {}, "table": {"expect": [{"quantity": "s"}]}}):
        if validator.is_valid(wrong):
            yield f"{wrong} is taken"

    refused = 0
    for expected in sorted((ROOT / "tests" / "errors").glob("*.expected")):
        scenario = expected.with_suffix(".toml")
        if not scenario.exists() or scenario.name in BEYOND or expected.with_suffix(".args").exists():
            continue
        if not REFUSED.search(expected.read_text()):
            continue
        try:
            document = tomllib.loads(scenario.read_text())
        except tomllib.TOMLDecodeError:
            continue
        refused += 1
        if validator.is_valid(document):
            yield f"tests/errors/{scenario.name}: railyard refuses it, the schema does not"

    keys = 0
    for path, table in tables(schema):
        if not complaints(placed(path, {"no_such_key": 1})):
            yield f"{path}: takes an unknown key"
        for name, key in table["properties"].items():
            if "properties" in key or "items" in key:
                continue
            keys += 1
            resolved = {**key, "definitions": schema["definitions"]}
            for value in [*key.get("examples", []), *([key["default"]] if "default" in key else [])]:
                if not jsonschema.Draft7Validator(resolved).is_valid(value):
                    yield f"{path} {name}: does not take {value!r}, its own default or example"
            if jsonschema.Draft7Validator(resolved).is_valid([]):
                yield f"{path} {name}: takes a list"
    overridden = 0
    for override, path in overrides():
        overridden += 1
        if complaints({"override": override}):
            yield f"override.{path}: does not take the catalogue's own value"
    yield from study_problems(railyard, schema)
    listed = subprocess.run([railyard, "list", "keys"], capture_output=True, text=True, check=True).stdout
    described = json.dumps(schema)
    for key in listed.splitlines()[::3]:
        if f'"{key.split(".")[-1]}": ' not in described:
            yield f"{key}: not in the schema"
    print(f"{len(scenarios)} scenarios, {len(tables_described)} tables, {refused} mistakes, {keys} keys, {overridden} overrides")
    if min(len(scenarios), len(tables_described), refused, keys, overridden) == 0:
        yield "nothing was looked at"


def main():
    found = list(problems(sys.argv[1]))
    for problem in found:
        print(problem)
    print(f"{0 if found else 1} passed, {1 if found else 0} failed")
    return 1 if found else 0


sys.exit(main())
