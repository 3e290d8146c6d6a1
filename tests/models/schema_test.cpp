// No dead knob: every key of the language changes some result. The table below has, for each key, a
// value to set and what must hold for it to matter; the test walks the schema and fails for a key
// without a row.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "tests/models/outcome.h"
#include "tests/models/schema_fleets.h"
#include "tests/models/schema_scenarios.h"

using namespace railyard;

namespace {

struct Knob {
    std::vector<std::string> change;
    std::vector<std::string> given = {};  // settings under which the key matters
    // For a key of an array of tables: the text that is replaced, and by what, in place of `change`.
    std::string text = {};
    std::string by = {};
    const char* base = nullptr;  // other than the usual
};

// A job whose store gives as much as its GPUs read, and one that reads many small samples.
const std::vector<std::string> starving = {"job.data.sample_size=1 MB", "job.data.batch=4",
                                           "storage.server_read_bandwidth=0.254 GB/s",
                                           "storage.client_bandwidth=20 GB/s"};
const std::vector<std::string> many_files = {"job.data.sample_size=1 kB", "job.data.batch=200",
                                             "job.data.source=object_store",
                                             "job.data.egress_price=0.01"};
std::vector<std::string> with(std::vector<std::string> settings,
                              const std::vector<std::string>& more) {
    settings.insert(settings.end(), more.begin(), more.end());
    return settings;
}

// Keys of array tables are written with [0] in settings' stead: they are changed in the text.
const std::map<std::string, Knob> knobs = {
    {"title", {{"title=another"}}},
    {"catalogue.values", {{"catalogue.values=seed"}}},
    {"override", {{"override.gpu.h100_sxm.bf16_achievable=500 TFLOP/s"}}},
    {"run.seed", {{"run.seed=2"}}},
    {"run.replicas", {{"run.replicas=4"}}},
    {"run.duration", {{"run.duration=21 day"}}},
    {"run.events_max", {{"run.events_max=100"}}},
    {"run.fidelity",
     {{"run.fidelity=flow"},
      {"fabric.compute.topology=fat_tree", "fabric.compute.routing=ecmp",
       "fabric.compute.leaf=qm9700_ndr"}}},
    {"cluster.node", {{"cluster.node=dgx_b200"}}},
    {"cluster.acs", {{"cluster.acs=true"}}},
    {"cluster.peer_to_peer", {{"cluster.peer_to_peer=false"}}},
    {"cluster.nvlink", {{"cluster.nvlink=false"}}},
    {"cluster.fault", {{"[[cluster.fault]]", "[[cluster.fault]]\nspeed = 0.5\n[[cluster.fault]]"}}},
    {"cluster.fault.part", {{"part = \"gpu\"", "part = \"nic\""}}},
    {"cluster.fault.node", {{"node = 1", "node = 9"}}},
    {"cluster.fault.index", {{"index = 2", "index = 3"}}},
    {"cluster.fault.speed", {{"speed = 0.9", "speed = 0.8"}}},
    {"cluster.nodes", {{"cluster.nodes=11"}}},
    {"cluster.gpus_per_node", {{"cluster.gpus_per_node=4", "job.parallel.data=4"}}},
    {"cluster.nics_per_node", {{"cluster.nics_per_node=1"}}},
    {"cluster.nic_bandwidth", {{"cluster.nic_bandwidth=50 Gbit/s"}}},
    {"storage.system", {{"storage.system=weka"}}},
    {"storage.servers", {{"storage.servers=3"}}},
    {"storage.server_write_bandwidth", {{"storage.server_write_bandwidth=1 GB/s"}}},
    {"storage.server_read_bandwidth", {{"storage.server_read_bandwidth=1 GB/s"}}},
    {"storage.client_bandwidth", {{"storage.client_bandwidth=0.1 GB/s"}}},
    {"storage.sharing", {{"storage.sharing=jobs"}, {}, "", "", failing.c_str()}},
    {"storage.gpudirect",
     {{"storage.gpudirect=false"},
      {"override.pcie_p2p.host_memory_bandwidth_per_socket=1 GB/s", "storage.servers=20"}}},
    {"storage.failures.random", {{"storage.failures.random=false"}, {}, "", "", failing.c_str()}},
    {"storage.failures.drive_failure_rate",
     {{"storage.failures.drive_failure_rate=0.1 /day"}, {}, "", "", failing.c_str()}},
    {"storage.failures.drive_replacement",
     {{"storage.failures.drive_replacement=30 day"},
      {"storage.failures.drive_failure_rate=0.1 /day"},
      "",
      "",
      failing.c_str()}},
    {"storage.failures.server_failure_rate",
     {{"storage.failures.server_failure_rate=0.5 /day"}, {}, "", "", failing.c_str()}},
    {"storage.failures.server_repair",
     {{"storage.failures.server_repair=2 day"}, {}, "", "", failing.c_str()}},
    {"storage.failures.box_failure_rate",
     {{"storage.failures.box_failure_rate=0.5 /day"}, {}, "", "", boxes.c_str()}},
    {"storage.failures.box_repair",
     {{"storage.failures.box_repair=2 day"}, {}, "", "", boxes.c_str()}},
    {"storage.failures.repair_sigma",
     {{"storage.failures.repair_sigma=2"}, {}, "", "", failing.c_str()}},
    {"storage.failures.server_takes_data",
     {{"storage.failures.server_takes_data=1"}, {}, "", "", failing.c_str()}},
    {"storage.failures.inject",
     {{},
      {},
      "[[storage.failures.inject]]",
      "[[storage.failures.inject]]\nat = \"1 h\"\n[[storage.failures.inject]]",
      failing.c_str()}},
    {"storage.failures.inject.at", {{}, {}, "at = \"100.1 h\"", "at = \"50 h\"", failing.c_str()}},
    {"storage.failures.inject.part",
     {{}, {}, "part = \"server\"", "part = \"drive\"", failing.c_str()}},
    {"storage.failures.inject.index",
     {{}, {}, "index = 1\ndown", "index = 2\ndown", failing.c_str()}},
    {"storage.failures.inject.down_for",
     {{}, {}, "down_for = \"5 h\"", "down_for = \"50 h\"", failing.c_str()}},
    {"storage.failures.inject.takes_data",
     {{}, {}, "down_for = \"5 h\"", "down_for = \"5 h\"\ntakes_data = true", failing.c_str()}},
    {"neighbour",
     {{},
      {},
      "[[neighbour]]",
      "[[neighbour]]\nname = \"third\"\nreads = \"5 GB/s\"\n[[neighbour]]",
      failing.c_str()}},
    {"neighbour.name", {{}, {}, "name = \"other\"", "name = \"another\"", failing.c_str()}},
    {"neighbour.nodes", {{}, {}, "nodes = 2\ncheck", "nodes = 1\ncheck", failing.c_str()}},
    {"neighbour.checkpoint",
     {{}, {}, "checkpoint = \"500 GB\"", "checkpoint = \"600 GB\"", failing.c_str()}},
    {"neighbour.files", {{}, {}, "files = 1000", "files = 100000000", failing.c_str()}},
    {"neighbour.every", {{}, {}, "every = \"1 h\"", "every = \"2 h\"", failing.c_str()}},
    {"neighbour.start", {{}, {}, "start = \"10 min\"", "start = \"9 h\"", failing.c_str()}},
    {"neighbour.reads", {{}, {}, "reads = \"5 GB/s\"", "reads = \"6 GB/s\"", failing.c_str()}},
    {"storage.drive", {{"storage.drive=hdd"}, {"storage.system=lustre"}}},
    {"storage.drives_per_server", {{"storage.drives_per_server=40"}, {"storage.system=lustre"}}},
    {"storage.drive_capacity", {{"storage.drive_capacity=4 TB"}, {"storage.system=lustre"}}},
    {"storage.drive_read_bandwidth",
     {{"storage.drive_read_bandwidth=1 GB/s"}, {"storage.system=lustre"}}},
    {"storage.drive_write_bandwidth",
     {{"storage.drive_write_bandwidth=0.1 GB/s"}, {"storage.system=lustre"}}},
    {"storage.drive_rebuild_bandwidth",
     {{"storage.drive_rebuild_bandwidth=10 MB/s"}, {"storage.system=lustre"}}},
    {"storage.weka.data_drives",
     {{"storage.weka.data_drives=3"}, {"storage.system=weka", "storage.servers=12"}}},
    {"storage.weka.parity",
     {{"storage.weka.parity=4"}, {"storage.system=weka", "storage.servers=12"}}},
    {"storage.weka.hot_spares",
     {{"storage.weka.hot_spares=1"}, {"storage.system=weka", "storage.servers=12"}}},
    {"storage.weka.rebuild_bandwidth",
     {{"storage.weka.rebuild_bandwidth=2 GB/s"}, {"storage.system=weka", "storage.servers=12"}}},
    {"storage.vast.model", {{"storage.vast.model=maverick"}, {"storage.system=vast"}}},
    {"storage.vast.dbox_ha", {{"storage.vast.dbox_ha=true"}, {"storage.system=vast"}}},
    {"storage.vast.dboxes", {{"storage.vast.dboxes=3"}, {"storage.system=vast"}}},
    {"storage.vast.dbox_read_bandwidth",
     {{"storage.vast.dbox_read_bandwidth=60 GB/s"}, {"storage.system=vast"}}},
    {"storage.vast.dbox_write_bandwidth",
     {{"storage.vast.dbox_write_bandwidth=12 GB/s"}, {"storage.system=vast"}}},
    {"storage.vast.drain_bandwidth",
     {{"storage.vast.drain_bandwidth=1 GB/s"}, {"storage.system=vast"}}},
    {"storage.vast.write_buffer", {{"storage.vast.write_buffer=1 TB"}, {"storage.system=vast"}}},
    {"storage.lustre.data_drives", {{"storage.lustre.data_drives=4"}, {"storage.system=lustre"}}},
    {"storage.lustre.parity", {{"storage.lustre.parity=1"}, {"storage.system=lustre"}}},
    {"storage.lustre.stripe_count", {{"storage.lustre.stripe_count=2"}, {"storage.system=lustre"}}},
    {"storage.lustre.mds", {{"storage.lustre.mds=2"}, {"storage.system=lustre"}}},
    {"storage.lustre.failover_time",
     {{"storage.lustre.failover_time=1 min"}, {"storage.system=lustre"}}},
    {"storage.gpfs.data_drives", {{"storage.gpfs.data_drives=4"}, {"storage.system=gpfs"}}},
    {"storage.gpfs.parity", {{"storage.gpfs.parity=1"}, {"storage.system=gpfs"}}},
    {"storage.beegfs.data_drives",
     {{"storage.beegfs.data_drives=4"}, {"storage.system=beegfs", "storage.servers=4"}}},
    {"storage.beegfs.parity",
     {{"storage.beegfs.parity=1"}, {"storage.system=beegfs", "storage.servers=4"}}},
    {"storage.beegfs.stripe_count",
     {{"storage.beegfs.stripe_count=2"}, {"storage.system=beegfs", "storage.servers=4"}}},
    {"storage.beegfs.buddy_mirror",
     {{"storage.beegfs.buddy_mirror=true"}, {"storage.system=beegfs", "storage.servers=4"}}},
    {"storage.beegfs.mds",
     {{"storage.beegfs.mds=2"}, {"storage.system=beegfs", "storage.servers=4"}}},
    {"storage.ceph.replication",
     {{"storage.ceph.replication=2"}, {"storage.system=ceph_nvme", "storage.servers=8"}}},
    {"storage.ceph.data_drives",
     {{"storage.ceph.data_drives=4"}, {"storage.system=ceph_nvme", "storage.servers=8"}}},
    {"storage.ceph.parity",
     {{"storage.ceph.parity=1"}, {"storage.system=ceph_nvme", "storage.servers=8"}}},
    {"storage.ceph.mds",
     {{"storage.ceph.mds=2"}, {"storage.system=ceph_nvme", "storage.servers=8"}}},
    {"storage.threefs.replicas", {{"storage.threefs.replicas=2"}, {"storage.system=threefs"}}},
    {"storage.nfs.data_drives", {{"storage.nfs.data_drives=4"}, {"storage.system=nfs_single"}}},
    {"storage.nfs.parity", {{"storage.nfs.parity=1"}, {"storage.system=nfs_single"}}},
    {"storage.nfs.failover_pair",
     {{"storage.nfs.failover_pair=true"}, {"storage.system=nfs_single"}}},
    {"storage.object.data_drives", {{"storage.object.data_drives=3"}, {"storage.system=object"}}},
    {"storage.object.parity", {{"storage.object.parity=1"}, {"storage.system=object"}}},
    {"storage.object.part_size", {{"storage.object.part_size=128 MB"}, {"storage.system=object"}}},
    {"storage.object.connections", {{"storage.object.connections=8"}, {"storage.system=object"}}},
    {"storage.memory.share", {{"storage.memory.share=0.25"}, {"storage.system=host_memory"}}},
    {"storage.memory.host_memory",
     {{"storage.memory.host_memory=1 TB"}, {"storage.system=host_memory"}}},
    {"storage.memory.bandwidth",
     {{"storage.memory.bandwidth=10 GB/s"}, {"storage.system=host_memory"}}},
    {"storage.object.prefixes", {{"storage.object.prefixes=10"}, {"storage.system=s3"}}},
    {"storage.object.egress", {{"storage.object.egress=true"}, {"storage.system=s3"}}},
    {"storage.object.egress_price",
     {{"storage.object.egress_price=0.01"}, {"storage.system=s3", "storage.object.egress=true"}}},
    {"object_store.system", {{"object_store.system=object"}, {"object_store.part_size=64 MB"}}},
    {"object_store.servers", {{"object_store.servers=8"}, {"object_store.system=object"}}},
    {"object_store.server_write_bandwidth",
     {{"object_store.server_write_bandwidth=1 GB/s"}, {"object_store.system=object"}}},
    {"object_store.server_read_bandwidth",
     {{"object_store.server_read_bandwidth=1 GB/s"}, {"object_store.system=object"}}},
    {"object_store.client_bandwidth",
     {{"object_store.client_bandwidth=0.1 GB/s"}, {"object_store.system=s3"}}},
    {"object_store.drive", {{"object_store.drive=hdd"}, {"object_store.system=object"}}},
    {"object_store.drives_per_server",
     {{"object_store.drives_per_server=40"}, {"object_store.system=object"}}},
    {"object_store.drive_capacity",
     {{"object_store.drive_capacity=4 TB"}, {"object_store.system=object"}}},
    {"object_store.drive_read_bandwidth",
     {{"object_store.drive_read_bandwidth=0.1 GB/s"}, {"object_store.system=object"}}},
    {"object_store.drive_write_bandwidth",
     {{"object_store.drive_write_bandwidth=0.1 GB/s"}, {"object_store.system=object"}}},
    {"object_store.data_drives", {{"object_store.data_drives=3"}, {"object_store.system=object"}}},
    {"object_store.parity", {{"object_store.parity=1"}, {"object_store.system=object"}}},
    {"object_store.part_size", {{"object_store.part_size=128 MB"}, {"object_store.system=object"}}},
    {"object_store.connections", {{"object_store.connections=8"}, {"object_store.system=object"}}},
    {"object_store.prefixes", {{"object_store.prefixes=10"}, {"object_store.system=s3"}}},
    {"object_store.egress", {{"object_store.egress=true"}, {"object_store.system=s3"}}},
    {"object_store.egress_price",
     {{"object_store.egress_price=0.01"}, {"object_store.system=s3", "object_store.egress=true"}}},
    {"storage.memory.copies", {{"storage.memory.copies=2"}, {"storage.system=peer_memory"}}},
    {"job.nodes", {{"job.nodes=4", "job.parallel.data=4"}}},
    {"job.length", {{"job.length=2 day"}}},
    {"job.model", {{"job.model=llama2_7b"}}},
    {"job.parallel.tensor", {{"job.parallel.tensor=8", "job.parallel.data=4"}}},
    {"job.parallel.context", {{"job.parallel.context=2", "job.parallel.data=4"}}},
    {"job.parallel.pipeline", {{"job.parallel.pipeline=4", "job.parallel.data=4"}}},
    {"job.parallel.data", {{"job.parallel.data=4", "job.parallel.tensor=8"}}},
    {"job.parallel.expert",
     {{"job.parallel.expert=2"}, {"job.model=mixtral_8x7b", "job.parallel.zero=3"}}},
    {"job.parallel.shard_ranks", {{"job.parallel.shard_ranks=2"}}},
    {"job.parallel.interleave", {{"job.parallel.interleave=4"}}},
    {"job.parallel.microbatch", {{"job.parallel.microbatch=2"}}},
    {"job.parallel.global_batch", {{"job.parallel.global_batch=128"}}},
    {"job.parallel.sequence_length", {{"job.parallel.sequence_length=1024"}}},
    {"job.parallel.reduce_in_fp32",
     {{"job.parallel.reduce_in_fp32=false"}, {"job.parallel.overlap_data=false"}}},
    {"job.parallel.order", {{"job.parallel.order=data_tensor_pipeline"}}},
    {"job.parallel.zero", {{"job.parallel.zero=3"}}},
    {"job.parallel.flat_parameters",
     {{"job.parallel.flat_parameters=false"}, {"job.parallel.zero=3"}}},
    {"job.parallel.sequence_parallel", {{"job.parallel.sequence_parallel=false"}}},
    {"job.parallel.overlap_data", {{"job.parallel.overlap_data=false"}}},
    {"job.parallel.overlap_tensor", {{"job.parallel.overlap_tensor=true"}}},
    {"job.parallel.overlap_context",
     {{"job.parallel.overlap_context=false"}, {"job.parallel.context=2", "job.parallel.data=4"}}},
    {"job.parallel.overlap_pipeline", {{"job.parallel.overlap_pipeline=false"}}},
    {"job.parallel.fused_loss", {{"job.parallel.fused_loss=true"}}},
    {"job.parallel.cuda_graphs",
     {{"job.parallel.cuda_graphs=true"}, {"job.parallel.sequence_length=64"}}},
    {"job.parallel.precision", {{"job.parallel.precision=fp8"}}},
    {"job.parallel.expert_imbalance",
     {{"job.parallel.expert_imbalance=2"}, {"job.model=mixtral_8x7b", "job.parallel.zero=3"}}},
    {"job.parallel.jitter", {{"job.parallel.jitter=0.02"}}},
    {"job.parallel.fused_attention", {{"job.parallel.fused_attention=false"}}},
    {"job.parallel.recompute", {{"job.parallel.recompute=full"}}},
    {"job.step.time", {{"job.step.time=3 s"}}},
    {"job.data.demand", {{"job.data.demand=cosmoflow"}, starving}},
    {"job.data.source", {{"job.data.source=local"}, starving}},
    {"job.data.format", {{"job.data.format=files"}, many_files}},
    {"job.data.sample_size", {{"job.data.sample_size=2 MB"}, starving}},
    {"job.data.sample_stdev", {{"job.data.sample_stdev=1 MB"}, starving}},
    {"job.data.batch", {{"job.data.batch=5"}, starving}},
    {"job.data.samples_per_file", {{"job.data.samples_per_file=1"}, many_files}},
    {"job.data.workers", {{"job.data.workers=2"}, with(starving, {"job.data.decode_rate=1 /s"})}},
    {"job.data.prefetch",
     {{"job.data.prefetch=1"}, with(starving, {"job.data.sample_stdev=1 MB"})}},
    {"job.data.decode_rate", {{"job.data.decode_rate=0.5 /s"}, starving}},
    {"job.data.gpu_decode",
     {{"job.data.gpu_decode=true"}, with(starving, {"job.data.decode_rate=0.5 /s"})}},
    {"job.data.cores", {{"job.data.cores=4"}, with(starving, {"job.data.decode_rate=1 /s"})}},
    {"job.data.dataset",
     {{"job.data.dataset=10 TB"},
      with(starving, {"job.data.dataset=20 TB", "job.data.page_cache=1 TB"})}},
    {"job.data.cache", {{"job.data.cache=1 TB"}, with(starving, {"job.data.dataset=20 TB"})}},
    {"job.data.cache_policy",
     {{"job.data.cache_policy=lru"},
      with(starving, {"job.data.dataset=20 TB", "job.data.cache=1 TB"})}},
    {"job.data.page_cache",
     {{"job.data.page_cache=1 TB"}, with(starving, {"job.data.dataset=20 TB"})}},
    {"job.data.egress_price", {{"job.data.egress_price=0.09"}, many_files}},
    {"job.checkpoint.mode", {{"job.checkpoint.mode=async"}}},
    {"job.checkpoint.interval", {{"job.checkpoint.interval=30 min"}}},
    {"job.checkpoint.clock", {{"job.checkpoint.clock=wall"}}},
    {"job.checkpoint.size", {{"job.checkpoint.size=1 TB"}}},
    {"job.checkpoint.bytes_per_param", {{"job.checkpoint.bytes_per_param=12"}}},
    {"job.checkpoint.snapshot_fraction",
     {{"job.checkpoint.snapshot_fraction=0.1"}, {"job.checkpoint.mode=async"}}},
    {"job.checkpoint.upload_slowdown",
     {{"job.checkpoint.upload_slowdown=0.2"}, {"job.checkpoint.mode=async"}}},
    {"job.checkpoint.gradients", {{"job.checkpoint.gradients=true"}}},
    {"job.checkpoint.layout", {{"job.checkpoint.layout=consolidated"}}},
    {"job.checkpoint.files_per_rank",
     {{"job.checkpoint.files_per_rank=1000000"}, {"storage.system=lustre", "storage.servers=4"}}},
    {"job.checkpoint.serialization", {{"job.checkpoint.serialization=10 MB/s"}}},
    {"job.checkpoint.buffers",
     {{"job.checkpoint.buffers=3"}, {"job.checkpoint.mode=async", "job.checkpoint.interval=30 s"}}},
    {"job.checkpoint.full_every",
     {{"job.checkpoint.full_every=4"}, {"job.checkpoint.changed_fraction=0.1"}}},
    {"job.checkpoint.changed_fraction",
     {{"job.checkpoint.changed_fraction=0.1"}, {"job.checkpoint.full_every=4"}}},
    {"job.checkpoint.tier",
     {{"[[job.checkpoint.tier]]\nplace = \"storage\"\nevery = 2\nkeep_for = \"2 h\"\n", ""}}},
    {"job.checkpoint.tier.place", {{"place = \"local_nvme\"", "place = \"peer_memory\""}}},
    {"job.checkpoint.tier.every", {{"every = 2", "every = 3"}}},
    {"job.checkpoint.tier.keep", {{"keep = 1", "keep = 3"}}},
    {"job.checkpoint.tier.keep_for", {{"keep_for = \"2 h\"", "keep_for = \"5 h\""}}},
    {"job.checkpoint.tier.write_bandwidth",
     {{"write_bandwidth = \"2 GB/s\"", "write_bandwidth = \"1 GB/s\""}}},
    {"job.checkpoint.tier.read_bandwidth",
     {{"read_bandwidth = \"3 GB/s\"", "read_bandwidth = \"1 GB/s\""}}},
    {"job.recovery.image", {{"job.recovery.image=20 GB"}}},
    {"job.recovery.dataset_index", {{"job.recovery.dataset_index=1 GB"}}},
    {"job.recovery.replacement", {{"job.recovery.replacement=10 min"}}},
    {"job.recovery.restart", {{"job.recovery.restart=10 min"}}},
    {"job.recovery.restore", {{"job.recovery.restore=10 min"}}},
    {"job.recovery.recompute", {{"job.recovery.recompute=false"}}},
    {"maintenance.every", {{"maintenance.every=2 day"}}},
    {"maintenance.duration", {{"maintenance.duration=2 h"}}},
    {"failures.profile", {{"failures.profile=meta_rsc2"}}},
    {"failures.rate_scale", {{"failures.rate_scale=20"}}},
    {"failures.detection", {{"failures.detection=10 min"}}},
    {"failures.repair_sigma", {{"failures.repair_sigma=0.1"}}},
    {"failures.lemon.fraction", {{"failures.lemon.fraction=0.1"}}},
    {"failures.lemon.rate_multiplier", {{"failures.lemon.rate_multiplier=5"}}},
    {"failures.lemon.cured_by_repair", {{"failures.lemon.cured_by_repair=1.0"}}},
    {"failures.cause", {{"rate_per_node = \"0.1 /day\"", "rate_per_node = \"0 /day\""}}},
    {"fabric.compute.kind", {{"fabric.compute.kind=roce"}}},
    {"fabric.compute.topology",
     {
         {"fabric.compute.topology=fat_tree"},
     }},
    {"fabric.compute.nic_bandwidth",
     {
         {"fabric.compute.nic_bandwidth=100 Gbit/s"},
     }},
    {"fabric.compute.leaf",
     {{"fabric.compute.leaf=sn4700_spectrum3"}, {"fabric.compute.kind=roce"}}},
    {"fabric.compute.spine",
     {{"fabric.compute.spine=sn4700_spectrum3"},
      {"fabric.compute.kind=roce", "cluster.nodes=80", "fabric.compute.nodes_per_leaf=8"}}},
    {"fabric.compute.core",
     {{"fabric.compute.core=sn4700_spectrum3"},
      {"fabric.compute.kind=roce", "cluster.nodes=80", "fabric.compute.nodes_per_leaf=8",
       "fabric.compute.tiers=3"}}},
    {"fabric.compute.tiers",
     {{"fabric.compute.tiers=3"}, {"cluster.nodes=40", "fabric.compute.nodes_per_leaf=8"}}},
    {"fabric.compute.oversubscription",
     {{"fabric.compute.oversubscription=2"},
      {"cluster.nodes=80", "fabric.compute.nodes_per_leaf=8"}}},
    {"fabric.compute.spine_oversubscription",
     {{"fabric.compute.spine_oversubscription=2"},
      {"cluster.nodes=80", "fabric.compute.nodes_per_leaf=8", "fabric.compute.tiers=3"}}},
    {"fabric.compute.nodes_per_leaf",
     {
         {"fabric.compute.nodes_per_leaf=3"},
     }},
    {"fabric.compute.endpoint_cable",
     {
         {"fabric.compute.endpoint_cable=2 m"},
     }},
    {"fabric.compute.switch_cable",
     {{"fabric.compute.switch_cable=50 m"},
      {"cluster.nodes=80", "fabric.compute.nodes_per_leaf=8"}}},
    {"fabric.compute.routing",
     {{"fabric.compute.routing=spray"}, {"cluster.nodes=80", "fabric.compute.nodes_per_leaf=8"}}},
    {"fabric.compute.queue_pairs",
     {{"fabric.compute.queue_pairs=4"},
      {"cluster.nodes=80", "fabric.compute.nodes_per_leaf=8", "fabric.compute.routing=ecmp"}}},
    {"fabric.compute.hash_seed",
     {{"fabric.compute.hash_seed=7"},
      {"cluster.nodes=80", "fabric.compute.nodes_per_leaf=8", "fabric.compute.routing=ecmp"}}},
    {"fabric.compute.hash_polarized",
     {{"fabric.compute.hash_polarized=true"},
      {"fabric.compute.kind=roce", "cluster.nodes=80", "fabric.compute.nodes_per_leaf=8",
       "fabric.compute.tiers=3", "fabric.compute.routing=ecmp"}}},
    {"fabric.compute.file",
     {
         {"fabric.compute.topology=custom",
          "fabric.compute.file=" RAILYARD_ROOT "/tests/models/custom_compute.toml"},
     }},
    {"fabric.storage.kind", {{"fabric.storage.kind=roce"}}},
    {"fabric.storage.topology", {{"fabric.storage.topology=single_switch"}}},
    {"fabric.storage.nic_bandwidth", {{"fabric.storage.nic_bandwidth=100 Gbit/s"}}},
    {"fabric.storage.leaf",
     {{"fabric.storage.leaf=sn4700_spectrum3"}, {"fabric.storage.kind=roce"}}},
    {"fabric.storage.spine",
     {{"fabric.storage.spine=sn4700_spectrum3"},
      {"fabric.storage.kind=roce", "cluster.nodes=80", "fabric.storage.nodes_per_leaf=8"}}},
    {"fabric.storage.core",
     {{"fabric.storage.core=sn4700_spectrum3"},
      {"fabric.storage.kind=roce", "cluster.nodes=80", "fabric.storage.nodes_per_leaf=8",
       "fabric.storage.tiers=3"}}},
    {"fabric.storage.tiers",
     {{"fabric.storage.tiers=3"}, {"cluster.nodes=80", "fabric.storage.nodes_per_leaf=8"}}},
    {"fabric.storage.oversubscription",
     {{"fabric.storage.oversubscription=2"},
      {"cluster.nodes=80", "fabric.storage.nodes_per_leaf=8"}}},
    {"fabric.storage.spine_oversubscription",
     {{"fabric.storage.spine_oversubscription=2"},
      {"cluster.nodes=80", "fabric.storage.nodes_per_leaf=8", "fabric.storage.tiers=3"}}},
    {"fabric.storage.nodes_per_leaf", {{"fabric.storage.nodes_per_leaf=3"}}},
    {"fabric.storage.endpoint_cable", {{"fabric.storage.endpoint_cable=2 m"}}},
    {"fabric.storage.switch_cable",
     {{"fabric.storage.switch_cable=50 m"},
      {"cluster.nodes=80", "fabric.storage.nodes_per_leaf=8"}}},
    {"fabric.storage.file",
     {{"fabric.storage.topology=custom",
       "fabric.storage.file=" RAILYARD_ROOT "/tests/models/custom_storage.toml"}}},
    {"fabric.management.topology", {{"fabric.management.topology=single_switch"}}},
    {"fabric.management.nic_bandwidth", {{"fabric.management.nic_bandwidth=10 Mbit/s"}}},
    {"fabric.management.leaf", {{"fabric.management.leaf=sn4700_spectrum3"}}},
    {"fabric.management.spine",
     {{"fabric.management.spine=sn4700_spectrum3"},
      {"cluster.nodes=80", "fabric.management.nodes_per_leaf=8"}}},
    {"fabric.management.core",
     {{"fabric.management.core=sn4700_spectrum3"},
      {"cluster.nodes=80", "fabric.management.nodes_per_leaf=8", "fabric.management.tiers=3"}}},
    {"fabric.management.tiers",
     {{"fabric.management.tiers=3"}, {"cluster.nodes=80", "fabric.management.nodes_per_leaf=8"}}},
    {"fabric.management.oversubscription",
     {{"fabric.management.oversubscription=2"},
      {"cluster.nodes=80", "fabric.management.nodes_per_leaf=8"}}},
    {"fabric.management.spine_oversubscription",
     {{"fabric.management.spine_oversubscription=2"},
      {"cluster.nodes=80", "fabric.management.nodes_per_leaf=8", "fabric.management.tiers=3"}}},
    {"fabric.management.nodes_per_leaf", {{"fabric.management.nodes_per_leaf=5"}}},
    {"fabric.management.endpoint_cable", {{"fabric.management.endpoint_cable=2 m"}}},
    {"fabric.management.switch_cable",
     {{"fabric.management.switch_cable=50 m"},
      {"cluster.nodes=80", "fabric.management.nodes_per_leaf=8"}}},
    {"fabric.management.file",
     {{"fabric.management.topology=custom",
       "fabric.management.file=" RAILYARD_ROOT "/tests/models/custom_management.toml"}}},
    {"fabric.compute.fault",
     {{"[[fabric.compute.fault]]",
       "[[fabric.compute.fault]]\nfrom = \"node-7.nic-0\"\nto = "
       "\"leaf-0\"\n[[fabric.compute.fault]]"}}},
    {"fabric.compute.fault.from", {{"node-1.nic-0", "node-4.nic-0"}}},
    {"fabric.compute.fault.to",
     {{"\"node-1.nic-0\"\nto = \"leaf-0\"", "\"leaf-0\"\nto = \"node-4.nic-0\""}}},
    {"fabric.compute.fault.capacity", {{"capacity = 0.5", "capacity = 0.4"}}},
    {"fabric.storage.fault",
     {{"[[fabric.storage.fault]]",
       "[[fabric.storage.fault]]\nfrom = \"node-7.nic-0\"\nto = "
       "\"leaf-0\"\n[[fabric.storage.fault]]"}}},
    {"fabric.storage.fault.from", {{"node-2.nic-0", "node-5.nic-0"}}},
    {"fabric.storage.fault.to",
     {{"\"node-2.nic-0\"\nto = \"leaf-0\"", "\"leaf-0\"\nto = \"node-5.nic-0\""}}},
    {"fabric.storage.fault.capacity", {{"capacity = 0.6", "capacity = 0.4"}}},
    {"fabric.management.fault",
     {{"[[fabric.management.fault]]",
       "[[fabric.management.fault]]\nfrom = \"node-7.nic-0\"\nto = "
       "\"leaf-0\"\n[[fabric.management.fault]]"}}},
    {"fabric.management.fault.from", {{"node-3.nic-0", "node-6.nic-0"}}},
    {"fabric.management.fault.to",
     {{"\"node-3.nic-0\"\nto = \"leaf-0\"", "\"leaf-0\"\nto = \"node-6.nic-0\""}}},
    {"fabric.management.fault.capacity", {{"capacity = 0.7", "capacity = 0.4"}}},
    {"fabric.compute.sharp", {{"fabric.compute.sharp=true"}}},
    {"failures.cause.name", {{"name = \"extra\"", "name = \"other\""}}},
    {"failures.cause.rate_per_gpu",
     {{"rate_per_node = \"0.1 /day\"", "rate_per_gpu = \"0.1 /day\""}}},
    {"failures.cause.rate_per_node",
     {{"rate_per_node = \"0.1 /day\"", "rate_per_node = \"0.2 /day\""}}},
    {"failures.cause.rate_per_job",
     {{"rate_per_node = \"0.1 /day\"", "rate_per_job = \"0.1 /day\""}}},
    {"failures.cause.mtbf_job", {{"rate_per_node = \"0.1 /day\"", "mtbf_job = \"1 day\""}}},
    {"failures.cause.detection", {{"detection = \"1 min\"", "detection = \"9 min\""}}},
    {"failures.cause.remedy", {{"remedy = \"replace\"", "remedy = \"restart\""}}},
    {"failures.cause.reset_time", {{"reset_time = \"10 min\"", "reset_time = \"10 h\""}}},
    {"failures.cause.repair_time", {{"repair_time = \"5 h\"", "repair_time = \"15 h\""}}},
    {"failures.cause.replace_fraction", {{"replace_fraction = 0.5", "replace_fraction = 1.0"}}},
};

const std::string long_pauses = [] {
    std::string text = windows;
    for (const char* each : {"\"40 us\"", "\"30 us\""}) {
        text.replace(text.find(each), std::string_view(each).size(), "\"2 s\"");
    }
    return text;
}();

// NICs that have paused send later on.
const std::string both_ways = std::string(windows) + R"(
[[window.traffic]]
kind = "restore"
bytes = "2 MB"
start = "60 us"
[[window.traffic]]
kind = "permutation"
bytes = "100 kB"
start = "60 us"
)";

