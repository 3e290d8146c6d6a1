#pragma once
// What the scenarios of many tests begin with, and what the tests ask of them.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/campaign/campaign.h"

namespace railyard {

// The sections [run] and [cluster]; keys of the cluster may follow.
inline std::string cluster_text(int nodes, std::string_view duration, int replicas = 1) {
    return fmt::format("\n[run]\nreplicas = {}\nduration = \"{}\"\n[cluster]\nnodes = {}\n",
                       replicas, duration, nodes);
}

// Steps of a second, nothing saved and nothing lost: a failure costs only what a test adds.
inline const std::string job_without_losses = R"(
[job.step]
time = "1 s"
[job.checkpoint]
mode = "none"
[job.recovery]
replacement = "0 s"
restart = "0 s"
restore = "0 s"
recompute = false
)";

// Llama 2 13B on 64 GPUs: as [job.parallel], or as [jobs.kind.parallel].
inline std::string parallel_text(std::string_view job) {
    return fmt::format(R"([{}.parallel]
tensor = 4
pipeline = 2
data = 8
interleave = 2
microbatch = 2
global_batch = 256
sequence_length = 4096
zero = 1
)",
                       job);
}

// That model as the one job of eight nodes, which neither saves nor takes time to start; or as the only kind
// where there may be many jobs.
inline std::string llama_as_one_job() {
    return "[job]\nnodes = 8\nmodel = \"llama2_13b\"\ncheckpoint.mode = \"none\"\n"
           "recovery.restart = \"0 s\"\n" +
           parallel_text("job");
}
inline std::string llama_among_many() {
    return "[scheduler]\n[[jobs.kind]]\nname = \"a\"\ngpus = 64\nmodel = \"llama2_13b\"\n"
           "steps = 1000000\nlimit = \"300 day\"\n" +
           parallel_text("jobs.kind");
}

inline Scenario scenario(const std::string& text, std::vector<std::string> settings = {}) {
    return load_scenario(text, "test", {std::move(settings), {}});
}

// Under Slurm: jobs of "high" suspend those of "low".
inline const std::string qos_that_suspends = R"(
[[scheduler.qos]]
name = "low"
preempt_mode = "suspend"
[[scheduler.qos]]
name = "high"
preempts = "low"
)";

// What is wrong with it; empty: nothing.
inline std::string refused(const std::string& text, std::vector<std::string> settings = {}) {
    try {
        scenario(text, std::move(settings));
    } catch (const ScenarioError& error) {
        return error.what();
    }
    return "";
}

inline double metric(const ReplicaResult& r, std::string_view name) {
    const auto found = std::ranges::find(r.metrics, name, &Metric::name);
    REQUIRE(found != r.metrics.end());
    return found->value;
}

// The seconds that the job spent so, and the energy that nodes drew meanwhile.
inline double booked_s(const Scenario& s, const ReplicaResult& r, Category category) {
    return static_cast<double>(r.ledger.booked(category)) * 1e-9 /
           static_cast<double>(s.job.gpus());
}
inline Picojoules drawn(const ReplicaResult& r, Category category) {
    return r.energy.nodes[static_cast<std::size_t>(category)];
}

}  // namespace railyard
