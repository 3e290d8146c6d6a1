#include "models/scheduler/policy.h"

#include <queue>
#include <utility>

namespace railyard {

namespace {

// Whose key is the least comes first, and of equal ones who was submitted first.
using Key = std::int64_t (*)(const ClusterState& cluster, std::size_t job);

std::int64_t alike(const ClusterState& /*cluster*/, std::size_t /*job*/) {
    return 0;
}
std::int64_t expected_time(const ClusterState& cluster, std::size_t job) {
    return cluster.expected(job).count();
}
std::int64_t falling_priority(const ClusterState& cluster, std::size_t job) {
    return -cluster.job(job).priority;
}

// A queue of which the first starts when it fits, and everyone waits until then.
template <Key key>
class HeadFirst : public QueuePolicy {
  public:
    static std::unique_ptr<QueuePolicy> make(ClusterState& cluster) {
        return std::make_unique<HeadFirst>(cluster);
    }
    explicit HeadFirst(ClusterState& cluster) : cluster_(cluster), waiting_(After{&cluster}) {}

    void submit(std::size_t job) override { waiting_.push(job); }
    void schedule() override {
        while (!waiting_.empty() && cluster_.fits(waiting_.top())) {
            cluster_.start(waiting_.top());
            waiting_.pop();
        }
    }
    std::size_t first() const override { return waiting_.empty() ? no_job : waiting_.top(); }

  private:
    struct After {
        const ClusterState* cluster;
        bool operator()(std::size_t a, std::size_t b) const {
            return std::pair(key(*cluster, a), cluster->rank(a)) >
                   std::pair(key(*cluster, b), cluster->rank(b));
        }
    };
    ClusterState& cluster_;
    std::priority_queue<std::size_t, std::vector<std::size_t>, After> waiting_;
};

}  // namespace

const std::vector<PolicyKind>& policy_kinds() {
    static const std::vector<PolicyKind> kinds = {
        {"fifo", "in the order of submission; who does not fit makes all others wait",
         HeadFirst<alike>::make},
        {"sjf", "the shortest first, likewise", HeadFirst<expected_time>::make},
        {"priority", "the highest priority first, then fifo", HeadFirst<falling_priority>::make},
        {"easy", "fifo, and who does not delay the first may overtake it (EASY backfill)",
         make_easy},
        {"backfill", "fifo, with a reservation for each job looked at (Slurm's sched/backfill)",
         make_backfill},
    };
    return kinds;
}

}  // namespace railyard
