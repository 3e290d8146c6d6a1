#pragma once
// What becomes of the GPUs that no job holds, booked.

#include "models/scheduler/world_cluster.h"
#include "models/scheduler/world_ledger.h"
#include "models/training/training.h"

namespace railyard {

class WorldBooks {
  public:
    // All nodes of `cluster` are up, sound and free. Nodes in no partition count as idle.
    WorldBooks(const WorldSpec& spec, const WorldCluster& cluster, WorldLedger& ledger);

    // Around every change of a node.
    void before_change(NodeIndex node) { count(node, -1); }
    void after_change(NodeIndex node) { count(node, 1); }
    // All GPUs of the nodes of a run, as WorldCluster cuts them, were taken (-1) or given back (1).
    void moved_whole(const NodeRun& run, int sign);
    // A reservation of it begins, or ends; several may go on at once.
    void set_maintenance(NodeIndex node, bool begins);

    // What the first of each partition's queue waits for.
    struct Need {
        std::int64_t parts = 0;  // of GPUs; 0: nobody waits
        std::uint32_t pool = 0;  // where
    };
    using Needs = std::vector<Need>;
    // The time since the last call, in which nothing has changed.
    void book(Instant now, const Needs& needs);
    // GPU time, in parts, of nodes with a job, so far, by group.
    const std::vector<GpuNanoseconds>& node_busy() const { return node_busy_; }
    // Time of compute slices that nobody could have had.
    GpuNanoseconds stranded() const { return stranded_time_; }

  private:
    void count(NodeIndex node, int sign);
    std::int64_t& class_of(NodeIndex node);

    const WorldCluster& cluster_;
    WorldLedger& ledger_;
    bool any_slices_;
    std::vector<std::uint32_t> home_;  // by node: its first partition; that of none is the last
    // Parts of GPUs of a group of nodes that no job holds.
    struct Unheld {
        std::vector<std::int64_t> free{};    // by home
        std::vector<std::uint32_t> homes{};  // of its nodes
        std::int64_t stranded = 0;           // in service, and out of reach
        std::int64_t undetected = 0;
        std::int64_t drained = 0;
        std::int64_t repair = 0;
        std::int64_t maintenance = 0;
    };
    std::vector<Unheld> unheld_;               // by group
    std::vector<std::uint32_t> reservations_;  // by node: that go on
    NodeSet under_maintenance_;                // with any of them
    std::vector<std::int64_t> parts_of_node_;  // by group
    std::vector<std::int64_t> parts_in_use_;   // all parts of nodes with a job, by group
    std::vector<GpuNanoseconds> node_busy_;
    GpuNanoseconds stranded_time_ = 0;
    Instant booked_until_{};
};

}  // namespace railyard
