"""Tables, one's own and published, that verify can't read or that are off."""

import csv
import json
import pathlib
import time

from harness import check, equal, expect, rows, said, write


TRAINING_ROWS = """# what was measured, where
model,mode,hidden,layers,heads,tp,pp,dp,gpus,global_batch,microbatch,interleave,seq,vocab,iter_time_s_measured
22B,full_recompute,6144,48,64,8,1,1,8,4,4,1,2048,51200,1.42
22B,full_recompute,6144,48,sixty-four,8,1,1,8,4,4,1,2048,51200,1.42
22B,full_recompute,6144,48,64,8x,1,1,8,4,4,1,2048,51200,1.42
22B,full_recompute,6144,48,64,8,1,1,8,4,4,1,2048,51200,"1,42"
22B,full_recompute,6144,48,64,7,1,1,7,4,4,1,2048,51200,1.42
22B,full_recompute,6144,48,64,8,7,1,56,4,4,1,2048,51200,1.42
22B,full_recompute,6144,48,64,0,1,1,8,4,4,1,2048,51200,1.42
22B,full_recompute,6144,48,64,8,1,1,8,6,4,1,2048,51200,1.42
22B,full_recompute,6144,48,64,8,1,1,8,4,4,1,2048,51200,nan
22B,full_recompute,6144,0,64,8,1,1,8,4,4,1,2048,51200,1.42
22B,seqpar+selective,6144,48,64,8,1,1,8,4,,1,2048,51200,1.1
22B,full_recompute,6144,48,64,8,1,1,8,4,4,1,2048,51200,
"""


def verified(program, folder, name, text, unused, held=True):
    """The rows of a table that are expressed, of which each in `unused` is not: (place, why). `held`: some are, within
    the tolerance that ships."""
    path = write(folder / name, text)
    said_of_rows = "".join(f"{path}:{place}: warning: {why}\n    this row is not expressed\n"
                           for place, why in unused)
    if not held:
        said_of_rows += f"railyard: outside the tolerance: {path.removesuffix('.csv').rpartition('/')[2]}: no row could be held " \
                        "to the tolerance\n"
    return json.loads(expect(program, ["verify", "--json", path], 0 if held else 4, said_of_rows))["rows"]


def case_verify_a_field_that_can_not_be(program, folder):
    expressed = verified(program, folder, "13_steps.csv", TRAINING_ROWS, [
        ("4:28", 'heads: expected a whole number, found the string "sixty-four"'),
        ("5:31", "tp: expected a number, found '8x'"),
        ("6:56", "iter_time_s_measured: expected a number, found '1,42'"),
        ("7:35", "dp: cluster.nodes: expected a whole number, found the number 0.875"),
        ("8:33", "pp: 48 layers don't divide by pipeline = 7, nor with one layer less on the first and last stage"),
        ("9:35", "dp: cluster.nodes: expected a number from 1 to 1000000, found the number 0"),
        ("10:39", "global_batch: 6 sequences don't divide by data 1 x microbatch 4"),
        ("11:56", "iter_time_s_measured: expected a number, found 'nan'"),
        ("12:25", "layers: expected more than zero, found the number 0"),
        ("14:56", "iter_time_s_measured: expected a number, found none")])
    # A field that is not printed is none that is wrong.
    equal("expressed", "22B full_recompute, 22B seqpar+selective", ", ".join(r["row"] for r in expressed))


def case_verify_a_table_of_which_no_row_can_be_expressed(program, folder):
    names = ("case,model,layers,hidden,ffn_hidden,heads,kv_heads,head_dim,vocab,seq,experts,top_k,moe_ffn,shared_experts,"
             "gated_mlp,gpu,gpus,gpus_per_node,nic_gbit_per_gpu,nvlink_domain,precision,tp,pp,vpp,cp,dp,ep,sharding,"
             "microbatch,global_batch,recompute,overlap,metric,value,unit,notes").split(",")
    row = ",".join("V100" if name == "gpu" else "1" for name in names)
    path = write(folder / "runs.csv", f"{','.join(names)}\n{row}\n")
    code, _, stderr = program.run(["verify", path])
    check(code == 2 and "of table runs can be expressed, so nothing was compared" in stderr, stderr)
    # A word of a list that nothing reads is not passed over; one that only describes the plan is said.
    for column, text, unread in (("recompute", "modules:moe_act+half_of_it", "half_of_it"), ("overlap", "dp+tides", "tides"),
                                 ("sharding", "zero1 (by the moon)", "by")):
        said_so = {"recompute": "none", "overlap": "tp+pp_p2p", "sharding": "hsdp", "gpu": "H100", "metric": "step_time",
                   "precision": "bf16", column: text}
        values = [said_so.get(name, "1") for name in names]
        path = write(folder / "words.csv", f"{','.join(names)}\n{','.join(values)}\n")
        code, _, stderr = program.run(["verify", path])
        listed = column == "recompute"
        check((code == 2) == listed and f"{column}: nothing here reads '{unread}'" in stderr, stderr)
        check(listed or "rows with it are run as if it were not there" in stderr, stderr)


