// ASTRA-sim 3: its analytical network, its system, memory and process groups, and the workload.

#include <fmt/format.h>

#include <utility>

#include "tools/export/export.h"
#include "tools/export/step_graph.h"

namespace railyard {

namespace {

void refuse(const Scenario& s, const std::string& what, const std::string& help) {
    throw ScenarioError(fmt::format("{}: {}", s.file, what), help);
}

void check_expressible(const Scenario& s) {
    if (s.world) refuse(s, "many jobs: ASTRA-sim has one workload", "a scenario with one [job]");
    if (s.model.name.empty() || s.given_step) {
        refuse(s, "what a step of the job consists of is not said",
               "give [job] a model and [job.parallel] instead of job.step.time");
    }
    if (!s.faults.empty()) {
        refuse(s, "ASTRA-sim's network has no slow parts", "leave out [[cluster.fault]]");
    }
    if (s.networks[0].sharp) {
        refuse(s, "ASTRA-sim's network has no reductions in switches",
               "fabric.compute.sharp = false");
    }
    if (s.plan.expert > 1 && s.plan.dispatch == ExpertDispatch::two_stage) {
        refuse(s, "Chakra has no dispatch to experts in two stages",
               "job.parallel.dispatch = \"all_to_all\"");
    }
    if (s.node.nvlink_domain < 1 || s.job.gpus() % s.node.nvlink_domain != 0) {
        refuse(s,
               fmt::format("{} GPUs are no equal groups of {}, which ASTRA-sim's dimensions are",
                           s.job.gpus(), s.node.nvlink_domain),
               "job.nodes: whole domains of NVLink");
    }
}

// A dimension of ASTRA-sim's network: all of a group reach each other through one switch.
struct NetworkLevel {
    std::int64_t gpus = 1;
    double bytes_per_s = 0;  // of each GPU
    double latency_s = 0;
};

// What all of the job's GPUs have together, as collectives have it. Latency is that of a small step (LL),
// measured over NVLink, and between nodes NCCL's own constant.
std::vector<NetworkLevel> network_levels(const Scenario& s, Communicators& groups) {
    constexpr auto ll = static_cast<std::size_t>(Protocol::ll);
    const Communicator& c = groups.of(Collective::all_gather, 1, s.job.gpus());
    std::vector<NetworkLevel> out;
    const std::int64_t inside = s.job.gpus() / c.domains;
    if (inside > 1) {
        out.push_back({inside, c.nvlink, c.measured.hop_s});
    }
    if (c.domains > 1) {
        out.push_back({c.domains, c.network / c.per_domain,
                       c.tuner.ring_network_s[ll] + c.measured.network_hop_s});
    }
    if (out.empty()) out.push_back({1, s.node.gpu.nvlink_bandwidth.bytes_per_second(), 0});
    return out;
}

template <class Text>
std::string listed(const std::vector<NetworkLevel>& levels, Text text) {
    std::vector<std::string> out;
    for (const NetworkLevel& each : levels) out.push_back(text(each));
    return fmt::format("{}", fmt::join(out, ", "));
}

std::string network_yml(const Scenario& s, const std::vector<NetworkLevel>& d) {
    return fmt::format(
        "# {} GPUs, {}\n"
        "topology: [ {} ]\nnpus_count: [ {} ]\nbandwidth: [ {} ]  # GB/s\nlatency: [ {} ]  # ns\n",
        s.job.gpus(), network_text(s), listed(d, [](const NetworkLevel&) { return "Switch"; }),
        listed(d, [](const NetworkLevel& each) { return fmt::format("{}", each.gpus); }),
        listed(d,
               [](const NetworkLevel& each) {
                   return fmt::format("{:.6g}", each.bytes_per_s * 1e-9);
               }),
        listed(d, [](const NetworkLevel& each) {
            return fmt::format("{:.6g}", each.latency_s * 1e9);
        }));
}

// For its packet simulators, which take the physical network from their own files.
std::string logical_json(const std::vector<NetworkLevel>& d) {
    return fmt::format(
        "{{\n    \"logical-dims\": [{}]\n}}\n",
        listed(d, [](const NetworkLevel& each) { return fmt::format("\"{}\"", each.gpus); }));
}

std::string system_json(const Scenario& s, const std::vector<NetworkLevel>& d) {
    const auto each = [&](const char* word) {
        return listed(d, [&](const NetworkLevel&) { return fmt::format("\"{}\"", word); });
    };
    const Gpu& gpu = s.node.gpu;
    return fmt::format(
        "{{\n"
        "    \"scheduling-policy\": \"LIFO\",\n"
        "    \"endpoint-delay\": 10,\n"
        "    \"active-chunks-per-dimension\": 2,\n"
        "    \"preferred-dataset-splits\": 4,\n"
        "    \"all-reduce-implementation\": [{0}],\n"
        "    \"all-gather-implementation\": [{0}],\n"
        "    \"reduce-scatter-implementation\": [{0}],\n"
        "    \"all-to-all-implementation\": [{1}],\n"
        "    \"collective-optimization\": \"localBWAware\",\n"
        "    \"local-mem-bw\": {2:.6g},\n"
        "    \"boost-mode\": 0,\n"
        "    \"roofline-enabled\": 0,\n"
        "    \"peak-perf\": {3:.6g}\n"
        "}}\n",
        each("ring"), each("direct"), gpu.hbm_bandwidth.bytes_per_second() * 1e-9,
        gpu.bf16_dense.per_second * 1e-12);
}

}  // namespace

std::vector<ExportedFile> export_astra_sim(const Scenario& s, std::int64_t /*replica*/) {
    constexpr std::size_t bytes_max = std::size_t{1} << 30;
    check_expressible(s);
    Communicators groups = communicators(s, s.fidelity);
    const StepOutline outline = slowed_by_hidden(
        step_outline(s.model, s.plan, groups, s.parameter_bytes, s.optimizer_traffic), s.plan,
        groups);
    const std::vector<NetworkLevel> network = network_levels(s, groups);
    std::vector<ExportedFile> out = {
        {"network.yml", network_yml(s, network)},
        {"logical_topology.json", logical_json(network)},
        {"system.json", system_json(s, network)},
        {"memory.json", "{\n    \"memory-type\": \"NO_MEMORY_EXPANSION\"\n}\n"},
    };
    ProcessGroups numbers;
    std::size_t bytes = 0;
    for (std::int64_t rank = 0; rank < s.plan.gpus(); ++rank) {
        std::string trace = step_trace(s.model, s.plan, outline, rank, numbers, groups);
        bytes += trace.size();
        if (bytes > bytes_max) {
            refuse(s,
                   fmt::format("the traces of {} of {} ranks take more than 1 GiB", rank + 1,
                               s.plan.gpus()),
                   "fewer nodes or, in job.parallel.global_batch, fewer microbatches");
        }
        out.push_back({fmt::format("workload.{}.et", rank), std::move(trace)});
    }
    out.push_back({"groups.json", numbers.json()});
    return out;
}

}  // namespace railyard
