#include "models/scheduler/policy.h"

#include <queue>

namespace railyard {

namespace {

class HeadFirst : public QueuePolicy {
  public:
    HeadFirst(ClusterState& cluster, JobOrder before)
        : cluster_(cluster), waiting_(After{&cluster, before}) {}

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
        JobOrder before;
        bool operator()(std::size_t a, std::size_t b) const { return before(*cluster, b, a); }
    };
    ClusterState& cluster_;
    std::priority_queue<std::size_t, std::vector<std::size_t>, After> waiting_;
};

}  // namespace

std::unique_ptr<QueuePolicy> make_head_first(ClusterState& cluster, JobOrder before) {
    return std::make_unique<HeadFirst>(cluster, before);
}

bool submitted_before(const ClusterState& cluster, std::size_t a, std::size_t b) {
    return cluster.rank(a) < cluster.rank(b);
}

const std::vector<PolicyKind>& policy_kinds() {
    static const std::vector<PolicyKind> kinds = {
        {"fifo", "in the order of submission; who does not fit makes all others wait", make_fifo},
        {"sjf", "the shortest first, likewise", make_sjf},
        {"priority", "the highest priority first, then fifo", make_priority},
        {"easy", "fifo, and who does not delay the first may overtake it (EASY backfill)",
         make_easy},
        {"backfill", "fifo, with a reservation for each job looked at (Slurm's sched/backfill)",
         make_backfill},
    };
    return kinds;
}

}  // namespace railyard
