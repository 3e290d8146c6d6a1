// Kubernetes as it comes: kube-scheduler binds pods one by one, the Job controller makes failed ones anew,
// and nobody knows that the pods of a job are of use together only.

#include "models/scheduler/gang_deadlock.h"
#include "models/scheduler/kube_scheduler.h"
#include "models/scheduler/pod_retries.h"

namespace railyard {

namespace {

class Kubernetes : public KubeScheduler {
  public:
    explicit Kubernetes(WorldView& world) : KubeScheduler(world), retries_(world, pods_) {}

    void submitted(JobIndex job) override { pods_.create(job, world_.status(job).eligible); }
    void goes_on(JobIndex job, const Allocation& gpus) override { bind_again(job, gpus); }
    void released(JobIndex job) override {
        retries_.released(job);
        in_deadlock_.erase(job);
    }
    void failed(JobIndex job, NodeIndex node) override { retries_.failed(job, node); }
    void prolog_failed(JobIndex job, NodeIndex node) override { retries_.prolog_failed(job, node); }
    void schedule() override {
        evict_what_is_due();
        if (pods_.bind()) note_deadlocks();
    }
    JobIndex first(std::uint32_t partition) const override { return pods_.first(partition); }

  private:
    void evicted(JobIndex job, NodeIndex node) override { retries_.evicted(job, node); }
    void note_deadlocks() {
        for (const JobIndex job : deadlocked(world_, pods_.holding())) {
            if (in_deadlock_.insert(job).second) world_.note("deadlock", job, no_node);
        }
    }

    PodRetries retries_;
    std::set<JobIndex> in_deadlock_;
};

}  // namespace

std::unique_ptr<WorldScheduler> make_kubernetes(WorldView& world) {
    return std::make_unique<Kubernetes>(world);
}

}  // namespace railyard
