#!/usr/bin/python3
"""Each source alone: does it include what it uses? Sources of a library are compiled together (unity builds), which hides
what one borrows from another; here clang reads each by itself, without making code.

usage: run.py BUILD_FOLDER [SOURCE...] (a folder that is built: its generated headers are there)
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


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
    # The headers that CMake precompiles for all.
    shared = re.search(r"set\(PRECOMPILED ([^)]*)\)", (ROOT / "CMakeLists.txt").read_text())[1].split()
    clang = ["clang++", "-std=c++20", "-w", "-mpopcnt", f"-I{ROOT}", *sorted(flags)]
    with tempfile.TemporaryDirectory() as folder:
        header, compiled = pathlib.Path(folder) / "shared.h", pathlib.Path(folder) / "shared.pch"
        header.write_text("".join(f"#include {name}\n" for name in shared))
        subprocess.run([*clang, "-x", "c++-header", header, "-o", compiled], check=True)

        def problem_of(source):
            done = subprocess.run([*clang, "-include-pch", compiled, "-fsyntax-only", source], cwd=ROOT, capture_output=True,
                                  text=True)
            return done.stderr if done.returncode != 0 else ""

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            problems = [problem for problem in pool.map(problem_of, sources) if problem]
    for problem in problems:
        print(problem)
    print(f"{len(sources) - len(problems)} passed, {len(problems)} failed")
    return 1 if problems or not sources else 0


sys.exit(main())
