#pragma once
// What schedulers of whole jobs have in common: a job has all its GPUs or none, and one that loses a node, or
// that fails by itself, waits again as a whole.

#include "models/scheduler/world_scheduler.h"

namespace railyard {

class WholeJobs : public WorldScheduler {
  public:
    explicit WholeJobs(WorldView& world) : world_(world), spec_(world.spec().slurm) {}

    void failed(JobIndex job, NodeIndex node) override {
        world_.requeue(job, world_.now(), node == no_node ? JobEnd::failed : JobEnd::node_fail);
    }
    void prolog_failed(JobIndex job, NodeIndex) override {
        world_.requeue(job, world_.now() + spec_.prolog_hold, JobEnd::node_fail);
    }
    Duration heartbeat() const override { return spec_.node_timeout; }
    void silent(NodeIndex node) override {
        world_.drain(node);
        for (const JobIndex job : world_.cluster().jobs_on(node)) {
            if (world_.status(job).phase == WorldPhase::completing) continue;
            world_.requeue(job, world_.now(), JobEnd::node_fail);
        }
    }

  protected:
    WorldView& world_;
    const SlurmSpec& spec_;
};

}  // namespace railyard