def case_verify_units_parts_and_words_that_say_no(program, folder):
    names = ("case,model,layers,hidden,ffn_hidden,heads,kv_heads,head_dim,vocab,seq,experts,top_k,moe_ffn,shared_experts,"
             "gated_mlp,gpu,gpus,gpus_per_node,nic_gbit_per_gpu,nvlink_domain,precision,tp,pp,vpp,cp,dp,ep,sharding,"
             "microbatch,global_batch,recompute,overlap,metric,value,unit,notes").split(",")
    llama = {"layers": 32, "hidden": 4096, "ffn_hidden": 14336, "heads": 32, "kv_heads": 8, "vocab": 128256, "seq": 8192,
             "gated_mlp": 1, "gpu": "H100", "gpus": 8, "gpus_per_node": 8, "precision": "bf16", "tp": 2, "pp": 1, "dp": 4,
             "microbatch": 1, "global_batch": 128, "recompute": "none", "overlap": "dp", "metric": "model_tflops_per_gpu",
             "value": 400, "unit": "TFLOP/s/GPU", "model": "llama", "case": "a run"}

    def run(**changes):
        values = {**llama, **changes}
        path = write(folder / "runs.csv", ",".join(names) + "\n" +
                     ",".join(f'"{values.get(name, "")}"' for name in names) + "\n")
        code, out, stderr = program.run(["verify", "--json", path])
        return json.loads(out)["rows"] if code == 0 else [], stderr

    expected = str(run()[0][0]["simulated"])
    equal("PFLOP/s", "400.0", str(run(value=0.4, unit="PFLOP/s/GPU")[0][0]["published"]))
    equal("8,192", expected, str(run(seq="8,192")[0][0]["simulated"]))
    check(str(run(overlap="tp dp")[0][0]["simulated"]) != expected, "tp is hidden")
    equal("no tp", expected, str(run(overlap="dp no tp")[0][0]["simulated"]))
    nothing = str(run(overlap="none")[0][0]["simulated"])
    for denied in ("no tp", "without tp or dp", "tp=false", "no"):
        equal(denied, nothing, str(run(overlap=denied)[0][0]["simulated"]))
    for denied in ("dp without pp or tp", "dp tp=false", "dp; no tp_comm_overlap", "dp, tp: off"):
        equal(denied, expected, str(run(overlap=denied)[0][0]["simulated"]))
    small = {"hidden": 1024, "ffn_hidden": 4096, "heads": 16, "seq": 1024}  # of which the CPU's launches are most
    launched = str(run(**small)[0][0]["simulated"])
    graphs = str(run(**small, notes="CUDA graphs")[0][0]["simulated"])
    check(graphs != launched, "graphs save launches")
    for said in ("CUDA graphs disabled", "no full-iteration CUDA graphs", "not compiled, no CUDA graph"):
        equal(said, launched, str(run(**small, notes=said)[0][0]["simulated"]))
    other = str(run(**small, notes="no flash attention 3, CUDA graphs")[0][0]["simulated"])
    equal("another word is denied", graphs, other)
    named = str(run(case="nemo 25.02")[0][0]["simulated"])
    check(named != str(run(case="Megatron-Core run")[0][0]["simulated"]), "a stack of its own")
    equal("a release in the notes", named,
          str(run(case="Megatron-Core run", notes="container nemo:25.02")[0][0]["simulated"]))
    equal("not LoRA", expected, str(run(case="not_LoRA_full")[0][0]["simulated"]))
    equal("1.0 %", "1.0", str(run(metric="mfu", value="1.0", unit="%")[0][0]["published"]))
    for changes, why in (({"unit": "tokens/s"}, "the unit is not one of this metric"),
                         ({"metric": "step_time", "unit": "min"}, "expected s or ms"),
                         ({"metric": "tokens_per_s_per_gpu", "unit": "tokens/s"}, "the other way round"),
                         ({"gpu": "H100 NVL94"}, "no node with this card"),
                         ({"gpu": "H100 MIG 3g.40gb"}, "a part of a GPU"),
                         ({"value": 0}, "expected a measurement of more than 0, found 0")):
        found, stderr = run(**changes)
        check(not found and why in stderr, f"{changes}: {stderr}")
    path = write(folder / "runs.csv", ",".join(names) + "\n")
    code, _, stderr = program.run(["verify", path])
    check(code == 2 and "table runs has no rows" in stderr, stderr)


def case_verify_gpus_that_do_not_divide(program, folder):
    rows_of_llama = ("gpus,tp,cp,pp,seq_len,batch_per_dp,tflops_per_gpu\n"
                     "8192,8,1,16,8192,32,430\n8192,,1,16,8192,32,430\n8200,8,1,16,8192,32,430\n")
    expressed = verified(program, folder, "06_llama.csv", rows_of_llama, [
        ("3:6", "tp: expected a value, found none"),
        ("4:6", "tp: tensor 8 x pipeline 16 x data 64 = 8192 GPUs, but the job has 8200 (1025 nodes of 8)")])
    equal("expressed", "1", str(len(expressed)))


def case_verify_a_plan_of_two_quantities(program, folder):
    # Neither its step time nor its memory, and said once.
    expressed = verified(program, folder, "17_runs.csv",
                         "case,real_ms,real_alloc_GiB\nllama3_70b_l12_tp7_pp1_dp1_mbc4,843.00,66.55\n",
                         [("2:1", "tp: 64 attention heads don't divide by tensor = 7")], held=False)
    equal("expressed", "0", str(len(expressed)))


DESCRIBED = """title = "Our steps"
include = ["base.toml"]
[table]
source = "our cluster"
row = "{what} on {gpus}"
[table.set]
"cluster.nodes" = "{gpus / 8}"
"job.parallel.global_batch" = "{batch}"
[[table.when]]
column = "what"
contains = ["full"]
set = { "job.parallel.recompute" = "full" }
[[table.expect]]
quantity = "s per step"
published = "ms / 1000"
simulated = "step_time"
"""
DESCRIBED_BASE = """[run]
duration = "1 h"
[job]
model = "llama2_7b"
checkpoint = { mode = "none" }
[job.parallel]
tensor = 2
[failures]
profile = "none"
"""