const std::string stormy = std::string(windows) + R"(
[[failures.storm]]
rate_per_nic = "1 /day"
duration = "100 us"
)";

// Keys of either network's section that only its packets feel, told by what its windows print. `@` stands
// for the section.
const std::vector<std::string> lossy = {"@.pfc.enabled=false", "@.buffer.alpha=0.002"};
const std::map<std::string, Knob> packet_knobs = {
    {"@.mtu", {{"@.mtu=1 kB"}}},
    {"@.buffer.size", {{"@.buffer.size=7 MB"}, {"@.buffer.alpha=0.01"}}},
    {"@.cut_through", {{"@.cut_through=true"}}},
    {"@.buffer.alpha", {{"@.buffer.alpha=0.01"}}},
    {"@.buffer.reserve", {{"@.buffer.reserve=0 B"}, {"@.buffer.alpha=0.002"}}},
    {"@.pfc.enabled", {{"@.pfc.enabled=false"}, {"@.buffer.alpha=0.002"}}},
    {"@.pfc.headroom", {{"@.pfc.headroom=1 kB"}, {"@.buffer.alpha=0.002"}}},
    {"@.pfc.headroom_oversubscription",
     {{"@.pfc.headroom_oversubscription=4"}, {"@.buffer.alpha=0.002"}}},
    {"@.pfc.resume_offset", {{"@.pfc.resume_offset=50 kB"}, {"@.buffer.alpha=0.002"}}},
    {"@.ecn.profile", {{"@.ecn.profile=dcqcn_paper_40g"}}},
    {"@.ecn.kmin", {{"@.ecn.kmin=50 kB"}, {"@.ecn.kmin=100 kB", "@.ecn.kmax=200 kB"}}},
    {"@.ecn.kmax", {{"@.ecn.kmax=2 MB"}, {"@.ecn.kmin=100 kB", "@.ecn.kmax=200 kB"}}},
    {"@.ecn.pmax", {{"@.ecn.pmax=0.9"}, {"@.ecn.kmin=100 kB", "@.ecn.kmax=2 MB"}}},
    {"@.congestion.control", {{"@.congestion.control=hpcc"}}},
    {"@.congestion.parameters",
     {{"@.congestion.parameters=dcqcn_paper"}, {"@.ecn.kmin=20 kB", "@.ecn.kmax=200 kB"}}},
    {"@.congestion.cnp_interval",
     {{"@.congestion.cnp_interval=30 us"}, {"@.ecn.kmin=20 kB", "@.ecn.kmax=200 kB"}}},
    {"@.congestion.cnp_delay",
     {{"@.congestion.cnp_delay=30 us"}, {"@.ecn.kmin=20 kB", "@.ecn.kmax=200 kB"}}},
    {"@.watchdog.profile", {{"@.watchdog.profile=off"}, {}, "", "", long_pauses.c_str()}},
    {"@.watchdog.poll",
     {{"@.watchdog.poll=3 us"}, {"@.watchdog.detection=10 us", "@.watchdog.poll=7 us"}}},
    {"@.watchdog.detection", {{"@.watchdog.detection=10 us"}}},
    {"@.watchdog.restoration",
     {{"@.watchdog.restoration=1 us"}, {"@.watchdog.detection=5 us", "@.watchdog.poll=1 us"}}},
    {"@.watchdog.action", {{"@.watchdog.action=forward"}, {"@.watchdog.detection=10 us"}}},
    {"@.watchdog.polls_together",
     {{"@.watchdog.polls_together=true"},
      {"@.watchdog.detection=10 us", "@.watchdog.action=forward"}}},
    {"@.watchdog.drops_arrivals",
     {{"@.watchdog.drops_arrivals=true"},
      {"@.watchdog.detection=10 us"},
      "",
      "",
      both_ways.c_str()}},
    {"@.transport.timeout", {{"@.transport.timeout=2"}}},
    {"@.transport.retries", {{"@.transport.retries=0"}, {"@.transport.timeout=2"}}},
    {"@.transport.ack_every", {{"@.transport.ack_every=4"}}},
    {"@.transport.recovery", {{"@.transport.recovery=selective_repeat"}, lossy}},
    {"@.transport.reordering",
     {{"@.transport.reordering=64"},
      {"@.pfc.enabled=false", "@.buffer.alpha=0.002", "@.transport.recovery=selective_repeat"}}},
    {"@.credits.vl_buffer", {{"@.credits.vl_buffer=8 kB"}, {"@.kind=infiniband"}}},
    {"@.credits.lifetime",
     {{"@.credits.lifetime=1 us"}, {"@.kind=infiniband", "@.credits.vl_buffer=8 kB"}}},
    {"@.credits.leaf_lifetime", {{"@.credits.leaf_lifetime=1 us"}, {"@.kind=infiniband"}}},
    {"@.switch",
     {{},
      {"@.buffer.alpha=0.002"},
      "[[@.switch]]",
      "[[@.switch]]\nname = \"leaf-0\"\nheadroom = \"1 kB\"\n[[@.switch]]"}},
    {"@.switch.name",
     {{},
      {"@.buffer.alpha=0.002"},
      "[[@.switch]]\nname = \"spine-0\"",
      "[[@.switch]]\nname = \"leaf-0\""}},
    {"@.switch.pfc", {{}, {"@.buffer.alpha=0.002"}, "[[@.switch]]", "[[@.switch]]\npfc = false"}},
    {"@.switch.ecn",
     {{},
      {"@.ecn.kmin=1 kB", "@.ecn.kmax=20 kB"},
      "[[@.switch]]",
      "[[@.switch]]\nname = \"leaf-0\"\necn = false\n[[@.switch]]"}},
    {"@.switch.headroom",
     {{},
      {"@.buffer.alpha=0.002"},
      "[[@.switch]]\nname = \"spine-0\"\nheadroom = \"150 kB\"",
      "[[@.switch]]\nname = \"spine-0\"\nheadroom = \"1 kB\""}},
};

