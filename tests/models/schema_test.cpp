// No dead knob: every key of the language changes some result. The table below has, for each key, a
// value to set and what must hold for it to matter; the test walks the schema and fails for a key
// without a row.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "models/campaign/campaign.h"
#include "sim/fingerprint.h"

using namespace railyard;

namespace {

const char* base = R"(
[run]
replicas = 3
duration = "20 day"
[cluster]
nodes = 10
[[cluster.fault]]
part = "gpu"
node = 1
index = 2
speed = 0.9
[[fabric.compute.fault]]
from = "node-1.nic-0"
to = "leaf-0"
capacity = 0.5
[[fabric.storage.fault]]
from = "node-2.nic-0"
to = "leaf-0"
capacity = 0.6
[[fabric.management.fault]]
from = "node-3.nic-0"
to = "leaf-0"
capacity = 0.7
[job]
nodes = 8
model = "llama2_13b"
[job.parallel]
tensor = 4
pipeline = 2
data = 8
interleave = 2
microbatch = 1
global_batch = 64
sequence_length = 2048
zero = 1
[job.checkpoint]
interval = "20 min"
[failures]
profile = "meta_rsc1"
rate_scale = 40
[failures.lemon]
fraction = 0.5
rate_multiplier = 3
cured_by_repair = 0.5
[maintenance]
every = "3 day"
duration = "1 h"
[[failures.cause]]
name = "extra"
rate_per_node = "0.1 /day"
detection = "1 min"
remedy = "replace"
reset_time = "10 min"
repair_time = "5 h"
replace_fraction = 0.5
)";

struct Knob {
    std::vector<std::string> change;
    std::vector<std::string> given = {};  // settings under which the key matters
};

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
    {"job.checkpoint.mode", {{"job.checkpoint.mode=async"}}},
    {"job.checkpoint.interval", {{"job.checkpoint.interval=30 min"}}},
    {"job.checkpoint.clock", {{"job.checkpoint.clock=wall"}}},
    {"job.checkpoint.size", {{"job.checkpoint.size=1 TB"}}},
    {"job.checkpoint.bytes_per_param", {{"job.checkpoint.bytes_per_param=12"}}},
    {"job.checkpoint.snapshot_fraction",
     {{"job.checkpoint.snapshot_fraction=0.1"}, {"job.checkpoint.mode=async"}}},
    {"job.checkpoint.upload_slowdown",
     {{"job.checkpoint.upload_slowdown=0.2"}, {"job.checkpoint.mode=async"}}},
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

// What topo reports, and where flows go.
std::string network_text(const ClusterNetwork& network) {
    const Topology& t = network.topology;
    Router router(t, network.routing);
    std::vector<Usage> usages;
    for (VertexId nic = 0; nic < t.nic_count(); ++nic) {
        router.route(nic, static_cast<VertexId>((nic + t.nic_count() / 2) % t.nic_count()), 0,
                     usages);
    }
    Fingerprint print;
    for (const Usage& u : usages) {
        print.add(std::int64_t{u.link});
        print.add(std::int64_t(u.share * 1e6F));
    }
    for (const Link& l : t.links()) {
        print.add(std::int64_t(l.bytes_per_s));
        print.add(l.latency);
    }
    std::string out = fmt::format(" {} {} {}", t.kind(), t.vertex_count(), print.hex());
    for (VertexId v = static_cast<VertexId>(t.nic_count()); v < t.vertex_count(); ++v) {
        out += " " + t.switch_model(v).name;
    }
    return out;
}

// Everything that a run, topo and perf report, as text.
std::string outcome(const std::string& text, const std::vector<std::string>& settings) {
    const Scenario s = load_scenario(text, "knobs", {settings, {}});
    const CampaignResult r = run_campaign(s, {});
    std::string out = s.title + " " + r.digest;
    for (const MetricSummary& m : r.metrics) out += fmt::format(" {}={}", m.name, m.summary.mean);
    for (const FailureCause& cause : s.causes) out += " " + cause.name;
    for (const ClusterNetwork& network : s.networks) out += network_text(network);
    for (const PartFault& fault : s.faults) out += describe(fault);
    Diagnostics diagnostics;
    ValueReader reader(diagnostics, "knobs");
    Catalogue catalogue(reader, s.values, &s.overrides);
    const Communicator all =
        read_communicator(catalogue, s.node, {s.gpus(), s.node.gpus, s.networks[0].sharp});
    return out + fmt::format(" all-reduce {}", seconds(Collective::all_reduce, all, 1e6));
}

}  // namespace

TEST_CASE("every key of the language changes some result") {
    for (const SchemaRow& row : scenario_schema()) {
        CAPTURE(row.path);
        std::string key = row.path;
        const auto found = knobs.find(key);
        REQUIRE_MESSAGE(found != knobs.end(), "no row for this key");
        const Knob& knob = found->second;
        if (key.find(".cause") != std::string::npos || key.find(".fault") != std::string::npos) {
            std::string changed = base;
            const std::size_t at = changed.find(knob.change[0]);
            REQUIRE(at != std::string::npos);
            changed.replace(at, knob.change[0].size(), knob.change[1]);
            CHECK(outcome(base, {}) != outcome(changed, {}));
            continue;
        }
        std::vector<std::string> changed = knob.given;
        changed.insert(changed.end(), knob.change.begin(), knob.change.end());
        CHECK(outcome(base, knob.given) != outcome(base, changed));
    }
    CHECK(scenario_schema().size() >= knobs.size() - 1);
}

TEST_CASE("every key says what it means and what holds without it") {
    for (const SchemaRow& row : scenario_schema()) {
        CAPTURE(row.path);
        CHECK_FALSE(row.doc.empty());
        CHECK_FALSE(row.type.empty());
        CHECK_FALSE(row.otherwise.empty());
    }
}
