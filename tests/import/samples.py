"""Files that others have published, and what importing each comes to. They are beside the checkout, where they are at
all: their licences let them be kept, not handed on."""

import pathlib
import re
import subprocess
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "formats" / "samples"
# Arguments, with files under FOLDER; the exit code; what the output must say, or the error.
SAMPLES = [
    ("slurm slurm/aws_pcluster_gpu_partition.conf slurm/aws_pcluster_gpu_gres.conf", 2,
     ["which node of the catalogue has 2 GPUs that this site calls 'm60'", "8 GPUs that this site calls 'v100'"]),
    ("slurm slurm/aws_pcluster_gpu_partition.conf --node m60=l40s_4 --node v100=dgx_a100", 0,
     ["15 of 15 nodes are CLOUD", "nodes = 15", "no time limit"]),
    ("slurm slurm/deepops_slurm.conf.j2", 2, [":11:1: error: a template"]),
    ("slurm slurm/deepops_gres.conf.j2", 2, [":1:1: error: a template"]),
    ("slurm slurm/sinfo_v0.0.37.json", 2, ["JSON of sinfo"]),
    ("slurm slurm/squeue_v0.0.37.json", 2, ["JSON of sinfo, squeue"]),
    ("slurm slurm/topograph_medium_model.yaml", 2, ["a model of topograph"]),
    ("slurm slurm/topograph_nvl72_model.yaml", 2, ["a model of topograph"]),
    ("megatron training/megatron_train_mixtral_8x7b.sh", 0,
     ["pipeline = 4 ", "expert = 8 ", "global_batch = 256 ", "sequence_length = 4096 ", "zero = 1 ",
      'interval = "10000 steps"', 'recompute = "none"']),
    ("megatron training/megatron_fsdp_deepseek_v3_sbatch.sh", 0,
     ["expert = 8 ", "EP is 8 unless the environment says otherwise", "microbatch = 4 ", "global_batch = 2048 ",
      "zero = 3 ", 'recompute_parts = ["feed_forward", "experts", "latent_up", "norms"]']),
    ("nemo training/nemo_megatron_llama_config.yaml", 0,
     ["microbatch = 4 ", "global_batch = 8 ", "sequence_length = 4096 ", "sequence_parallel = false"]),
    ("torchtitan training/torchtitan_llama3_405b.toml", 0, ["tensor = 8 "]),
    # 40 switches and 582 CAs, of which 40 are the switches' own and 69 have no host name; 119 DGX, 10 with 3 NICs.
    ("ibnetdiscover network/ibnetdiscover_dgx_ndr_topograph.out -o {out}/mine.toml", 2,
     ["of 582 CAs have no host name"]),
    ("ibnetdiscover network/ibnetdiscover_dgx_ndr_topograph.out -o {out}/mine.toml --skip-bad", 0,
     ["40 switches and 582 CAs, 40 of which are the switches' own", "109 hosts have 4 NICs",
      "31 leaves and 9 spines", "IBSPINE-09 62", "IBSPINE-04 52", "26 cables are missing", "(14)",
      "b08-p1-dgx-08-c01: mlx5_4 and mlx5_5 are swapped"]),
    ("ibnetdiscover network/ibnetdiscover_bad_gb200.out -o {out}/mine.toml", 2, ["1 CAs and no switch"]),
    ("ibnetdiscover network/ibnetdiscover_p_test.out -o {out}/mine.toml", 2, ["the list of ports that -p prints"]),
    ("ibnetdiscover network/ibnetdiscover_p_test2.out -o {out}/mine.toml", 2, ["the list of ports that -p prints"]),
    ("ibnetdiscover network/netq_topologyGraph.json -o {out}/mine.toml", 2, ["has no record of ibnetdiscover"]),
    ("sonic network/sonic_config_db_msn4700_t1_v3_0_3.json", 0,
     ["class 3 has no profile", "300m (", "enabled = false"]),
    ("sonic network/sonic_sample_config_db_nested.json", 2, ["a template"]),
    ("sonic network/sonic_arista7060x6_buffers_defaults_t1.j2", 2, ["a template"]),
    ("sonic network/sonic_arista7060x6_qos.json.j2", 2, ["a template"]),
    ("xid failures/dmesg_xid119_gsp.log", 2, ["no log says how many nodes were watched"]),
    ("xid failures/dmesg_xid119_gsp.log --node-days 100", 0, ['name = "gpu_gsp"', "Xid 119"]),
    ("xid failures/xid_catalog_2025-10.csv --node-days 100", 2, ["has no line with an Xid"]),
    ("nccl_topology node/nccl_topo_dgx_a100.xml", 0, ["gpus_per_node = 8 ", "8 GPUs, sm 80", "nvlink = true", "nics_per_node = 8 "]),
    ("nccl_topology node/rccl_topo_8p_mi300.xml", 0, ["gpus_per_node = 8 ", "7 links a GPU"]),
    ("nccl_topology node/rccl_topo_8p_pcie.xml", 0, ["nvlink = false"]),
    ("nvidia_smi_topo node/nvidia_smi_topo_m_h200_a3ultra.txt", 0,
     ["gpus_per_node = 8 ", "nics_per_node = 8 ", "18 links a GPU"]),
    ("nvidia_smi_topo node/nvidia_smi_topo_2gpu_pkb.txt", 2, ["topo -p2p"]),
    ("nccl_tests measured/nccl_all_reduce_h200_64gpu_mlperf.txt --network 8x400G", 0,
     [",NVIDIA H200,8,64,all_reduce,default,8x400G,unknown,1731821448,14196,240.18,14281,238.74,"]),
    ("nccl_tests measured/nccl_pkb_sample.txt", 0, [",Tesla K80,2,2,all_reduce,", ",1073741824,1752724,0.61,"]),
    # 68118 and 129836 KiB/s of bw, fio 2.1.4; the others are of 4 KiB.
    ("fio measured/fio_sample.json", 0,
     ["sequential_write,fio,write,1,0.0697528,", "sequential_read,fio,read,1,0.132952,", "random_read_test_parallel, line"]),
    ("io500 measured/io500_stdout_readme.txt", 2, ["how many nodes took part"]),
    ("io500 measured/io500_stdout_readme.txt --hosts 1", 0,
     ["ior-easy-write,io500,write,1,0.200382,", "the run is invalid", "ior-hard-write (line"]),
    # 5,716 "MB/s" are 5.99e9 B/s, and what the accelerators asked for.
    ("dlio measured/dlio_summary_unet3d_h100_mlperf_storage_v1.0.json", 0,
     [",dlio,read_at_least,1,5.99414,", "2 accelerators were 96.23 % busy"]),
    ("sonic network/sonic_minigraph_head.xml", 2, ["a minigraph"]),
    ("sonic network/sonic_arista7060x6_pg_profile_lookup.ini", 2, ["a table of headroom by speed and cable"]),
    ("nccl_tests measured/fio_sample.json", 2, ["has no row of nccl-tests"]),
    # Four leaves, four spines, two superspines and four clients, cabled as its comments say.
    ("containerlab network/containerlab_clos02.clab.yml -o {out}/mine.toml", 2, ["does not say how fast a cable is"]),
    ("containerlab network/containerlab_clos02.clab.yml --network 1x100G -o {out}/mine.toml", 0,
     ["nodes = 4 ", "nics_per_node = 1 ", 'name = "superspine2"\ntier = 3', 'from = "leaf4"\nto = "spine4"\ncount = 1']),
    ("infragraph network/infragraph_clos_OLD_connections_syntax.yaml -o {out}/mine.toml", 2,
     ["superseded 'connections' syntax"]),
    ("containerlab network/infragraph_clos_OLD_connections_syntax.yaml", 2, ["superseded 'connections' syntax"]),
    # A step lasts from ProfilerStep#1 at 603187.439 us to #2 at 612512.74 us; its 14 kernels compute for 111 us.
    ("kineto training/kineto_mi250_minitoy_train.json.gz", 0, ['step.time = "9.3253 ms"', "compute 1.2 %"]),
    ("kineto training/kineto_event_sync.json.gz", 2, ["1 ProfilerStep: a step lasts from its begin"]),
    ("kineto training/kineto_rank_non_gpu.json.gz", 2, ["no kernel events: the trace has only CPU activity"]),
    # 84 bytes: one all-reduce of 1 MiB, whose id 0 is not on the wire.
    ("chakra export/astra-sim/all_reduce.0.et", 2, ["the scenario on whose network"]),
    ("huggingface training/hf_qwen3-8B_config.json --sequence-length 4096", 0, ["8.191e+09 parameters"]),
    ("huggingface training/hf_qwen3-235B-A22B_config.json --sequence-length 4096", 0, ["2.351e+11 parameters"]),
    ("huggingface training/hf_deepseek_v3_config.json --sequence-length 4096", 2, ["n_routed_experts"]),
    ("huggingface training/hf_qwen3-next-80B-A3B_config.json --sequence-length 4096", 0, ["7.967e+10 parameters", "an estimate"]),
]

# What others write for their own programs is for 'export' to be like.
NOT_READ = ["SOURCES.md"]


def problems(railyard):
    """For each sample None, or what is wrong with it."""
    if not FOLDER.exists():
        return
    for command, code, said in SAMPLES:
        with tempfile.TemporaryDirectory() as out:
            arguments = [str(FOLDER / a) if "/" in a and "=" not in a and "{" not in a else a.replace("{out}", out)
                         for a in command.split()]
            done = subprocess.run([railyard, "import"] + arguments, capture_output=True, text=True, timeout=60)
            text = done.stdout + done.stderr
            text += "".join(path.read_text() for path in sorted(pathlib.Path(out).iterdir()))
        missing = [s for s in said if not re.search(re.escape(s), text)]
        if done.returncode != code or missing:
            yield f"{command}: exit {done.returncode}, expected {code}; not said: {missing}\n{text[:2000]}"
        else:
            yield None
    named = {word for command, _, _ in SAMPLES for word in command.split()} | set(NOT_READ)
    for path in sorted(FOLDER.rglob("*")):
        name = path.relative_to(FOLDER).as_posix()
        if path.is_file() and name not in named and not name.startswith("export/"):
            yield f"{name}: no case says what importing it comes to"