// Keys of the whole scenario that packet windows tell.
const std::map<std::string, Knob> window_knobs = {
    {"fabric.compute.transport.flowlet_gap",
     {{"fabric.compute.transport.flowlet_gap=1 ms"},
      {"fabric.compute.routing=flowlet", "fabric.compute.transport.flowlet_gap=1 ns"}}},
    {"storage.nics_per_server", {{"storage.nics_per_server=2"}}},
    {"storage.network", {{"storage.network=compute"}, {}, "", "", converged}},
    {"storage.traffic_class",
     {{"storage.traffic_class=own"}, {"storage.network=compute"}, "", "", converged}},
    {"storage.class_weight",
     {{"storage.class_weight=8"},
      {"storage.network=compute", "storage.traffic_class=own"},
      "",
      "",
      converged}},
    {"window.time_max", {{"window.time_max=20 us"}}},
    {"window.events_max", {{"window.events_max=100"}}},
    {"window.pieces_max",
     {{"window.pieces_max=24"},
      {"window.pieces_max=12", "window.settled_within=0"},
      "",
      "",
      packet_step}},
    {"window.settled_within",
     {{"window.settled_within=0.5"}, {"window.pieces_max=24"}, "", "", packet_step}},
    {"window.allow_loss",
     {{"window.allow_loss=true"},
      {"fabric.compute.pfc.headroom=1 kB", "fabric.compute.buffer.alpha=0.002"}}},
    {"window.traffic",
     {{},
      {},
      "[[window.traffic]]",
      "[[window.traffic]]\nkind = \"permutation\"\n[[window.traffic]]"}},
    {"window.traffic.kind", {{}, {}, "\"incast\"", "\"permutation\""}},
    {"window.traffic.bytes", {{}, {}, "bytes = \"1 MB\"", "bytes = \"1.1 MB\""}},
    {"window.traffic.path",
     {{},
      {},
      "kind = \"incast\"\nbytes = \"1 MB\"",
      "kind = \"file\"\npath = \"" RAILYARD_ROOT "/tests/models/traffic.csv\""}},
    {"window.traffic.steps", {{}, {}, "steps = 2", "steps = 3"}},
    {"window.traffic.senders", {{}, {}, "\"incast\"", "\"incast\"\nsenders = 3"}},
    {"window.traffic.stripes", {{}, {}, "\"checkpoint\"", "\"checkpoint\"\nstripes = 1"}},
    {"window.traffic.start", {{}, {}, "start = \"10 us\"", "start = \"12 us\""}},
    {"window.fault",
     {{},
      {},
      "[[window.fault]]",
      "[[window.fault]]\nnic = \"node-3.nic-1\"\nduration = \"60 us\"\n[[window.fault]]"}},
    {"window.fault.kind",
     {{}, {}, "\"pause\"\nnic = \"node-1.nic-0\"", "\"link_down\"\nnic = \"node-1.nic-0\""}},
    {"window.fault.nic", {{}, {}, "node-1.nic-0", "node-2.nic-0"}},
    {"window.fault.from", {{}, {}, "from = \"leaf-0\"", "from = \"leaf-1\""}},
    {"window.fault.to",
     {{}, {}, "from = \"leaf-0\"\nto = \"spine-0\"", "from = \"spine-0\"\nto = \"leaf-1\""}},
    {"window.fault.network",
     {{},
      {},
      "nic = \"server-0.nic-0\"\nnetwork = \"storage\"",
      "nic = \"node-2.nic-0\"\nnetwork = \"compute\""}},
    {"window.fault.start", {{}, {}, "start = \"15 us\"", "start = \"11 us\""}},
    {"window.fault.duration", {{}, {}, "duration = \"30 us\"", "duration = \"60 us\""}},
    {"window.fault.rate", {{}, {}, "rate = \"50 Gbit/s\"", "rate = \"40 Gbit/s\""}},
    {"window.fault.bit_error_rate", {{}, {}, "1e-7", "1e-6"}},
    {"failures.storm",
     {{},
      {},
      "[[failures.storm]]",
      "[[failures.storm]]\nname = \"b\"\nmtbf_job = \"2 min\"\n[[failures.storm]]",
      stormy.c_str()}},
    {"failures.storm.name",
     {{}, {}, "[[failures.storm]]", "[[failures.storm]]\nname = \"b\"", stormy.c_str()}},
    {"failures.storm.rate_per_nic",
     {{}, {}, "rate_per_nic = \"1 /day\"", "rate_per_nic = \"100 /day\"", stormy.c_str()}},
    {"failures.storm.rate_per_node",
     {{}, {}, "rate_per_nic = \"1 /day\"", "rate_per_node = \"100 /day\"", stormy.c_str()}},
    {"failures.storm.rate_per_job",
     {{}, {}, "rate_per_nic = \"1 /day\"", "rate_per_job = \"500 /day\"", stormy.c_str()}},
    {"failures.storm.mtbf_job",
     {{}, {}, "rate_per_nic = \"1 /day\"", "mtbf_job = \"2 min\"", stormy.c_str()}},
    {"failures.storm.duration",
     {{}, {}, "duration = \"100 us\"", "duration = \"200 us\"", stormy.c_str()}},
    {"failures.storm.nic",
     {{}, {}, "[[failures.storm]]", "[[failures.storm]]\nnic = \"node-2.nic-1\"", stormy.c_str()}},
    {"failures.storm.found_after",
     {{},
      {},
      "[[failures.storm]]\nrate_per_nic = \"1 /day\"\nduration = \"100 us\"",
      "[[failures.storm]]\nrate_per_nic = \"1 /day\"\nfound_after = \"7 min\"",
      stormy.c_str()}},
    {"failures.storm.reset_time",
     {{}, {}, "[[failures.storm]]", "[[failures.storm]]\nreset_time = \"7 min\"", stormy.c_str()}},
};

