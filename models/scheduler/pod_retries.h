#pragma once
// Pods that fail are made anew alone, after a while that doubles, until there were too many. The others stay,
// and the job goes on when it is whole: Kubernetes' Job with an elastic agent (torchrun) in its pods.

#include "models/scheduler/kube_pods.h"

namespace railyard {

class PodRetries {
  public:
    PodRetries(WorldView& world, KubePods& pods) : world_(world), pods_(pods) {}

    // As the calls of WorldScheduler.
    void failed(JobIndex job, NodeIndex node);
    void prolog_failed(JobIndex job, NodeIndex node);
    void evicted(JobIndex job, NodeIndex node);
    void released(JobIndex job);

  private:
    // Pods that fail at one instant are one failure.
    struct Failures {
        std::int64_t count = 0;
        Instant last{};
    };
    void lose_with_others(JobIndex job, NodeIndex node);
    void lose(JobIndex job, NodeIndex node);

    WorldView& world_;
    KubePods& pods_;
    std::vector<Failures> failures_;  // by job
    std::set<JobIndex> evicted_;      // of these a pod, before the others noticed
};

}  // namespace railyard