def case_verify_a_table_of_ones_own(program, folder):
    write(folder / "base.toml", DESCRIBED_BASE)
    description = write(folder / "mine.toml", DESCRIBED)
    table = write(folder / "mine.csv", "what,gpus,batch,ms\nfirst,16,16,900\nfull,16,16,1200\nlast,20,16,900\n")
    odd = f"{table}:4:6: warning: gpus: cluster.nodes: expected a whole number, found the number 2.5\n" \
          "    this row is not expressed\n"
    by_itself = json.loads(expect(program, ["verify", "--json", description], 0, odd))
    rows = by_itself["rows"]
    equal("rows", "first on 16, full on 16", ", ".join(row["row"] for row in rows))
    # What runs again takes longer; what is printed is in the columns' own numbers.
    check(rows[0]["simulated"] < rows[1]["simulated"], f"recompute = full is not slower: {rows}")
    equal("published", "0.9", str(rows[0]["published"]))
    # A description is of the table after it, whatever that is called.
    other = write(folder / "other.csv", "what,gpus,batch,ms\nfirst,16,16,900\n")
    again = json.loads(expect(program, ["verify", "--json", description, other], 0, ""))["rows"]
    equal("simulated", str(rows[0]["simulated"]), str(again[0]["simulated"]))


MIX = """title = "Our failures"
[run]
replicas = 10
duration = "1000 day"
[cluster]
nodes = 16
[job]
step.time = "1 s"
checkpoint.mode = "none"
recovery = { replacement = "0 s", restart = "0 s", restore = "0 s", recompute = false }
[[failures.cause]]
name = "node"
rate_per_job = "1 /day"
[[failures.cause]]
name = "others"
rate_per_job = "1 /day"
[table]
row = "{site} {what}"
[[table.sum]]
name = "all"
of = "seen"
among = "site"
column = "unit"
is = ["events"]
[table.set]
"failures.cause.0.rate_per_job" = "{seen / all} /day"
"failures.cause.1.rate_per_job" = "{1 - seen / all} /day"
[[table.expect]]
quantity = "events"
column = "unit"
is = ["events"]
published = "seen"
simulated = "interruptions_{cause} / interruptions * all"
tolerance.row = 0.05
"""


def case_verify_a_mix_of_causes(program, folder):
    # A sum is over the rows of one site that are events; which metric a row is held to, its column says.
    description = write(folder / "mix.toml", MIX)
    table = "site,what,seen,unit,cause\na,GPU,30,events,node\na,NIC,10,events,node\nb,GPU,5,events,node\n" \
            "a,repair,7,h,node\na,rest,40,events,others\n"
    write(folder / "mix.csv", table)
    rows = json.loads(expect(program, ["verify", "--json", description], 0, ""))["rows"]
    equal("rows", "a GPU, a NIC, b GPU, a rest", ", ".join(row["row"] for row in rows))
    # A cause that the scenario lacks is no metric.
    wrong = write(folder / "mix.csv", table.replace("b,GPU,5,events,node", "b,GPU,5,events,fan"))
    code, _, stderr = program.run(["verify", description, wrong])
    check(code == 2 and "there is no interruptions_fan" in stderr, stderr)
    write(folder / "mix.toml", MIX.replace('of = "seen"', 'of = "sen"'))
    code, _, stderr = program.run(["verify", description, wrong])
    check(code == 2 and "table.sum[0].of" in stderr and "no column sen" in stderr, stderr)


def case_verify_what_is_outside_a_tolerance(program, folder):
    write(folder / "base.toml", DESCRIBED_BASE)
    write(folder / "mine.csv", "what,gpus,batch,ms\nfirst,16,16,900\nfull,16,16,1200\n")
    for tolerance, code, said in (
            ("row = 50\nmean = 50", 0, ""),
            ("row = 0.001", 4, "mine, first on 16: s per step: "),
            ("mean = 0.001", 4, "in the mean of 2 rows, at most 0.1 % are allowed")):
        description = write(folder / "mine.toml", DESCRIBED + f"[table.expect.tolerance]\n{tolerance}\n")
        found, stdout, stderr = program.run(["verify", "--json", description])
        equal(f"exit with {tolerance}", str(code), str(found))
        check(said in stderr and ("outside the tolerance" in stderr) == (code != 0), stderr)
        check(bool(json.loads(stdout)["summary"]["mine"]["outside"]) == (code != 0), stdout)
    # Without a row to hold to it nothing is known: that is no success.
    write(folder / "mine.csv", "what,gpus,batch,ms\nlast,20,16,900\n")
    code, _, stderr = program.run(["verify", description])
    check(code == 4 and "no row could be held to the tolerance" in stderr, stderr)
    wrong = write(folder / "wrong.toml", DESCRIBED + "tolerance = { row = -1 }\n")
    code, _, stderr = program.run(["verify", wrong, folder / "mine.csv"])
    check(code == 2 and "table.expect[0].tolerance.row" in stderr, stderr)


