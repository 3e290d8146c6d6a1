"""Files that others have published, and what importing each comes to. They are beside the checkout, where they are at
all: their licences let them be kept, not handed on."""

import pathlib
import re
import subprocess

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
]


def problems(railyard):
    """For each sample None, or what is wrong with it."""
    if not FOLDER.exists():
        return
    for command, code, said in SAMPLES:
        arguments = [str(FOLDER / a) if "/" in a and "=" not in a else a for a in command.split()]
        done = subprocess.run([railyard, "import"] + arguments, capture_output=True, text=True, timeout=60)
        text = done.stdout + done.stderr
        missing = [s for s in said if not re.search(re.escape(s), text)]
        if done.returncode != code or missing:
            yield f"{command}: exit {done.returncode}, expected {code}; not said: {missing}\n{text[:2000]}"
        else:
            yield None
