#pragma once
// What was simulated, in the forms that other programs and real clusters have.

#include <chrono>
#include <string>
#include <vector>

#include "models/campaign/campaign.h"

namespace railyard {

struct ExportedFile {
    std::string ending;  // ".events.txt": behind the name of the first file, whose ending is empty
    std::string text;
};

struct ExportKind {
    const char* name;
    const char* doc;
    bool replica;  // it is of one, with its log
    bool window;   // it is of the packet window
    bool folder;   // -o is a folder, and each ending a name in it
    // Throws ScenarioError when the form can't say it.
    std::vector<ExportedFile> (*run)(const Scenario& scenario, std::int64_t replica);
};
const std::vector<ExportKind>& export_kinds();

// astra_sim.cpp: ASTRA-sim's network, system, memory and groups, and Chakra's trace of each rank's step.
std::vector<ExportedFile> export_astra_sim(const Scenario& scenario, std::int64_t replica);
// sacct.cpp: 'sacct -P -D' of a replica, and of one job 'sacctmgr -P show event' of its nodes.
std::vector<ExportedFile> export_sacct(const Scenario& scenario, std::int64_t replica);
// openmetrics.cpp: a replica for Prometheus, and a dashboard for Grafana.
std::vector<ExportedFile> export_openmetrics(const Scenario& scenario, std::int64_t replica);
// goal.cpp: what each NIC sends, receives and waits for, of the compute network's window.
std::vector<ExportedFile> export_goal(const Scenario& scenario, std::int64_t replica);
// htsim.cpp: csg-htsim's topology and connection matrix, of the compute network's window.
std::vector<ExportedFile> export_htsim(const Scenario& scenario, std::int64_t replica);
// ns3.cpp: topology, flows and configuration of HPCC's ns-3, of the same.
std::vector<ExportedFile> export_ns3(const Scenario& scenario, std::int64_t replica);
// ns3.cpp: SimAI's topology, of GPUs and NVSwitches too, and its configuration.
std::vector<ExportedFile> export_simai(const Scenario& scenario, std::int64_t replica);
// simai_workload.cpp: a step of the scenario's one job; empty where nothing says what it consists of.
std::string simai_workload(const Scenario& scenario);

// The first second of a replica, UTC.
constexpr std::chrono::sys_days export_epoch = std::chrono::year(2026) / std::chrono::January / 1;
// Whether Slurm would say that the job runs.
bool holds_nodes(JobPhase phase);

// The compute network's window. Throws ScenarioError, which says what `form` can't have: flows that wait for
// others unless it `orders` them.
NetworkWindow compute_window(const Scenario& scenario, const char* form, bool orders = false);

}  // namespace railyard
