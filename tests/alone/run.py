#!/usr/bin/python3
"""Each source alone: does it include what it uses? Sources of a library are compiled together (unity builds), which hides
what one borrows from another; here clang reads each by itself, without making code.

usage: run.py BUILD_FOLDER [SOURCE...] (a folder that is built: its generated headers are there)
"""

import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What many sources begin with, dear ones first: parsed once for all that do.
COMMON = ("models/campaign/scenario.h", "models/scheduler/job_stream.h", "models/storage/burst.h",
          "models/fabric/packet_engine.h", "models/catalogue/catalogue.h", "sim/config.h")


@functools.cache
def included(path):
    """The project's headers that `path` includes itself, in order."""
    return re.findall(r'^#include "(.*)"', path.read_text(), re.M) if path.exists() else []


def begins_with(source):
    """The header of COMMON that `source` includes, however deep: reading it before all others changes nothing for the source.
    It could hide what a header lacks, and so a source that begins with its own header (x.cpp with x.h), which proves that
    this one can stand alone, only gets what its own header includes."""
    left = included(ROOT / source)
    if left and pathlib.Path(left[0]).stem == pathlib.Path(source).stem:
        left = left[:1]
    reached, left = set(), list(left)
    while left:
        header = left.pop()
        if header not in reached:
            reached.add(header)
            left += included(ROOT / header)
    return next((header for header in COMMON if header in reached), None)


def main():
    # What any library is compiled with: definitions, and others' headers.
    commands = json.loads((pathlib.Path(sys.argv[1]) / "compile_commands.json").read_text())
    flags = set()
    for command in commands:
        words = shlex.split(command["command"])
        flags |= {word for word in words if word.startswith("-D")}
        flags |= {f"-isystem{path}" for word, path in zip(words, words[1:]) if word == "-isystem"}
    sources = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "sim/*.cpp", "models/*.cpp", "tools/*.cpp"],
                             cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    wanted = sys.argv[2:] or sources
    sources = [source for source in sources if source in wanted and (ROOT / source).exists()]
    # The headers that CMake precompiles for all, and for the tools.
    shared = re.search(r"set\(PRECOMPILED ([^)]*)\)", (ROOT / "CMakeLists.txt").read_text())[1].split()
    heavy = [*shared, '"tools/program/heavy_templates.h"']
    clang = ["clang++", "-std=c++20", "-w", "-mpopcnt", f"-I{ROOT}", *sorted(flags)]
    with tempfile.TemporaryDirectory() as folder:
        def precompiled(name, headers):
            header, compiled = pathlib.Path(folder) / f"{name}.h", pathlib.Path(folder) / f"{name}.pch"
            header.write_text("".join(f"#include {each}\n" for each in headers))
            subprocess.run([*clang, "-x", "c++-header", header, "-o", compiled], check=True)
            return compiled

        first = {source: (source.startswith("tools/"), begins_with(source)) for source in sources}
        compiled = {(tool, header): precompiled(number, [*(heavy if tool else shared), *([f'"{header}"'] if header else [])])
                    for number, (tool, header) in enumerate(dict.fromkeys(first.values()))}

        def problem_of(source):
            done = subprocess.run([*clang, "-include-pch", compiled[first[source]], "-fsyntax-only", source], cwd=ROOT,
                                  capture_output=True, text=True)
            return done.stderr if done.returncode != 0 else ""

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            problems = [problem for problem in pool.map(problem_of, sources) if problem]
    for problem in problems:
        print(problem)
    print(f"{len(sources) - len(problems)} passed, {len(problems)} failed")
    return 1 if problems or not sources else 0


sys.exit(main())