def case_verify_runs_of_nccl_tests_of_ones_own(program, folder):
    description = write(folder / "mine.toml", """[table]
row = "{op} {size}"
[table.nccl_tests]
device = "H100"
network = "8x NDR400 IB"
collective = "{op}"
gpus = "{all}"
nodes = "{all / 8}"
bytes = "{size}"
[[table.expect]]
quantity = "us"
published = "measured"
simulated = "1e6 * time"
[[table.expect]]
quantity = "GB/s"
published = "measured"
simulated = "busbw * 1e-9"
""")
    table = write(folder / "mine.csv", "op,all,size,measured\nall_reduce,16,8388608,215\nall_reduce,16,1073741824,4900\n"
                                       "all_to_some,16,8,3\nall_reduce,16,much,3\n")
    odd = (f"{table}:4:1: warning: op: no collective is called 'all_to_some'\n    this row is not expressed\n"
           f"{table}:5:15: warning: size: expected a number, found 'much'\n    this row is not expressed\n")
    rows = json.loads(expect(program, ["verify", "--json", description], 0, odd))["rows"]
    equal("rows", "4", str(len(rows)))
    check(rows[0]["simulated"] < rows[2]["simulated"], f"more bytes take no longer: {rows}")
    # One network, operation or algorithm, as people write them.
    for text in ("8x CX7", "3.2 Tbps InfiniBand", "IB NDR", "3200 Gb/s NDR InfiniBand", "not said", "NDR 400G per GPU"):
        again = write(folder / "again.toml", pathlib.Path(description).read_text().replace("8x NDR400 IB", text))
        same = json.loads(expect(program, ["verify", "--json", again, table], 0, odd))["rows"]
        equal(text, str(rows), str(same))
    # NICs of two ports have both; what names no network is no network.
    ports = write(folder / "ports.toml", pathlib.Path(description).read_text().replace("8x NDR400 IB", "8x 2x200G IB"))
    whole = write(folder / "whole.toml", pathlib.Path(description).read_text().replace("8x NDR400 IB", "8x400G IB"))
    figures = [[row["simulated"] for row in json.loads(expect(program, ["verify", "--json", each, table], 0, odd))["rows"]] for each in (ports, whole)]
    equal("ports", str(figures[0]), str(figures[1]))
    for text in ("2x 8x400G", "8x 2x200G + 2x100G", "contributed by a lab"):
        none = write(folder / "none.toml", pathlib.Path(description).read_text().replace("8x NDR400 IB", text))
        _, stdout, stderr = program.run(["verify", "--json", none, table])
        check("expected one kind of NIC" in stderr, f"{text}: {stdout} {stderr}")
    written = write(folder / "written.csv", "op,all,size,measured\nall-reduce,16,8388608,215\nall_reduce_perf,16,8388608,215\n")
    same = json.loads(expect(program, ["verify", "--json", description, written], 0, ""))["rows"]
    equal("times", str([rows[0]["simulated"]] * 2), str([row["simulated"] for row in same if row["quantity"] == "us"]))
    # A card is no module, and what no node has is said.
    for gpu, code in (("H100 PCIe", 0), ("H100 NVL", 4), ("A100 PCIe", 4)):
        card = write(folder / "card.toml", pathlib.Path(description).read_text().replace('"H100"', f'"{gpu}"') +
                     "tolerance.row = 100\n")
        found, stdout, stderr = program.run(["verify", "--json", card, write(folder / "card.csv", "op,all,size,measured\nall_reduce,8,1073741824,4900\n")])
        check(found in (code, 2) and (code == 0 or f"has a GPU '{gpu}'" in stderr), f"{found} {stderr}")
        check(code or json.loads(stdout)["rows"][1]["simulated"] < 100, f"as fast as with an NVSwitch: {stdout}")
    # 2 (n - 1) / n of the bytes, over the time.
    busbw = 2 * 15 / 16 * 1073741824 / rows[2]["simulated"] * 1e-3
    check(abs(rows[3]["simulated"] / busbw - 1) < 1e-9, f"expected {busbw}, found {rows[3]}")


def case_verify_columns_that_a_template_reads(program, folder):
    # What is asked for is read, whether or not it is listed; only what nothing asks for is warned of.
    description = write(folder / "mine.toml", """[table]
row = "{op} on {gpus}"
read = ["op"]
[table.nccl_tests]
device = "H100"
collective = "{op}"
gpus = "{gpus}"
bytes = "{size}"
[[table.when]]
column = "state"
contains = ["broken"]
skip = true
[[table.expect]]
quantity = "GB/s"
published = "pub_busbw"
simulated = "busbw * 1e-9 * {scale}"
""")
    table = write(folder / "mine.csv", "op,gpus,size,state,pub_busbw,scale,lab\nall_reduce,8,1073741824,good,460,1,ours\n")
    expect(program, ["verify", description], 0, f"{table}: warning: lab: nothing reads this column\n")


def case_verify_keys_that_words_decide(program, folder):
    write(folder / "base.toml", DESCRIBED_BASE)
    words = """[[table.words]]
key = "job.software"
columns = ["what", "about"]
values = { Mega = "megatron_lm", Megatron-2021 = "megatron_2021" }
"""
    rows = "what,gpus,batch,ms\nMega,16,16,900\nMegatron-2021,16,16,900\nother,16,16,900\n"
    description = write(folder / "mine.toml", DESCRIBED + words)
    # The longest word wins; the lines above the header decide where the row is silent.
    table = write(folder / "mine.csv", "# run by Megatron-2021\n" + rows)
    found = json.loads(expect(program, ["verify", "--json", description], 0, ""))["rows"]
    equal("stacks", "megatron_lm megatron_2021 megatron_2021", " ".join(row["software"] for row in found))
    check(found[0]["simulated"] < found[1]["simulated"], f"the stack decides nothing: {found}")
    write(folder / "mine.csv", rows)
    said = f"{table}:4:1: warning: what: no word of it says what job.software is\n    this row is not expressed\n"
    expect(program, ["verify", "--json", description], 0, said)


def case_verify_releases_that_words_name(program, folder):
    write(folder / "base.toml", DESCRIBED_BASE)
    words = """[[table.words]]
key = "job.software"
name = "stack"
columns = ["what", "about"]
[table.words.values]
NeMo = "megatron_lm"
[[table.words.release]]
pattern = 'nemo[ _]?(\\d\\d)[.]?(\\d\\d)'
[table.words.release.from]
"2502" = "nemo_25.02"
"2509" = "nemo_25.09"
[[table.when]]
column = "stack"
is = ["nemo_25.09"]
set = { "job.parallel.tensor" = 4 }
"""
    description = write(folder / "mine.toml", DESCRIBED + words)
    # The newest that is not later, of what is written in whichever way; before all, the word alone.
    names = ["NeMo", "NeMo 24.07", "nemo_25.04", "nemo2509", "NeMo 26.02"]
    rows = "".join(f"{name},16,16,900\n" for name in names)
    write(folder / "mine.csv", "what,gpus,batch,ms\n" + rows)
    found = json.loads(expect(program, ["verify", "--json", description], 0, ""))["rows"]
    equal("stacks", "megatron_lm megatron_lm nemo_25_02 nemo_25_09 nemo_25_09", " ".join(row["software"] for row in found))
    check(found[2]["simulated"] != found[3]["simulated"], f"'when' does not see what the words say: {found}")
    wrong = write(folder / "wrong.toml", DESCRIBED + words.replace('"2502" =', '"of spring" ='))
    code, _, stderr = program.run(["verify", wrong, folder / "mine.csv"])
    check(code == 2 and "table.words[0].release[0].from: expected releases, found 'of spring'" in stderr, stderr)


