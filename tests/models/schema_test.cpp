// No dead knob: every key of the language changes some result. The table below has, for each key, a
// value to set and what must hold for it to matter; the test walks the schema and fails for a key
// without a row.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "models/campaign/campaign.h"

using namespace railyard;

namespace {

const char* base = R"(
[run]
replicas = 3
duration = "20 day"
[cluster]
nodes = 10
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
    {"cluster.node", {{"cluster.node=dgx_h200"}}},
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

// Everything that a run reports, as text.
std::string outcome(const std::string& text, const std::vector<std::string>& settings) {
    const Scenario s = load_scenario(text, "knobs", {settings, {}});
    const CampaignResult r = run_campaign(s, {});
    std::string out = s.title + " " + r.digest;
    for (const MetricSummary& m : r.metrics) out += fmt::format(" {}={}", m.name, m.summary.mean);
    for (const FailureCause& cause : s.causes) out += " " + cause.name;
    return out;
}

}  // namespace

TEST_CASE("every key of the language changes some result") {
    for (const SchemaRow& row : scenario_schema()) {
        CAPTURE(row.path);
        std::string key = row.path;
        const auto found = knobs.find(key);
        REQUIRE_MESSAGE(found != knobs.end(), "no row for this key");
        const Knob& knob = found->second;
        if (key.starts_with("failures.cause")) {
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
