"""Files and folders that are missing, full, too large, or somebody else's."""

import json
import os
import pathlib
import re
import resource
import subprocess

from harness import (FOLDER, LONG_SCENARIO, SECONDS_MAX, SHORT_SCENARIO, check, clean_environment, equal,
                     expect, rows, said, write)


def case_scenario_is_missing(program, folder):
    expect(program, ["run", "no_such.toml"], 2,
           "railyard: error: can't read no_such.toml: No such file or directory\n")


def case_scenario_is_a_folder(program, folder):
    expect(program, ["run", str(folder)], 2,
           f"railyard: error: can't read {folder}: Is a directory\n")


def case_scenario_is_below_a_file(program, folder):
    expect(program, ["check", "run.py/scenario.toml"], 2,
           "railyard: error: can't read run.py/scenario.toml: Not a directory\n")


def case_standard_output_is_full(program, folder):
    scenario = write(folder / "short.toml", SHORT_SCENARIO)
    for arguments in (["run", scenario], ["run", scenario, "--json"], ["check", scenario],
                      ["list", "keys"], ["calc", "kv-cache", "--model", "llama2_7b"], ["--help"]):
        with open("/dev/full", "wb") as full:
            code, _, stderr = program.run(arguments, stdout=full)
        # Small outputs fail when they are flushed, large ones earlier: two texts, one meaning.
        check(code == 2 and re.fullmatch(r"railyard: error: can('t|not) write to .+\n", stderr),
              f"{' '.join(arguments)}:\n{said(code, stderr)}")


def case_keys_that_are_very_deep(program, folder):
    scenario = write(folder / "deep.toml", "a." * 30000 + "a = 1\n")
    for arguments in (["check", scenario], ["run", scenario], ["sweep", scenario, "--db", str(folder / "x.db")]):
        expect(program, arguments, 2, f"{scenario}: error: tables and lists are nested 30001 deep, and 100 is "
                                      "the most\n")


def case_a_hundred_thousand_unknown_keys(program, folder):
    scenario = write(folder / "keys.toml", "[run]\n" + "".join(f"key_{i} = 1\n" for i in range(100_000)))
    code, _, stderr = program.run(["check", scenario])
    check(code == 2 and stderr.count("unknown key") == 100_000, f"exit {code}")


def case_bytes_that_are_not_utf8(program, folder):
    raw = os.fsencode(folder) + b"/caf\xe9.toml"
    pathlib.Path(os.fsdecode(raw)).write_text(SHORT_SCENARIO)
    code, stdout, stderr = program.run(["run", os.fsdecode(raw), "--no-estimates", "--json", "--db", str(folder / "x.db")])
    check(code == 0 and json.loads(stdout)["scenario"].endswith("/caf\ufffd.toml"), said(code, stderr))
    equal("file", "[('caf\\\\xe9.toml',)]", str([(f.split("/")[-1],) for f, in rows(folder / "x.db", "SELECT file FROM runs")]))
    scenario = write(folder / "short.toml", SHORT_SCENARIO)
    code, _, stderr = program.run(["check", scenario, "--set", b"title=caf\xe9"])
    check(code == 2 and "title=caf\\xe9: error: control characters, or bytes that are not UTF-8" in stderr, said(code, stderr))
    (folder / "jobs.csv").write_bytes(b"job_id,user,submit_time,gpu_num,duration,state\na,J\xe9\x1b[1m,0,8,600,COMPLETED\n")
    code, stdout, stderr = program.run(["jobs", str(folder / "jobs.csv"), "--nodes", "2", "--gpus-per-node", "8", "--json"])
    check(code == 0 and "\x1b" not in stdout, said(code, stderr))


