#!/usr/bin/python3
"""Every mistake that a person can make, and exactly what is said about it.

    run.py PATH_TO_RAILYARD [--update] [--quick | --slow] [NAME...]

A case is NAME.toml with NAME.expected: a first line 'exit CODE', then standard error, byte for byte.
NAME.args, one argument per line, replaces the usual 'run NAME.toml'; in it {scenario} stands for
NAME.toml and {tmp} for an empty folder. Cases that need more than a file - a broken database, a signal -
are functions, in *_cases.py. --update writes what is said today into the .expected files: read the difference
before you keep it. --quick leaves those out that are functions, some of which wait for seconds; --slow leaves out what
--quick runs.
"""

import os
import sys

import database_cases
import files_cases
import interrupt_cases
import verify_cases
import words_cases
from harness import FOLDER, Program, Tally, cases_of, check, equal, said

CASES = [database_cases, files_cases, interrupt_cases, verify_cases, words_cases]


def run_file_case(program, name, update, folder):
    scenario, temporary = f"{name}.toml", str(folder)
    given = FOLDER / f"{name}.args"
    check(given.exists() or (FOLDER / scenario).exists(),
          f"{name}.expected has neither a {scenario} nor a {given.name}")
    arguments = ["run", scenario]
    if given.exists():
        arguments = [line.replace("{scenario}", scenario).replace("{tmp}", temporary)
                     for line in given.read_text().splitlines()]
    code, _, stderr = program.run(arguments)
    found = said(code, stderr.replace(temporary, "{tmp}"))
    # A signal, such as a failed check's abort, is never what was expected.
    check(code >= 0, f"died of signal {-code}:\n{found}")
    expected = FOLDER / f"{name}.expected"
    if update:
        expected.write_text(found)
        return
    check(expected.exists(), f"{name} has no {expected.name}; --update writes it")
    equal(name, expected.read_text(), found)


def main():
    arguments = sys.argv[1:]
    update = "--update" in arguments
    quick = "--quick" in arguments
    only_slow = "--slow" in arguments
    arguments = [a for a in arguments if a not in ("--update", "--quick", "--slow")]
    if not arguments:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    program = Program(arguments[0])
    if not os.access(program.path, os.X_OK):
        print(f"{program.path} is not a program", file=sys.stderr)
        return 2
    wanted = set(arguments[1:])

    files = sorted({p.stem for suffix in ("toml", "expected", "args")
                    for p in FOLDER.glob(f"*.{suffix}")})
    functions = {name: case for module in CASES for name, case in cases_of(vars(module)).items()}
    tally = Tally()
    # With sanitizers this one simulates for more than the 20 s that a case has.
    slow = {"more_gpu_time_than_can_be_counted"}
    for name in [*files, *functions]:
        is_quick = name in files and name not in slow
        if wanted and name not in wanted or quick and not is_quick or only_slow and is_quick:
            continue
        if name in files:
            tally.run(name, run_file_case, program, name, update)
        else:
            tally.run(name, functions[name], program)
    return tally.end() if files else "no cases were found"


if __name__ == "__main__":
    sys.exit(main())
