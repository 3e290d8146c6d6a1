#pragma once
// Which waiting job starts next. A kind is one file and one row of policy_kinds(), or
// the row alone where it is but an order of the queue.

#include <memory>
#include <optional>
#include <vector>

#include "models/scheduler/cluster_state.h"

namespace railyard {

class QueuePolicy {
  public:
    virtual ~QueuePolicy() = default;

    virtual void submit(std::size_t job) = 0;
    virtual void ended(std::size_t /*job*/) {}
    // Starts what may start now.
    virtual void schedule() = 0;
    // Who waits first, or no_job.
    virtual std::size_t first() const = 0;
    // When it wants to schedule again even if nothing happens until then.
    virtual std::optional<Duration> wake() const { return std::nullopt; }
};

struct PolicyKind {
    const char* name;
    const char* doc;
    std::unique_ptr<QueuePolicy> (*make)(ClusterState&);
};

// In the order in which they are listed.
const std::vector<PolicyKind>& policy_kinds();

std::unique_ptr<QueuePolicy> make_easy(ClusterState& cluster);
std::unique_ptr<QueuePolicy> make_backfill(ClusterState& cluster);

}  // namespace railyard
