"""What the scripts of several folders of tests check with."""

import pathlib
import subprocess
import tempfile
import traceback


class Failure(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Failure(message)


class Program:
    """railyard, started in `folder`."""

    seconds_max = 120  # one that takes longer hangs

    def __init__(self, path, folder=None):
        self.path = str(pathlib.Path(path).resolve())
        self.folder = folder

    def run(self, *arguments, stdout=subprocess.PIPE, **how):
        command = [self.path, *(each if isinstance(each, bytes) else str(each) for each in arguments)]
        try:
            done = subprocess.run(command, **{"cwd": self.folder, **how}, stdin=subprocess.DEVNULL,
                                  stdout=stdout, stderr=subprocess.PIPE, timeout=self.seconds_max)
        except subprocess.TimeoutExpired as timeout:
            raise Failure(f"no end after {self.seconds_max} s: {' '.join(map(str, arguments))}") from timeout
        texts = [(said or b"").decode(errors="replace") for said in (done.stdout, done.stderr)]
        return done.returncode, *texts

    def text(self, *arguments):
        code, stdout, stderr = self.run(*arguments)
        check(code == 0, f"{' '.join(map(str, arguments))}: exit {code}\n{stderr}")
        return stdout


class Tally:
    """How many cases passed, how many failed, and what the script ends with."""

    passed = failed = 0

    def add(self, problems):
        """A case, which has passed when it has no problems."""
        print(*problems, sep="\n", end="\n" if problems else "")
        self.passed += not problems
        self.failed += bool(problems)

    def check(self, condition, problem):
        self.add([] if condition else [problem])

    def run(self, name, case, *arguments):
        """A case that raises what is wrong; it gets an empty folder after `arguments`."""
        problems = []
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(*arguments, pathlib.Path(folder))
            except Failure as failure:
                problems = [f"--- {name}\n{failure}"]
            except Exception:
                problems = [f"--- {name}\n{traceback.format_exc()}"]
        self.add(problems)

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


def cases_of(names):
    """The functions case_NAME among a module's names, by NAME."""
    return {name.removeprefix("case_"): case for name, case in names.items() if name.startswith("case_")}


def run_cases(names, *arguments, wanted=()):
    """All of a module's cases, or those that are wanted."""
    tally = Tally()
    for name, case in cases_of(names).items():
        if not wanted or name in wanted:
            tally.run(name, case, *arguments)
    return tally.end()
