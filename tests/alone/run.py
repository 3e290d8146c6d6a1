#!/usr/bin/python3
"""Does each source include what it uses? Sources of a library are compiled together, which hides what one borrows from
another. Here the texts are read: a type or function of the project, of the standard library or of another library that
stands in a source must be declared there or in something that it includes, however deep.

What it does not see: whether a type that is only declared somewhere is used as if it were complete, overloads, and
macros. That shows when a batch of sources begins elsewhere.

usage: run.py [FOLDER]: another checkout than this one
"""

import functools
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
ROOT = ROOT.parents[2] if ROOT.is_file() else ROOT

# What the code of others looks like, and the header that must be there. Those that CMake precompiles are for all.
OTHERS = {
    r"\bnlohmann::": r"nlohmann/", r"\bboost::program_options\b|\bpo::": r"boost/program_options", r"\btoml::": r"toml\+\+",
    r"\bsqlite3_\w+\(": r"sqlite3\.h", r"\bEigen::": r"Eigen/", r"\bpugi::": r"pugixml", r"\byaml_\w+\(": r"yaml\.h",
    r"\bcsv_(init|parse|fini|free)\(": r"csv\.h", r"\bmu::": r"muParser", r"\bgz(open|read|close)\(": r"zlib\.h",
    r"\bfmt::print\((?!f)": r"fmt/(format|core)\.h", r"\bfmt::join\(": r"fmt/(format|ranges)\.h",
    r"\bstd::filesystem\b": r"filesystem", r"\bstd::regex\b": r"regex", r"\bstd::j?thread\b": r"thread",
    r"\bstd::(mutex|scoped_lock|lock_guard|unique_lock)\b": r"mutex", r"\bstd::condition_variable\b": r"condition_variable",
    r"\bstd::[io]?stringstream\b": r"sstream", r"\bstd::[io]?fstream\b": r"fstream", r"\bstd::deque\b": r"deque",
    r"\bstd::(priority_)?queue\b": r"queue", r"\bstd::(from|to)_chars\b": r"charconv", r"\bstd::numbers::": r"numbers",
    r"\bstd::(memcpy|memcmp|strlen|strerror)\b": r"cstring", r"\bstd::future\b": r"future", r"\bstd::bitset\b": r"bitset",
    r"\bstd::signal\b": r"csignal", r"\bstd::popcount\b|\bstd::countr_zero\b": r"bit",
}
KEYWORDS = {"return", "else", "case", "throw", "new", "delete", "and", "or", "not", "co_return", "const"}


@functools.cache
def text_of(path):
    """The code of `path`, without comments and what stands in quotes."""
    text = (ROOT / path).read_text()
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.S)
    return re.sub(r'//[^\n]*|"(?:\\.|[^"\\\n])*"', lambda found: '""' if found[0].startswith('"') else "", text)


@functools.cache
def included(path):
    """What `path` includes itself: the project's headers, and the names of others'."""
    lines = re.findall(r'^#include ["<](.*)[">]', (ROOT / path).read_text(), re.M)
    return [line for line in lines if (ROOT / line).exists()], [line for line in lines if not (ROOT / line).exists()]


@functools.cache
def reach(path):
    """`path` and all headers of the project that it includes, however deep; and those of others."""
    own, others, left = {path}, set(), [path]
    while left:
        inner, foreign = included(left.pop())
        others |= set(foreign)
        left += [header for header in inner if header not in own]
        own |= set(inner)
    return own, others


@functools.cache
def types_in(path):
    """Types that `path` declares in a namespace: at the left edge, where clang-format puts them."""
    return set(re.findall(r"^(?:class|struct|enum|union|using)\s+(?:class\s+)?([A-Z]\w+)\b(?!::)", text_of(path), re.M))


@functools.cache
def all_types_in(path):
    """Those in classes too: there they are called without the class's name."""
    return set(re.findall(r"\b(?:class|struct|enum|union|using)\s+(?:class\s+|alignas\(\d+\)\s+)?(?:\w+::)*([A-Z]\w+)\b",
                          text_of(path)))


@functools.cache
def functions_in(path):
    """Free functions that the header `path` declares: at the left edge too."""
    return set(re.findall(r"^(?!return|using|namespace|class|struct|enum|template)[\w:\[][\w:<>,&*\[\] ]*[ &*](\w+)\(",
                          text_of(path), re.M))


@functools.cache
def called_in(path):
    return set(re.findall(r"\b(\w+)\s*\(", text_of(path)))


def declares(text, name):
    """Whether `text` has a function, variable or parameter `name` of its own."""
    words = re.findall(rf"([\w>&*\]]+)\s+[&*]*{name}\b\s*(?:\(|=|\{{|,|\)|;|:)", text)
    return any(word not in KEYWORDS for word in words) or \
        bool(re.search(rf"::{name}\(|[,\[]\s*{name}\s*[,\]]|&{name}\b", text))


def problems_of(path, types, functions):
    text = text_of(path)
    own, others = reach(path)
    for name in sorted(set(re.findall(r"(?<!::)(?<!\.)\b([A-Z]\w*[a-z]\w*)\b", text))):
        if name in types and not any(name in all_types_in(header) for header in own) \
                and not re.search(rf"\b(?:typename|auto|concept) {name}\b", text):
            yield f"{name} is in {', '.join(sorted(types[name]))}"
    for name in sorted(set(re.findall(r"(?<!::)(?<!\.)(?<!->)\b(\w+)\(", text))):
        if name in functions and not functions[name] & own and not declares(text, name) \
                and not any(name in called_in(header) for header in own - {path}):
            yield f"{name}() is in {', '.join(sorted(functions[name]))}"
    for use, header in OTHERS.items():
        found = re.search(use, text)
        if found and not any(re.match(header, name) for name in others):
            yield f"{found[0]} wants <{header}>"


def main():
    patterns = [f"{folder}/*.{kind}" for folder in ("sim", "models", "tools") for kind in ("h", "cpp")]
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT, capture_output=True, text=True,
                           check=True).stdout.split()
    files = [file for file in files if (ROOT / file).exists()]
    types, functions = {}, {}
    for file in files:
        for known, names in ((types, types_in), (functions, functions_in)):
            for name in names(file) if file.endswith(".h") else ():
                known.setdefault(name, set()).add(file)
    bad = [(file, found) for file in files if (found := list(problems_of(file, types, functions)))]
    for file, found in bad:
        print(*(f"{file}: {problem}" for problem in found), sep="\n")
    print(f"{len(files) - len(bad)} passed, {len(bad)} failed")
    return 1 if bad or not files else 0


sys.exit(main())
