#pragma once
// Holds that no GPU is in two jobs, at every start and end, and notes what starts.

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <vector>

#include "models/scheduler/scheduler.h"

namespace railyard {

class GpuAudit : public WorldListener {
  public:
    explicit GpuAudit(const WorldSpec& spec) {
        for (const NodeGroup& group : spec.groups) {
            free_.insert(free_.end(), static_cast<std::size_t>(group.nodes), group.gpus_per_node);
        }
    }
    void started(JobIndex job, Instant now, const Allocation& gpus) override {
        for (const NodeShare& share : gpus) {
            free_[share.node] -= share.gpus;
            CHECK_MESSAGE(free_[share.node] >= 0, "a GPU of node ", share.node, " is in two jobs");
        }
        held_[job] = gpus;
        starts[job].push_back(now);
        nodes[job] = gpus;
    }
    void stopped(JobIndex job, Instant) override {
        for (const NodeShare& share : held_[job]) free_[share.node] += share.gpus;
        held_.erase(job);
    }
    void promised(JobIndex job, Instant now, Instant start) override {
        if (on_promise) on_promise(job, now, start);
    }
    std::function<void(JobIndex, Instant, Instant)> on_promise;
    std::map<JobIndex, std::vector<Instant>> starts;
    std::map<JobIndex, Allocation> nodes;  // of the latest start

  private:
    std::vector<std::int64_t> free_;
    std::map<JobIndex, Allocation> held_;
};

}  // namespace railyard
