#pragma once
// Pods that wait for a node, and how kube-scheduler binds them: one by one.

#include <map>
#include <set>
#include <tuple>

#include "models/scheduler/pod_placement.h"

namespace railyard {

// The pod of highest priority (its QOS's) is bound first, then the oldest, to the
// node that scores best; one that fits nowhere keeps no other from being bound.
class KubePods {
  public:
    explicit KubePods(WorldView& world) : world_(world), spec_(world.spec().kube) {}

    // The pods that a job lacks, beyond those that wait already: from an instant on, one each pod_interval.
    void create(JobIndex job, Instant from);
    void remove(JobIndex job);  // none of its pods waits any more
    void set_flavor(JobIndex job, std::uint32_t flavor);
    bool bind();  // as many as there are nodes for now; false: none

    JobIndex first(std::uint32_t partition) const;  // whose pod comes next; or no_world_job
    // Jobs with some of their pods bound, and others that wait.
    const std::set<JobIndex>& holding() const { return holding_; }

  private:
    struct Batch {
        Instant from{};
        std::int64_t bound = 0;
        std::int64_t pods = 0;
    };
    struct Gang {
        std::vector<Batch> batches{};
        std::uint32_t flavor = any_flavor;
        std::int64_t waiting = 0;  // pods in `batches` that are not bound
        bool listed = false;       // its next pod is in queues_ or in later_
    };
    struct Entry {
        std::int64_t priority = 0;
        Instant since{};
        std::int64_t ordinal = 0;
        JobIndex job = no_world_job;
        bool operator<(const Entry& other) const {
            return std::tuple(-priority, since, ordinal, job) <
                   std::tuple(-other.priority, other.since, other.ordinal, other.job);
        }
    };
    // Pods of a class fit where any of it does.
    struct PodClass {
        std::uint32_t pool = 0;
        std::uint32_t flavor = any_flavor;
        std::int64_t size = 0;
        auto operator<=>(const PodClass&) const = default;
    };
    Batch& next_batch(Gang& gang) const;
    Instant next_at(const Batch& batch) const;
    PodClass class_of(JobIndex job) const;
    Entry entry(JobIndex job);
    void list_next(JobIndex job);
    void unlist(JobIndex job);
    void list_those_made();
    const std::pair<const PodClass, std::set<Entry>>* next_queue(
        const std::set<PodClass>& full) const;
    NodeIndex best_node(const PodClass& pod) const;
    void bind_next(JobIndex job, NodeIndex node, std::int64_t gpus);

    WorldView& world_;
    const KubeSpec& spec_;
    std::vector<Gang> gangs_;  // by job
    std::map<PodClass, std::set<Entry>> queues_;
    std::set<std::pair<Instant, JobIndex>> later_;  // next pods that are not there yet
    std::set<JobIndex> holding_;
};

}  // namespace railyard