def case_verify_rows_that_can_not_be_said(program, folder):
    write(folder / "base.toml", DESCRIBED_BASE)
    reasons = """[[table.when]]
column = "what"
contains = ["hybrid"]
refuse = "layers of two kinds can't be said"
"""
    description = write(folder / "mine.toml",
                        DESCRIBED.replace("[table]\n", "[table]\nevery_row = true\n")
                        .replace("[[table.expect]]\n", '[[table.expect]]\ncolumn = "unit"\nis = ["ms"]\n') + reasons)
    table = write(folder / "mine.csv", "what,gpus,batch,ms,unit\nfirst,16,16,900,ms\nhybrid,16,16,900,ms\nlast,16,16,900,weeks\n")
    said = (f"{table}:3:1: warning: what: layers of two kinds can't be said\n    this row is not expressed\n"
            f"{table}:4:16: warning: unit: nothing is held to 'weeks' here\n    this row is not expressed\n")
    rows = json.loads(expect(program, ["verify", "--json", description], 0, said))["rows"]
    equal("rows", "first on 16", ", ".join(row["row"] for row in rows))


RUN = {"case": "a run", "model": "Llama 3 8B", "layers": 32, "hidden": 4096, "ffn_hidden": 14336, "heads": 32, "kv_heads": 8,
       "head_dim": 128, "vocab": 128256, "seq": 8192, "experts": "", "top_k": "", "moe_ffn": "", "shared_experts": "",
       "gated_mlp": 1, "gpu": "H100", "gpus": 64, "gpus_per_node": 8, "nic_gbit_per_gpu": 400, "nvlink_domain": 8,
       "precision": "bf16", "tp": 1, "pp": 1, "vpp": "", "cp": 1, "dp": "", "ep": 1, "sharding": "zero1", "microbatch": 1,
       "global_batch": 256, "recompute": "none", "overlap": "dp", "metric": "step_time", "value": 1, "unit": "s", "notes": ""}
SHAPELESS = {name: "" for name in ("layers", "hidden", "ffn_hidden", "heads", "kv_heads", "head_dim", "vocab", "gated_mlp")}
MIXTURE = {"experts": 64, "top_k": 4, "moe_ffn": 1024, "global_batch": 512}