def case_many_replicas_take_little_memory(program, folder):
    scenario = write(folder / "many.toml", LONG_SCENARIO.replace("100000", "20000").replace("1 h", "1 min").replace("1 steps", "100 steps"))
    write(folder / "study.toml", '[sweep]\nscenario = "many.toml"\nreplicas = 20000\n[[sweep.axis]]\nkey = "job.step.time"\n'
                                 'values = ["0.1 s", "0.2 s"]\n')
    other = ["--set", "job.step.time=0.2 s"]
    for arguments in (["run", scenario, "--no-estimates"], ["run", scenario, "--no-estimates", "--db", "run.db", "--db-events", "0"],
                      ["compare", scenario, *other, "--no-estimates"],
                      ["compare", scenario, *other, "--no-estimates", "--db", "compare.db"],
                      ["sweep", "study.toml", "--no-estimates", "--db", "sweep.db"]):
        child = subprocess.Popen([program.path, *arguments], env=clean_environment(), cwd=folder,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        equal(f"{arguments}: exit", 0, os.waitstatus_to_exitcode(status))
        check(usage.ru_maxrss < 150_000, f"{arguments}: 20,000 replicas each took {usage.ru_maxrss} kB at the peak")


def limited(program, arguments, size):
    """The program where no file may grow beyond that: a disk that is full."""
    def before():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    done = subprocess.run([program.path, *arguments], cwd=FOLDER, env=clean_environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=SECONDS_MAX, preexec_fn=before)
    return done.returncode, done.stdout, done.stderr


def case_outputs_on_a_full_disk(program, folder):
    scenario = write(folder / "short.toml", SHORT_SCENARIO)
    for name, arguments in (("trace", ["trace", scenario, "-o"]),
                            ("drawing", ["topo", scenario, "--svg"])):
        out = folder / name
        out.write_text("what was there before")
        code, _, stderr = limited(program, [*arguments, str(out)], 1000)
        equal("stderr", said(2, f"railyard: error: can't write {out}: File too large\n"), said(code, stderr))
        equal("what was there", "what was there before", out.read_text())
    equal("files", "drawing short.toml trace", " ".join(sorted(p.name for p in folder.iterdir())))
    for arguments in (["run", scenario, "--no-estimates"], ["compare", scenario, "--set", "job.step.time=0.2 s"]):
        write(folder / "short.toml", LONG_SCENARIO.replace("100000", "600").replace("1 h", "1 min"))
        code, stdout, stderr = limited(program, [*arguments, "--db", str(folder / f"{arguments[0]}.db")], 600_000)
        check(code == 4 and "goodput" in stdout and "this result is whole; the database is not" in stderr,
              f"{arguments[0]}: {said(code, stderr)}")


def case_an_output_takes_its_name_when_it_is_whole(program, folder):
    scenario = write(folder / "short.toml", SHORT_SCENARIO)
    (folder / "link").symlink_to("real")
    (folder / "real").write_text("before")
    (folder / "real").chmod(0o640)
    expect(program, ["trace", scenario, "-o", str(folder / "link")], 0, "")
    check((folder / "link").is_symlink() and (folder / "real").stat().st_size > 100, "not behind the link")
    equal("mode", "0o640", oct((folder / "real").stat().st_mode & 0o777))
    check("<svg" in expect(program, ["topo", scenario, "--svg", "/dev/stdout"], 0, ""),
          "a pipe is no file to be replaced")


def case_an_output_over_what_is_read(program, folder):
    trace = write(folder / "jobs.csv", "job_id,submit_time,gpu_num,duration,state\na,0,8,600,COMPLETED\n")
    scenario = write(folder / "world.toml", '[run]\nduration = "1 h"\n[cluster]\nnodes = 2\n[scheduler]\nkind = '
                                            '"slurm"\n[jobs]\ntrace = "jobs.csv"\n')
    db = str(folder / "x.db")
    expect(program, ["run", scenario, "--no-estimates", "--db", db], 0, "")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    os.link(db, folder / "other_name.db")
    for arguments, out in ((["trace", scenario], scenario), (["trace", scenario], trace), (["topo", scenario, "--svg"], trace),
                           (["report", db], db), (["report", db], str(folder / "other_name.db"))):
        option = [] if "--svg" in arguments else ["-o"]
        expect(program, [*arguments, *option, out], 2,
               f"railyard: error: can't write {out}: it is read here\n    choose another name\n")
    for name, content in before.items():
        check((folder / name).read_bytes() == content, f"{name} was changed")


def case_a_folder_that_no_sweep_made(program, folder):
    study = write(folder / "study.toml", SHORT_SCENARIO + '[[sweep.axis]]\nkey = "cluster.nodes"\nvalues = [1, 2]\n')
    theirs = folder / "x.db.slurm"
    theirs.mkdir()
    (theirs / "job").write_text("1")
    (theirs / "thesis").write_text("years of work")
    expect(program, ["sweep", study, "--db", str(folder / "x.db"), "--on", "slurm"], 2,
           f"railyard: error: {theirs} is in the way: a sweep did not make it\n"
           "    move it, or write to another database: a sweep on Slurm needs DB.slurm\n")
    equal("files", "job thesis", " ".join(sorted(p.name for p in theirs.iterdir())))