// Most keys are compared with the same scenario.
const std::string& outcome(const std::string& text, const std::vector<std::string>& settings) {
    static std::map<std::pair<std::string, std::vector<std::string>>, std::string> known;
    const auto [found, is_new] = known.try_emplace({text, settings});
    if (is_new) found->second = outcome_of(text, settings);
    return found->second;
}

std::string in_section(std::string text, const std::string& section) {
    for (std::size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at)) {
        text.replace(at, 1, section);
    }
    return text;
}
std::vector<std::string> in_section(std::vector<std::string> settings, const std::string& section) {
    for (std::string& each : settings) each = in_section(each, section);
    return settings;
}

// The row of a key that packet windows tell, and its network's section.
const Knob* seen_in_windows(const std::string& key, std::string& section) {
    const auto own = window_knobs.find(key);
    if (own != window_knobs.end()) return &own->second;
    for (const char* each : {"fabric.compute", "fabric.storage"}) {
        section = each;
        if (!key.starts_with(section)) continue;
        const auto found = packet_knobs.find(fmt::format("@{}", key.substr(section.size())));
        if (found != packet_knobs.end()) return &found->second;
    }
    return nullptr;
}

}  // namespace

TEST_CASE("every key that packet windows feel changes what they print") {
    for (const SchemaRow& row : scenario_schema()) {
        CAPTURE(row.path);
        std::string section;
        const Knob* knob = seen_in_windows(row.path, section);
        if (knob == nullptr) continue;
        const std::string base_text = in_section(knob->base ? knob->base : windows, section);
        std::string changed = base_text;
        if (!knob->text.empty()) {
            const std::string text = in_section(knob->text, section);
            const std::size_t at = changed.find(text);
            REQUIRE(at != std::string::npos);
            changed.replace(at, text.size(), in_section(knob->by, section));
        }
        std::vector<std::string> settings = in_section(knob->given, section);
        const std::string& before = outcome(base_text, settings);
        for (const std::string& each : in_section(knob->change, section)) settings.push_back(each);
        CHECK(before != outcome(changed, settings));
    }
}