def trainings(program, folder, *runs):
    """What verify makes of training runs that differ from RUN in these columns."""
    with open(folder / "runs.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, RUN)
        writer.writeheader()
        writer.writerows({**RUN, **run} for run in runs)
    path = str(folder / "runs.csv")
    code, stdout, stderr = program.run(["verify", "--json", path])
    check(code in (0, 2), stderr)
    return (json.loads(stdout)["rows"] if code == 0 else []), stderr


def case_verify_training_runs_as_people_write_them(program, folder):
    # Two ways to say one run, each.
    titan = {"notes": "torchtitan", "pp": 4, "tp": 2, "gpu": "H100-96GB", "sharding": "fsdp2 (zero3)"}
    grace = {"gpu": "GB200", "gpus_per_node": 4, "nvlink_domain": 72, "notes": "mbridge_26.02", "nic_gbit_per_gpu": 400}
    eight = {"precision": "fp8", "notes": "torchtitan_2025"}
    latent = {**MIXTURE, "model": "DeepSeek-V3", "layers": 61, "head_dim": 192, "experts": 256, "top_k": 8, "moe_ffn": 2048, "ep": 64, "gpus": 256}
    flops = {"metric": "TFLOPS/GPU", "unit": "TFLOP/s", "recompute": "full", "microbatch": 4}
    mla = "MLA (q_lora 1536; kv_lora 512; qk 128+64; v 128)"
    for one, other in (
            ({**titan, "microbatch": 32}, {**titan, "microbatch": 8}),  # of 8 replicas, in 4 parts
            ({**titan, "microbatch": ""}, {**titan, "microbatch": 8}),
            ({**titan, "notes": "torchtitan; interleaved 1F1B", "microbatch": ""}, {**titan, "vpp": 2, "microbatch": 8}),
            ({**grace, "gpus": 80, "global_batch": 320}, {**grace, "gpus": 80, "global_batch": 320, "nvlink_domain": 40}),
            ({**grace, "gpus_per_node": "", "nvlink_domain": ""}, grace),
            ({**eight, "precision": "fp8_rowwise"}, {**eight, "notes": "torchtitan_2025; rowwise"}),
            ({**eight, "precision": "float8 tensorwise"}, {**eight, "notes": "torchtitan_2025; tensorwise"}),
            ({**grace, "precision": "FP8-MX"}, {**grace, "precision": "mxfp8"}),
            ({"precision": "fp8_blockwise", "notes": "mbridge_26.02"}, {"precision": "fp8_cs", "notes": "mbridge_26.02"}),
            ({"recompute": "block 5"}, {"recompute": "full:5"}),
            ({"recompute": "full 20 layers"}, {"recompute": "full:20"}),
            ({"recompute": "uniform 1"}, {"recompute": "full"}),
            ({"notes": "5 of 6 layers sliding window 1024"}, {"notes": "5 of 6 layers with sliding window 1024"}),
            ({"notes": "sliding-window attention of 1024 tokens", "seq": 8192}, {"notes": "sliding window 1024", "seq": 8192}),
            ({"notes": "5:1 local/global attention; window size 1024"}, {"notes": "5 of 6 layers sliding window 1024"}),
            ({"notes": "chunked attention 3072 in 3 of 4 layers", "seq": 4096}, {"notes": "3 of 4 layers sliding window 2048", "seq": 4096}),
            ({"notes": "24 of 32 layers chunked attention (3072)", "seq": 4096}, {"notes": "3 of 4 layers sliding window 2048", "seq": 4096}),
            ({"notes": "chunked attention in 3 of 4 layers; chunk 4096", "seq": 4096}, {"seq": 4096}),
            ({"notes": "chunked attention 3072", "seq": 4096}, {"notes": "sliding window 2048", "seq": 4096}),
            ({"notes": "torchtune; LoRA for 70B base, rank 8, lr 2e-4"}, {"notes": "torchtune", "sharding": "zero1; LoRA rank 8"}),
            ({**latent, "notes": f"{mla}; LoRA rank 8"}, {**latent, "notes": mla, "sharding": "zero1; LoRA rank 8"}),
            ({**SHAPELESS, "vocab": ""}, {}),
            ({**SHAPELESS, "model": "Mixtral-8x7B", "ep": 8}, {**SHAPELESS, "model": "Mixtral 8x7B of Mistral AI", "ep": 8}),
            ({**MIXTURE, "model": "DeepSeek-V2-Lite", "head_dim": "", "notes": "MLA; first layer dense"},
             {**MIXTURE, "head_dim": "", "notes": "MLA (kv_lora 512; qk 128+64; v 128); first 1 layers dense"}),
            ({"notes": "torchtitan without compile"}, {"notes": "torchtitan; torch.compile=false"}),
            ({"notes": "better than NeMo; own framework"}, {}),
            ({"recompute": "no activation recomputation"}, {"recompute": "none"}),
            ({"recompute": "checkpointing of every transformer block"}, {"recompute": "full"}),
            ({"recompute": "gradient_checkpointing=true"}, {"recompute": "full"}),
            ({"recompute": "recompute_granularity=full;recompute_method=uniform;recompute_num_layers=1"}, {"recompute": "full"}),
            ({"recompute": "full (block, 10 layers)"}, {"recompute": "full:10"}),
            ({"recompute": "selective AC (every other block)"}, {"recompute": "every 2nd layer"}),
            ({"recompute": "selective (core attention)"}, {"recompute": "none"}),
            ({"recompute": "RMSNorm, SwiGLU"}, {"recompute": "modules:layernorm+moe_act"}),
            ({"recompute": "outputs of linear layers are saved"}, {"recompute": "layernorm;moe_act"}),
            ({"recompute": "N/A"}, {"recompute": ""}),
            ({"overlap": "computation of activations and all_reduce overlapped", "pp": 2}, {"overlap": "dp", "pp": 2}),
            ({"overlap": "grad reduce and param gather overlapped; TP comm overlap off", "tp": 2}, {"overlap": "dp", "tp": 2}),
            ({"overlap": "tensor-parallel: no; data-parallel: yes", "tp": 2}, {"overlap": "dp", "tp": 2}),
            ({"overlap": "overlap with everything except TP", "tp": 2, "pp": 2}, {"overlap": "dp+pp", "tp": 2, "pp": 2}),
            ({"overlap": "communication overlapped with computation", "tp": 2}, {"overlap": "all", "tp": 2}),
            ({"overlap": "not reported", "tp": 2}, {"tp": 2}),
            ({"overlap": "disabled", "tp": 2}, {"overlap": "none", "tp": 2}),
            ({"sharding": "hybrid shard within node"}, {"sharding": "hsdp"}),
            ({"sharding": "FSDP over 16 x DDP 4"}, {"sharding": "fsdp over 16"}),
            ({"sharding": "ZeRO-3, partition size 8"}, {"sharding": "zero3 over 8"}),
            ({"sharding": "zero_stage: 2"}, {"sharding": "zero2"}),
            ({"sharding": "distributed optimizer off"}, {"sharding": "none"}),
            ({"metric": "Time per step (s)"}, {"metric": "step_time"}),
            ({"metric": "iteration time (ms)", "unit": "milliseconds"}, {"metric": "step_time", "unit": "ms"}),
            ({"metric": "tokens/GPU/second", "unit": "k tokens/s/gpu", "value": 1}, {"metric": "TGS", "unit": "tokens/s/gpu", "value": 1000}),
            ({"notes": "torchtitan", "recompute": "selective (2)"}, {"notes": "torchtitan", "recompute": "every 2nd layer"}),
            ({"notes": "torchtitan", "recompute": "selective activation checkpointing"}, {"notes": "torchtitan", "recompute": "SAC"}),
            ({"notes": "torchtune; LoRA r=16"}, {"notes": "torchtune", "sharding": "zero1; LoRA"}),
            ({**MIXTURE, "notes": "interleave_moe_layer_step 2"}, {**MIXTURE, "notes": "MoE every 2nd layer"}),
            ({**MIXTURE, "notes": "every other layer is MoE"}, {**MIXTURE, "notes": "MoE every 2nd layer"}),
            ({**latent, "notes": f"{mla}; first_k_dense_replace 3"}, {**latent, "notes": "multi-head latent attention"}),
            ({**latent, "notes": f"{mla}; first 3 layers dense"}, {**latent, "head_dim": "", "notes": "none"}),
            ({**latent, "notes": f"{mla}; without MTP"}, {**latent, "case": "run_woMTP", "notes": mla}),
            ({"notes": "Megatron-Bridge 0.3"}, {"notes": "NeMo Framework 26.02"}),
            ({"notes": "dgxc_v25.11"}, {"notes": "nemo_25.09"}),
            ({"seq": "8k", "hidden": "4096.0", "gated_mlp": "SwiGLU", "nic_gbit_per_gpu": "400 Gbps", "global_batch": "~256"}, {}),
            ({"nic_gbit_per_gpu": "", "notes": "4x HDR 200G"}, {"nic_gbit_per_gpu": 100}),
            ({"nic_gbit_per_gpu": "", "notes": "800 Gb/s RoCE per node"}, {"nic_gbit_per_gpu": 100}),
            ({"nic_gbit_per_gpu": "", "notes": "InfiniBand, 100 Gbit/s per GPU"}, {"nic_gbit_per_gpu": 100}),
            ({"sharding": "dp_replicate=8, dp_shard=8"}, {"sharding": "fsdp over 8"}),
            ({"sharding": "HSDP (8x8)"}, {"sharding": "fsdp over 8"}),
            ({"sharding": "FSDP2 (reshard_after_forward=False)"}, {"sharding": "zero2"}),
            ({"overlap": "userbuffers, dp", "tp": 2}, {"overlap": "tp dp", "tp": 2}),
            ({"metric": "elapsed time per iteration (ms)", "unit": "ms"}, {"metric": "step_time", "unit": "ms"}),
            ({"metric": "tps/GPU", "unit": "tokens/s/gpu"}, {"metric": "TGS", "unit": "tokens/s/gpu"}),
            ({"notes": "LoRA not used"}, {}),
            ({"notes": "PEFT, adapters r=8"}, {"sharding": "zero1; LoRA rank 8"}),
            # A forward pass more is in what these stacks print, unless it is said to be the model's.
            ({**flops, "notes": "GPT-NeoX", "value": 160}, {**flops, "notes": "GPT-NeoX", "metric": "model TFLOP/s", "value": 120}),
            ({**flops, "value": 160, "notes": "8ND"}, {**flops, "value": 120}),
            ({**flops, "value": 120, "notes": "MFU 38 %, HFU 50 %"}, {**flops, "value": 120}),
            ({"notes": "DeepSpeed"}, {"notes": "DeepSpeed with flash attention"})):  # on an H100
        rows, stderr = trainings(program, folder, one, other)
        check(len(rows) == 2 and rows[0]["error"] == rows[1]["error"], f"{one}\n{other}: {rows} {stderr}")
    # More expert ranks than share the data: they are tensor ranks too.
    rows, stderr = trainings(program, folder, {**MIXTURE, "tp": 4, "gpus": 128, "ep": 64, "notes": "torchtitan"})
    check(len(rows) == 1, stderr)
    # What is different is.
    for one, other in (({**grace, "gpus": 72, "global_batch": 288, "nvlink_domain": 36}, {**grace, "gpus": 72, "global_batch": 288}),
                       ({**eight, "precision": "fp8_rowwise"}, eight),
                       ({"notes": "5 of 6 layers sliding window 1024"}, {}),
                       ({**MIXTURE, "notes": "MoE every 2nd layer"}, MIXTURE),
                       ({**latent, "notes": f"{mla}; without MTP"}, {**latent, "notes": mla}),
                       ({"notes": "torchtitan", "recompute": "selective"}, {"notes": "torchtitan", "recompute": "none"}),
                       ({"gpu": "A100-PCIe-80GB", "tp": 8}, {"gpu": "A100-80GB", "tp": 8})):
        rows, stderr = trainings(program, folder, one, other)
        check(len(rows) == 2 and rows[0]["simulated"] != rows[1]["simulated"], f"{one}\n{other}: {rows} {stderr}")


def case_verify_training_runs_as_spreadsheets_write_them(program, folder):
    run = {**RUN, "value": "1.250", "notes": '"a, b"', "nvlink_domain": "8"}
    simulated = set()
    for name, separator, mark, point in (("plain", ",", "", "."), ("excel", ";", "\ufeff", ","), ("tabs", "\t", "", "."),
                                         ("after_a_blank_line", ",", "# mine\n\r\n", ".")):
        lines = [separator.join(RUN), separator.join(str(value) for value in run.values()).replace("1.250", f"1{point}250")]
        path = write(folder / f"{name}.csv", mark + "\n".join(lines) + "\r\n")
        row = json.loads(expect(program, ["verify", "--json", path], 0, ""))["rows"][0]
        equal("published", "1.25", str(row["published"]))
        simulated.add(row["simulated"])
    equal("simulated", 1, len(simulated))
    without = [name for name in RUN if name not in ("unit", "overlap", "notes", "vpp", "dp")]
    path = write(folder / "short.csv", ",".join(without) + "\n" + ",".join(str(RUN[name]) for name in without) + "\n")
    equal("rows", 1, len(json.loads(expect(program, ["verify", "--json", path], 0, ""))["rows"]))
    path = write(folder / "twice.csv", ",".join([*RUN, "gpus"]) + "\n")
    expect(program, ["verify", path], 2, f"railyard: error: {path}:1:{len(','.join(RUN)) + 2}: another column is called gpus\n")


def case_verify_a_setting_that_can_not_be(program, folder):
    path = write(folder / "runs.csv", ",".join(RUN) + "\n" + ",".join(str(value) for value in RUN.values()) + "\n")
    expect(program, ["verify", path, "--set", "job.recompute=true"], 2,
           "verify with --set: error: job.recompute: no scenario has this key\n    'railyard list keys' prints them\n")


def case_verify_training_runs_that_can_not_be_said(program, folder):
    for run, said in (({"gpu": "H200 NVL"}, "gpu: the catalogue has no node with this card"),
                      ({"notes": "hybrid Mamba"}, "notes: no column says what states these layers have"),
                      ({**MIXTURE, "notes": "MoE in every layer but the last"}, "notes: a mixture in each so many-th layer"),
                      ({"notes": "3 of 5 layers sliding window 1024"}, "notes: one layer of so many that sees all"),
                      ({"model": "Jamba 1.5"}, "model: no column says what states its layers have"),
                      ({"gpu": "MI250X", "gpus_per_node": 4}, "gpu: a card of two dies"),
                      ({"notes": "QLoRA"}, "notes: weights of four bits"),
                      ({"recompute": "by moonlight"}, "recompute: nothing here reads 'by moonlight'"),
                      ({"notes": "chunked attention in 3 of 4 layers"}, "notes: chunks of so many tokens"),
                      ({"notes": "SWA 5:1"}, "notes: how far a window reaches"),
                      ({"notes": "5:1 local/global attention"}, "notes: how far a window reaches"),
                      ({"notes": "MLA"}, "latent attention needs its rank"),
                      ({"precision": "mxfp4"}, "precision: no word of it says"),
                      ({"metric": "time_to_train_min"}, "metric: nothing is held to 'time_to_train_min' here")):
        rows, stderr = trainings(program, folder, run)
        check(not rows and said in stderr, f"{run}: {rows} {stderr}")
    rows, stderr = trainings(program, folder, {**SHAPELESS, "model": "Our 8B"})
    check(not rows and "model: the row does not say how many layers" in stderr, f"{rows} {stderr}")
    for run in ({"layers": ""}, {"hidden": ""}, {"heads": ""}):
        rows, stderr = trainings(program, folder, run)
        check(not rows and "case: the row does not say how" in stderr, f"{run}: {rows} {stderr}")
    rows, stderr = trainings(program, folder, {"dp": 32})
    check(len(rows) == 1 and "case: TP x PP x CP x DP is another number than gpus" in stderr, f"{rows} {stderr}")
    rows, stderr = trainings(program, folder, {"microbatch": 4, "global_batch": 1538}, {"microbatch": 4, "global_batch": 1536})
    check(len(rows) == 2 and rows[0]["error"] == rows[1]["error"] and "whole microbatches" in stderr, f"{rows} {stderr}")
    rows, stderr = trainings(program, folder, {"model": "Qwen2.5-VL 7B"})
    check(len(rows) == 1 and "model: its images and their encoder are no columns" in stderr, f"{rows} {stderr}")
    check("job.parallel.tensor=1" in rows[0]["settings"] and "model.run.layers=32" in rows[0]["settings"], f"{rows}")
    rows, stderr = trainings(program, folder, {"sharding": "ZeRO-Offload"})
    check(len(rows) == 1 and "sharding: states in the host's memory are not modelled" in stderr, f"{rows} {stderr}")
    _, stderr = trainings(program, folder, {"precision": "fp8 by moonlight"})
    check("precision: nothing here reads 'moonlight'" in stderr, stderr)


def case_verify_the_interval_of_a_stack_by_how_it_is_named(program, folder):
    # A release has the interval of a named stack, a name without one, or from before all, that of one nobody named.
    named = ["nemo_25.07", "NeMo 24.12", "mbridge_26.10", "Megatron-Bridge 0.2", "mcore 0.15", "mlperf_v6.0", "torchtitan 2024"]
    others = ["", "Megatron", "Megatron-Core 0.7", "Megatron-Bridge", "DeepSpeed", "GPT-NeoX", "nanotron", "PyTorch FSDP", "NeMo 23.11"]
    rows, _ = trainings(program, folder, *[{"notes": name} for name in named + others])
    widths = [row["model_error"][1] for row in rows]
    check(len(rows) == len(named + others), f"{rows}")
    check(set(widths[: len(named)]) == {widths[0]} and set(widths[len(named):]) == {widths[-1]}, f"{widths}")
    check(widths[0] < widths[-1], f"{widths}")


def case_verify_a_description_that_can_not_be(program, folder):
    write(folder / "base.toml", DESCRIBED_BASE)
    table = write(folder / "t.csv", "what,gpus,batch,ms\nfirst,16,16,900\n")
    for change, said in (
            (('"cluster.nodes"', '"cluster.node_count"'),
             "7:1: error: table.set.cluster.node_count: no scenario has the key cluster.node_count"),
            (('"ms / 1000"', '"msec / 1000"'), "15:1: error: table.expect[0].published: the table has no column msec"),
            (('"{gpus / 8}"', '"{gpus / }"'), "7:1: error: table.set.cluster.nodes: can't be computed: "),
            (("[table.set]", '[[table.same]]\ncolumn = "what"\npatterns = ["(first"]\nas = "last"\n[table.set]'),
             "table.same[0].patterns: '(first' is no regular expression: "),
            (('"step_time"', '"steptime"'), "there is no steptime"),
            (('"step_time"', '"ms / 1000"'), "16:1: error: table.expect[0].simulated: names columns only"),
            (('contains = ["full"]', ""), "10:1: error: table.when[0].column: needs is = [...], contains = [...] or lacks = [...]")):
        description = write(folder / "bad.toml", DESCRIBED.replace(*change))
        code, _, stderr = program.run(["verify", description, table])
        check(code == 2 and said in stderr, f"expected '{said}', found exit {code}: {stderr}")


def case_verify_a_table_that_nothing_describes(program, folder):
    # Their numbers are those of tables that ship, whose columns they do not have.
    for name in ("50_mine.csv", "14_mine.csv", "mine.csv"):
        path = write(folder / name, "mine,yours\n1,2\n")
        expect(program, ["verify", path], 2,
               f"{path}: error: nothing says what its columns are\n"
               f"    name the TOML file that describes it before it: railyard verify TABLE.toml {path}\n")


def case_verify_a_message_that_can_not_be(program, folder):
    expressed = verified(program, folder, "31_nvlink.csv",
                         "device,op,num_gpus,bytes,median_us\nH100 SXM,all_reduce,8,a lot,100\n"
                         "H100 SXM,all_reduce,8,8388608,\"about 100\"\n",
                         [("2:23", "bytes: expected a number, found 'a lot'"),
                          ("3:31", "median_us: expected a number, found 'about 100'")], held=False)
    equal("expressed", "0", str(len(expressed)))
