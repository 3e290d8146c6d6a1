#pragma once
// A sweep in parts: the coordinator writes a manifest into a folder that all machines see; task N simulates
// its points into a database of its own, the shard, and reports when that is whole.

#include "tools/results/results_db.h"
#include "tools/study/study.h"

namespace railyard {

struct SweepManifest {
    std::string version;
    std::string scenario_file;
    std::string scenario_text;
    StoppingRule rule;
    std::vector<std::vector<PointSpec>> tasks;  // file and toml left empty: they are the manifest's
};

// Files of a sweep's folder.
std::string manifest_path(const std::string& folder);
std::string shard_path(const std::string& folder, std::size_t task);
std::string report_path(const std::string& folder, std::size_t task);
std::string mark_path(const std::string& folder);

// Marks the folder as a sweep's, and writes the manifest into it.
void write_manifest(const std::string& folder, const SweepManifest& manifest);
// Whether a sweep's coordinator made the folder, or nobody has put anything into it.
bool is_sweep_folder(const std::string& folder);
// Throws ScenarioError when it isn't there, damaged, or another version's.
SweepManifest read_manifest(const std::string& folder, const std::string& version);

// Task N: drops what a dead one before it has left, simulates, reports. Throws ScenarioError.
void run_task(const std::string& folder, std::size_t task, const std::string& version,
              unsigned threads, const std::atomic<bool>& cancelled);

// Whether the shard is whole: there is a report, and the shard is what it reports.
bool shard_is_whole(const std::string& folder, std::size_t task);
// Removes shard and report.
void drop_shard(const std::string& folder, std::size_t task);
// Removes what coordinator and tasks have left in the folder, and the folder when nothing else is in it.
void drop_folder(const std::string& folder);

}  // namespace railyard
