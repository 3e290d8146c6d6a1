#!/usr/bin/python3
"""Do the libraries use only what lies below them? The linker's view of what tools/tidy asks of the texts: a library that
is linked needs no symbol that another library of its own floor, or of one above, defines.

usage: run.py BUILD_FOLDER
"""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def floors():
    """{library: floor} of sim and the models, as tools/tidy has them."""
    loader = importlib.machinery.SourceFileLoader("tidy", str(ROOT / "tools/tidy"))
    tidy = importlib.util.module_from_spec(importlib.util.spec_from_loader("tidy", loader))
    loader.exec_module(tidy)
    return {folder.split("/")[-1]: floor for folder, floor in tidy.FLOORS.items() if not folder.startswith("tools/")}


def symbols(archive, *options):
    listed = subprocess.run(["nm", "-P", *options, archive], capture_output=True, text=True, check=True).stdout
    return {line.split()[0]: line.split()[1] for line in listed.splitlines() if len(line.split()) > 1}


def main():
    folder = pathlib.Path(sys.argv[1])
    floor = floors()
    archive = {name: folder / f"librailyard_{name}.a" for name in floor}
    # Templates and inline functions are everywhere (W, V, u): what one library alone defines counts.
    owner = {symbol: name for name in floor for symbol, kind in symbols(archive[name], "--defined-only").items()
             if kind in "TDBR"}
    problems = 0
    for name in floor:
        for symbol in sorted(symbols(archive[name], "--undefined-only")):
            other = owner.get(symbol)
            if other is not None and other != name and floor[other] >= floor[name]:
                print(f"{name} needs {subprocess.run(['c++filt', symbol], capture_output=True, text=True).stdout.strip()} of {other}")
                problems += 1
    print(f"{len(floor) - min(problems, len(floor))} passed, {problems} failed")
    return problems > 0 or len(owner) < 1000


if __name__ == "__main__":
    sys.exit(main())
