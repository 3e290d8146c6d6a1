#include "models/training/ledger.h"

namespace railyard {

namespace {

struct CategoryRow {
    std::string_view name;
    std::string_view doc;
    std::string_view goodput_name;
};

constexpr std::array<CategoryRow, category_count> rows{{
    {"productive", "computing steps that were kept", "PRODUCTIVE"},
    {"exposed_communication", "waiting for collectives, kept steps", "PRODUCTIVE"},
    {"pipeline_bubble", "stages without a microbatch, kept steps", "PRODUCTIVE"},
    {"straggler_wait", "waiting for the slowest rank, kept steps", "PRODUCTIVE"},
    {"degraded", "waiting for a part with a silent fault, kept steps", "PRODUCTIVE"},
    {"throttled", "clocks or memory slowed by heat or for a power budget, kept steps",
     "PRODUCTIVE"},
    {"data_wait", "waiting for data, kept steps", "DATA_LOADING_SYNC"},
    {"storm_stall", "a network frozen by a pause storm, or cut by a dead part", "OTHER"},
    {"checkpoint_stall", "waiting for a checkpoint, or slowed by one",
     "UNPRODUCTIVE_CHECKPOINT_SAVE"},
    {"lost_work", "steps lost and done again", "WASTED_PROGRESS_FROM_DISRUPTION"},
    {"detection", "a failure that nobody has noticed yet",
     "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION"},
    {"replacement", "draining the node, swapping in a spare",
     "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION"},
    {"requeue_wait", "a job waiting for nodes", "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION"},
    {"restart", "launch, imports, set-up, warm-up", "PROGRAM_STARTUP"},
    {"restore", "reading the checkpoint back", "UNPRODUCTIVE_CHECKPOINT_RESTORE"},
    {"planned_maintenance", "scheduled interruptions", "OTHER"},
    {"spare", "healthy nodes that no job holds", "OTHER"},
    {"repair", "nodes out of service", "OTHER"},
    {"idle", "free: nobody waits for it, or the site has no power for it", "OTHER"},
    {"gang_wait", "free, the first in the queue waits for more", "OTHER"},
    {"fragmentation", "free, the first in the queue needs no more but can't be placed", "OTHER"},
    {"partial_hold", "held by a job that has not all of its GPUs",
     "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION"},
    {"drained", "nodes that take no new jobs", "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION"},
    {"health_check", "prologs and epilogs of jobs", "PROGRAM_STARTUP"},
    {"contention", "other jobs' traffic on the same links, kept steps", "PRODUCTIVE"},
}};

const CategoryRow& row(Category category) {
    return rows[static_cast<std::size_t>(category)];
}

}  // namespace

std::string_view category_name(Category category) {
    return row(category).name;
}
std::string_view category_doc(Category category) {
    return row(category).doc;
}
std::string_view category_goodput_name(Category category) {
    return row(category).goodput_name;
}

GpuNanoseconds Ledger::total() const {
    GpuNanoseconds sum = 0;
    for (const GpuNanoseconds n : booked_) sum += n;
    return sum;
}

double Ledger::fraction(Category category) const {
    const GpuNanoseconds all = total();
    return all == 0 ? 0 : real(booked(category)) / real(all);
}

}  // namespace railyard
