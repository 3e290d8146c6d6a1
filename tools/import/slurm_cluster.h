#pragma once
// What Slurm's files say that there is: nodes with GPUs, partitions, switches. Read from records, and
// ordered so that each partition and each leaf is a run of nodes.

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "tools/import/import.h"
#include "tools/import/slurm_records.h"

namespace railyard {

struct SlurmNode {
    std::string name;
    std::int64_t gpus = 0;
    std::string type;   // of the GPUs, in small letters
    std::string group;  // that it becomes one of
    std::string kind;   // of the catalogue
    const SlurmRecord* record = nullptr;
    int leaf = -1;
};

struct SlurmPartition {
    std::string name;
    const SlurmRecord* record = nullptr;
    std::vector<std::size_t> nodes;  // with GPUs, ascending
};

struct SlurmLeaf {
    std::string name;
    std::string origin;
    std::vector<std::string> nodes;
    std::string file;
    int line = 0;
};

struct SlurmCluster {
    std::vector<SlurmNode> nodes;  // those with GPUs
    std::vector<SlurmPartition> partitions;
    std::deque<SlurmRecord> partition_records;  // with what PartitionName=DEFAULT gave them
    std::vector<SlurmLeaf> leaves;              // or blocks
    bool blocks = false;
    std::set<std::string> others;  // nodes that are defined and have no GPUs, or are to come
};

// Reads nodes, their GPUs and partitions; says what is left out.
SlurmCluster read_slurm_cluster(const std::vector<SlurmRecord>& records,
                                const ImportOptions& options, ImportedPart& part,
                                Diagnostics& diagnostics);
// Leaves or blocks of topology.conf, or of topology.yaml.
void read_slurm_switches(const std::vector<SlurmRecord>& records, SlurmCluster& cluster,
                         ImportedPart& part, Diagnostics& diagnostics);
void read_topology_yaml(const std::string& file, SlurmCluster& cluster, ImportedPart& part,
                        Diagnostics& diagnostics);
// Puts nodes on their leaves; says who is unknown, in two, or in none.
void place_on_leaves(SlurmCluster& cluster, Diagnostics& diagnostics);
// Orders the nodes. Reports a partition that is no run of nodes in any order that was tried.
void order_slurm_nodes(SlurmCluster& cluster, ImportedPart& part, Diagnostics& diagnostics);

}  // namespace railyard
