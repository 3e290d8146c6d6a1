#pragma once
// The ledger: every GPU-nanosecond of the cluster, booked once. Integers; they sum to the total
// exactly.

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/units.h"

namespace railyard {

using GpuNanoseconds = __int128;

enum class Category : std::uint8_t {
    productive,             // computing steps that were kept
    exposed_communication,  // of kept steps: waiting for collectives
    pipeline_bubble,        // of kept steps: pipeline stages without a microbatch
    straggler_wait,         // of kept steps: waiting for the slowest rank
    degraded,               // of kept steps: waiting for a part with a silent fault
    throttled,              // of kept steps: clocks or memory that heat has slowed
    data_wait,              // of kept steps: waiting for the next batch
    storm_stall,          // waiting for a network that a pause storm has frozen, or a dead part cut
    checkpoint_stall,     // waiting for a checkpoint, or slowed by one in the background
    lost_work,            // steps done and done again, and the step that was under way
    detection,            // a failure has happened and nobody has noticed
    replacement,          // draining the broken node, swapping in a spare
    requeue_wait,         // held by a job that waits for more nodes
    restart,              // launch, imports, communicator set-up, warm-up
    restore,              // reading the checkpoint back
    planned_maintenance,  // interruptions that were scheduled
    spare,                // healthy nodes that no job holds
    repair,               // nodes out of service
    // Only where many jobs share the cluster.
    idle,           // free, and nobody waits for it
    gang_wait,      // free, while the first of the queue waits for more than are free
    fragmentation,  // free, while the first of the queue needs no more but can't be placed
    partial_hold,   // held by a job that has not all of its GPUs, or not all in order
    drained,        // of nodes that take no new jobs
    health_check,   // prolog and epilog of jobs
    contention,     // of kept steps: other jobs' traffic on the same links
};
constexpr std::size_t category_count = 25;
// How many of them one job with its spares has.
constexpr std::size_t job_category_count = 18;

std::string_view category_name(Category category);  // snake_case
std::string_view category_doc(Category category);   // one line
// Google's goodput library: PRODUCTIVE, or its name for this kind of badput.
std::string_view category_goodput_name(Category category);

class Ledger {
  public:
    void book(Category category, std::int64_t gpus, Duration duration) {
        booked_[static_cast<std::size_t>(category)] += GpuNanoseconds{gpus} * duration.count();
    }
    void book(Category category, GpuNanoseconds gpu_time) {
        booked_[static_cast<std::size_t>(category)] += gpu_time;
    }
    void add(const Ledger& other) {
        for (std::size_t i = 0; i < category_count; ++i) booked_[i] += other.booked_[i];
    }
    GpuNanoseconds booked(Category category) const {
        return booked_[static_cast<std::size_t>(category)];
    }
    GpuNanoseconds total() const;
    double fraction(Category category) const;

  private:
    std::array<GpuNanoseconds, category_count> booked_{};
};

}  // namespace railyard
