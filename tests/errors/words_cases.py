"""What a message says where the words depend on more than one file."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios

from harness import FOLDER, SHORT_SCENARIO, check, clean_environment, equal, expect, rows, said, write


def in_terminal(program, arguments, columns):
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    with subprocess.Popen([program.path, *arguments], cwd=FOLDER, env=clean_environment(), stdin=subprocess.DEVNULL,
                          stdout=its, stderr=subprocess.DEVNULL):
        os.close(its)
        out = b""
        try:
            while part := os.read(ours, 1 << 16):
                out += part
        except OSError:  # the other end is closed
            pass
        os.close(ours)
    return re.sub(r"\x1b\[[0-9;]*m", "", out.decode()).replace("\r", "")


def case_tables_fit_the_terminal(program, folder):
    scenario = write(folder / "a.toml", SHORT_SCENARIO.replace("100000", "2"))
    arguments = ["compare", scenario, "--vary", "cluster.nodes=1,2,3,4", "--no-estimates", "--metric", "goodput"]
    code, wide, _ = program.run(arguments)
    equal("exit", 0, code)
    ledger = [line for line in wide.splitlines() if line.startswith("  productive ")][0]
    check(len(ledger) > 60, f"this table fits anyway: {ledger}")
    narrow = [line for line in in_terminal(program, arguments, 60).splitlines() if line.startswith("  productive ")]
    check(len(narrow) > 1 and max(map(len, narrow)) <= 60, f"in 60 columns: {narrow}")
    equal("cells", ledger.split(), narrow[0].split() + [c for line in narrow[1:] for c in line.split()[1:]])


def case_rates_that_no_switch_is_made_for(program, folder):
    # They work, or are refused; nothing is looked up that the catalogue does not have.
    scenario = write(folder / "rates.toml", """
run = { duration = "1 h", replicas = 1 }
cluster.nodes = 4
fabric.compute.topology = "fat_tree"
job = { model = "llama2_7b", parallel = { tensor = 8, data = 4, global_batch = 64 }, checkpoint.interval = "30 min" }
storage = { system = "weka", servers = 8 }
""")
    verbs = (["run", scenario, "--no-estimates"], ["check", scenario], ["window", scenario], ["perf", "all_reduce", scenario, "-e", "1M"],
             ["topo", scenario], ["plan", scenario, "--top", "1"], ["storage", scenario],
             ["cost", scenario, "--no-estimates", "--set", "cost.years=\"4 years\""])
    done = refused = 0
    for rate in ("1 Gbit/s", "37 Gbit/s", "50 Gbit/s", "3 Tbit/s"):
        for kind in ("roce", "infiniband", "tcp"):
            for verb in verbs:
                # Old and odd switches have no published buffer, nor a price.
                for buffer in ([], ["--set", "fabric.compute.buffer.size=\"32 MB\""]):
                    code, _, stderr = program.run([*verb, "--set", f"cluster.nic_bandwidth=\"{rate}\"", "--set",
                                                   f"fabric.compute.kind={kind}", "--set", "run.fidelity=packet", *buffer])
                    check(code == 0 or code == 4 or (code == 2 and "error: " in stderr), f"{verb[0]}, {rate}, {kind}: {said(code, stderr)}")
                    done += code == 0
                    refused += code == 2
    check(done > 50 and refused > 50, f"{done} done, {refused} refused")


def case_perf_names_in_any_case(program, folder):
    # As NCCL_ALGO and NCCL_PROTO spell them.
    for algorithm, protocol in (("Ring", "LL"), ("RING", "LL128"), ("NVLSTree", "Simple")):
        arguments = ["perf", "AllReduce", "perf_algorithm_unknown.toml", "-b", "1M", "-e", "1M", "--json",
                     "--algorithm", algorithm, "--protocol", protocol]
        found = json.loads(expect(program, arguments, 0, ""))["rows"][0]
        equal("algorithm", algorithm.lower(), found["algorithm"].replace("_", ""))
        equal("protocol", protocol.lower(), found["protocol"])


def case_overrides_that_no_verb_reads(program, folder):
    # What a verb reads of the catalogue once the scenario is read counts like the rest.
    scenario = write(folder / "given.toml", """
[run]
duration = "1 h"
[cluster]
nodes = 2
[job]
model = "llama2_7b"
checkpoint = { mode = "none" }
[job.parallel]
tensor = 8
global_batch = 64
""")
    plain = write(folder / "plain.toml", SHORT_SCENARIO.replace("nodes = 1", "nodes = 2"))
    trace = ["-o", str(folder / "trace")]
    for verb, arguments, file in (("run", [], scenario), ("check", [], scenario), ("plan", [], scenario),
                                  ("perf", ["all_reduce", "-b", "1M", "-e", "1M"], scenario), ("topo", [], scenario),
                                  ("storage", [], scenario), ("window", [], scenario),
                                  ("trace", ["--step", *trace], scenario), ("trace", ["--window", *trace], scenario)):
        unread = "storage.weka.client_read_bandwidth"
        expect(program, [verb, *arguments, file, "--set", f"override.{unread}=20 GB/s"], 0,
               f"{file} with --set: warning: override.{unread}: has no effect: nothing here reads it\n")
    expect(program, ["perf", "all_reduce", plain, "--set", "override.collective.hopper.launch=6 us"], 0, "")
    expect(program, ["window", plain, "--set", "override.roce_transport.ack_every_packets=2"], 0, "")


def case_a_measured_step_has_no_error_of_the_step_model(program, folder):
    scenario = folder / "measured.toml"
    write(scenario, """
[run]
replicas = 2
duration = "1 day"
[cluster]
nodes = 8
[job]
model = "llama2_13b"
checkpoint = { interval = "1 h" }
[job.parallel]
tensor = 8
global_batch = 512
""")
    for setting, modelled in (("job.checkpoint.interval=2 h", True), ("job.step.time=20 s", False)):
        _, text, _ = program.run(["run", str(scenario), "--set", setting])
        check(("published runs" in text) == modelled, f"{setting}:\n{text}")
        _, text, _ = program.run(["run", str(scenario), "--set", setting, "--json"])
        answer = json.loads(text)
        check(("step_model_error" in answer) == modelled, f"{setting}: {text}")
        # Goodput has that of the step, and of what trainings lose beside it.
        goodput, ettr = (answer["prediction"]["answers"][name]["width"]["model_error"] for name in ("goodput", "ettr"))
        check((goodput > 1.1 * ettr) == modelled, f"{setting}: goodput has a model error of {goodput}, ETTR one of {ettr}")
