#pragma once
// What Kubernetes, Volcano and Kueue have in common: nodes that go silent, and the eviction of their pods.

#include <map>

#include "models/scheduler/kube_pods.h"
#include "models/scheduler/waiting_queue.h"

namespace railyard {

class KubeScheduler : public WorldScheduler {
  public:
    explicit KubeScheduler(WorldView& world)
        : world_(world), spec_(world.spec().kube), pods_(world) {}

    std::optional<std::string> never(JobIndex job) const override {
        return never_fits(world_, job, fitting_);
    }
    Duration heartbeat() const override { return spec_.not_ready_after; }
    void leaving(JobIndex job) override { pods_.remove(job); }  // none is made anew, or bound
    void silent(NodeIndex node) override;  // NotReady: no new pods, and its own are evicted later
    void node_changed(NodeIndex node) override;
    std::string stuck() const override;

  protected:
    // A job whose pods on a silent node are given up. It is gathering or stalled, and holds them.
    virtual void evicted(JobIndex job, NodeIndex node) = 0;
    void evict_what_is_due();
    // What runs since before the campaign. Pods that it lacks have been made and wait.
    void bind_again(JobIndex job, const Allocation& gpus) {
        world_.bind(job, gpus);
        pods_.create(job, Instant::min());
    }

    WorldView& world_;
    const KubeSpec& spec_;
    KubePods pods_;
    mutable FittingShapes fitting_;

  private:
    std::map<NodeIndex, Instant> evictions_;  // when
};

}  // namespace railyard