TEST_CASE("every key of a fleet changes what becomes of it, or is refused") {
    const auto outcome_or_error = [](const std::string& text) -> std::string {
        try {
            return outcome(text, {});
        } catch (const ScenarioError& error) {
            return error.what();
        }
    };
    for (const auto& [key, knob] : fleet_knobs) {
        CAPTURE(key);
        std::string changed = knob.scenario;
        const std::size_t at = changed.find(knob.text);
        REQUIRE(at != std::string::npos);
        changed.replace(at, std::string(knob.text).size(), knob.by);
        CHECK_NOTHROW(outcome(knob.scenario, {}));
        CHECK(outcome_or_error(knob.scenario) != outcome_or_error(changed));
    }
}

TEST_CASE("every key of the language changes some result") {
    for (const SchemaRow& row : scenario_schema()) {
        CAPTURE(row.path);
        std::string key = row.path;
        std::string section;
        if (seen_in_windows(key, section) != nullptr) continue;
        if (fleet_knobs.contains(key)) continue;
        if (key.starts_with("jobs.kind.parallel.")) continue;  // the reader of job.parallel
        const auto found = knobs.find(key);
        REQUIRE_MESSAGE(found != knobs.end(), "no row for this key");
        const Knob& knob = found->second;
        const bool tier = key.find("checkpoint.tier") != std::string::npos;
        if (tier || key.find(".cause") != std::string::npos ||
            key.find(".fault") != std::string::npos) {
            const std::string before = tier ? std::string(base) + tiers : base;
            std::string changed = before;
            const std::size_t at = changed.find(knob.change[0]);
            REQUIRE(at != std::string::npos);
            changed.replace(at, knob.change[0].size(), knob.change[1]);
            CHECK(outcome(before, {}) != outcome(changed, {}));
            continue;
        }
        const std::string before = knob.base ? knob.base : base;
        std::string after = before;
        if (!knob.text.empty()) {
            const std::size_t at = after.find(knob.text);
            REQUIRE(at != std::string::npos);
            after.replace(at, knob.text.size(), knob.by);
        }
        std::vector<std::string> changed = knob.given;
        changed.insert(changed.end(), knob.change.begin(), knob.change.end());
        CHECK(outcome(before, knob.given) != outcome(after, changed));
    }
    CHECK(scenario_schema().size() >=
          knobs.size() + window_knobs.size() + 2 * packet_knobs.size() + fleet_knobs.size() - 1);
}

TEST_CASE("every key says what it means and what holds without it") {
    for (const SchemaRow& row : scenario_schema()) {
        CAPTURE(row.path);
        CHECK_FALSE(row.doc.empty());
        CHECK_FALSE(row.type.empty());
        CHECK_FALSE(row.otherwise.empty());
    }
}
