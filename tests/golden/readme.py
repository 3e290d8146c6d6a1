#!/usr/bin/python3
"""What the READMEs and the scenarios' headers quote of the program: does it still print that?

usage: readme.py RAILYARD [--update] [--all]

In a README.md a quoted output is a block that opens with ```console; its first line is "$ COMMAND", the rest
is what the command prints. In a comment of a scenario, "# $ COMMAND" and the lines below it, to the first that
is indented less. Figures that stand in a sentence or a table are named with the command that prints them:

    <!-- $ railyard plan FILE => 4,245; 1,572 -->       before the paragraph or the table
    # $ railyard run FILE => 93.69 %; 409.3             anywhere in a scenario's comments

Each of them must stand in that paragraph (that scenario's comments), and what the command prints must round to it. Commands
run from the checkout, with the given binary as railyard and, of the same build, tests/oracles. What a machine decides, its seconds and its load, is
not compared. "slow" (```console slow, <!-- slow $ ..., # slow $ ...) leaves a command to --all. --update rewrites quoted
outputs that have changed; figures in sentences are for people to mend.
"""

import decimal
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["models", "notebooks", "scenarios", "sim", "tests", "tools"]
PROGRAMS = {"railyard", "tools/railyard", "build/tests/oracles", "python3", "head", "tail", "grep"}
# Seconds of this machine.
MEASURED = [re.compile(r"simulated in .*"), re.compile(r"[\d.,]+ (ns|us|ms|s|min|h)( of)? CPU( time)?.*")]


class Quote:
    """Lines [begin, end) of a file are what a command prints; or figures of it stand in `text`."""

    def __init__(self, file, line, command, slow):
        self.file, self.line, self.command, self.slow = file, line, command, slow
        self.begin = self.end = None
        self.prefix = ""
        self.figures = self.text = None

    def name(self):
        return f"{self.file.relative_to(ROOT)}:{self.line + 1}"


def masked(text):
    for pattern in MEASURED:
        text = pattern.sub("(measured)", text)
    return text


NUMBER = re.compile(r"[+-]?[\d,]*\.?\d+")


def rounds_to(found, quoted):
    """410.863 to 411, and 1.98 to 2.0."""
    decimals = len(quoted.partition(".")[2])
    off = abs(decimal.Decimal(found.replace(",", "")) - decimal.Decimal(quoted.replace(",", "")))
    return off <= decimal.Decimal(5).scaleb(-decimals - 1)


def stands_in(figure, text, rounded=False):
    """Whole words: 4.2 does not stand in 14.25. `rounded`: as what numbers of the text round to."""
    words = figure.split()
    numbers = [word for word in words if rounded and NUMBER.fullmatch(word)]
    pattern = r"\s+".join(f"({NUMBER.pattern})" if word in numbers else re.escape(word) for word in words)
    return any(all(map(rounds_to, found.groups(), numbers))
               for found in re.finditer(rf"(?<![\w.,]){pattern}(?!\w|[.,]\d)", text))


def split_figures(quote, command, text):
    quote.command, _, figures = (part.strip() for part in command.partition("=>"))
    quote.figures = [figure.strip() for figure in figures.split(";")]
    quote.text = text


def of_readme(file, lines):
    at = 0
    while at < len(lines):
        block = re.fullmatch(r"```console( slow)?", lines[at])
        if block:
            quote = Quote(file, at + 1, lines[at + 1].removeprefix("$ "), bool(block[1]))
            quote.begin = at + 2
            quote.end = at = lines.index("```", at)
            yield quote
        comment = re.match(r"<!-- (slow )?\$ (.*)", lines[at])
        if comment:
            quote = Quote(file, at, "", bool(comment[1]))
            command = comment[2]
            while not command.endswith("-->"):
                at += 1
                command += " " + lines[at].strip()
            below = at + 1
            while lines[below].startswith("<!--") or not lines[below - 1].endswith("-->") and "-->" in lines[below]:
                below += 1
            end = next((i for i in range(below, len(lines)) if not lines[i]), len(lines))
            split_figures(quote, command.removesuffix("-->"), "\n".join(lines[below:end]))
            yield quote
        at += 1


def of_scenario(file, lines):
    comments = "\n".join(line for line in lines if line.startswith("#") and "=>" not in line)
    at = 0
    while at < len(lines):
        found = re.match(r"(# *)(slow )?\$ (.*)", lines[at])
        if not found:
            at += 1
            continue
        quote = Quote(file, at, found[3], bool(found[2]))
        while quote.command.endswith("\\"):
            at += 1
            quote.command = quote.command[:-1] + lines[at].lstrip("# ")
        at += 1
        if "=>" in quote.command:
            split_figures(quote, quote.command, comments)
        else:
            quote.prefix = found[1]
            quote.begin = at
            while at < len(lines) and lines[at].startswith(quote.prefix):
                at += 1
            quote.end = at
        yield quote


class Shell:
    def __init__(self, railyard, folder):
        program = pathlib.Path(railyard).resolve()
        (folder / "railyard").symlink_to(program)
        (folder / "oracles").symlink_to(program.parent / "tests" / "oracles")
        self.environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}

    @functools.cache
    def output(self, command, given=""):
        command = re.sub(r"^(tools|build/tests)/(railyard|oracles)\b", r"\2", command)
        done = subprocess.run(["bash", "-c", command], cwd=ROOT, env=self.environment, input=given,
                              capture_output=True, text=True)
        return done.stdout if done.returncode not in (2, 127) else done.stdout + done.stderr

    def printed(self, command):
        text = ""
        for part in command.split(" | "):
            if part.split()[0] not in PROGRAMS:
                return f"{part}: only {', '.join(sorted(PROGRAMS))} are run"
            text = self.output(part, text)
        return "\n".join(line.rstrip() for line in text.splitlines())


def problems_of(quote, printed, lines, update):
    if quote.figures is not None:
        for figure in quote.figures:
            if not stands_in(figure, printed, rounded=True):
                yield f"{quote.name()}: {quote.command}\n  does not print {figure}"
            if not stands_in(figure, quote.text):
                yield f"{quote.name()}: {figure} is not quoted"
        return
    quoted = "\n".join(line.removeprefix(quote.prefix) for line in lines[quote.begin : quote.end])
    if masked(quoted) == masked(printed):
        return
    if update:
        lines[quote.begin : quote.end] = [(quote.prefix + line).rstrip() for line in printed.split("\n")]
    else:
        yield f"{quote.name()}: {quote.command}\n  is quoted as\n{quoted}\n  and prints\n{printed}"


def main():
    update, everything = "--update" in sys.argv, "--all" in sys.argv
    files = [ROOT / "README.md"]
    for folder in FOLDERS:
        files += [file for file in sorted((ROOT / folder).rglob("README.md")) if "node_modules" not in file.parts]
    files += sorted((ROOT / "scenarios").rglob("*.toml"))
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(sys.argv[1], pathlib.Path(folder))
        for file in files:
            before = file.read_text()
            lines = before.split("\n")
            quotes = list((of_scenario if file.suffix == ".toml" else of_readme)(file, lines))
            for quote in reversed(quotes):  # so that what is above stays where it is
                if quote.slow and not everything:
                    continue
                found = list(problems_of(quote, shell.printed(quote.command), lines, update))
                print(*found, sep="\n", end="\n" if found else "")
                failed += bool(found)
                passed += not found
            if update and "\n".join(lines) != before:
                file.write_text("\n".join(lines))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


sys.exit(main())
