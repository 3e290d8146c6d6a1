#include "tools/export/export.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard {

const std::vector<ExportKind>& export_kinds() {
    static const std::vector<ExportKind> kinds = {
        {"astra-sim",
         "a folder for ASTRA-sim 3: network, system, memory, groups, and a step of the job as a "
         "Chakra trace of each rank",
         false, false, true, export_astra_sim},
        {"goal",
         "the window's flows as a schedule of GOAL (LogGOPSim, ATLAHS), a rank for each NIC", false,
         true, false, export_goal},
        {"htsim",
         "csg-htsim's topology (FILE) and the window's flows as its connection matrix (FILE.cm)",
         false, true, false, export_htsim},
        {"ns3", "topology (FILE), FILE.flow.txt and FILE.config.txt of HPCC's ns-3, of the window",
         false, true, false, export_ns3},
        {"openmetrics",
         "a replica as Prometheus has it, by DCGM's and Slurm's exporters, and a dashboard for "
         "Grafana (FILE.dashboard.json)",
         true, false, false, export_openmetrics},
        {"sacct",
         "a replica as 'sacct -P -D' has it and, of one job, its nodes' outages as 'sacctmgr -P "
         "show event' has them (FILE.events.txt)",
         true, false, false, export_sacct},
        {"simai",
         "SimAI's topology of GPUs, NVSwitches and the compute network (FILE), its configuration "
         "(FILE.config.txt) and, of a job with a model, a step (FILE.workload.txt)",
         false, true, false, export_simai},
    };
    return kinds;
}

bool holds_nodes(JobPhase phase) {
    return phase != JobPhase::replacement && phase != JobPhase::requeue_wait &&
           phase != JobPhase::done;
}

NetworkWindow compute_window(const Scenario& s, const char* form, bool orders) {
    std::vector<NetworkWindow> windows = packet_windows(s);
    const auto compute = std::ranges::find_if(
        windows, [](const NetworkWindow& w) { return w.network->name == "compute"; });
    if (compute == windows.end()) {
        throw ScenarioError(fmt::format("{}: window: no traffic on the compute network", s.file),
                            "add a [[window.traffic]]");
    }
    if (!compute->window.aggregating.empty()) {
        throw ScenarioError(fmt::format("{} has no reductions in the network", form),
                            "fabric.compute.sharp = false");
    }
    for (const PacketFlow& flow : compute->window.flows) {
        if (!orders && (flow.after >= 0 || flow.after_joint >= 0)) {
            throw ScenarioError(fmt::format("{}: the file for {} has the times at which flows "
                                            "start, and some start when another has ended",
                                            s.file, form),
                                "traffic of one step, such as incast or permutation");
        }
    }
    if (!compute->window.faults.empty()) {
        throw ScenarioError(fmt::format("{}: the file for {} has no faults", s.file, form),
                            "leave out [[window.fault]]");
    }
    return *compute;
}

}  // namespace railyard
