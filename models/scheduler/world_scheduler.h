#pragma once
// A scheduler of many jobs: what it sees, what it is told, what it may do. A kind is one file and one row of
// world_scheduler_kinds().
//
// The world runs the jobs, their failures and the nodes' repair; the kind decides who gets which GPUs. All
// calls come at the world's present instant, and the kind may act from within any of them.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/scheduler/world_cluster.h"
#include "models/scheduler/world_spec.h"

namespace railyard {

enum class WorldPhase : std::uint8_t {
    pending,     // not submitted yet
    waiting,     // holds nothing
    gathering,   // holds some of its GPUs, or all of them after a failure: nothing runs
    running,     // holds all of its GPUs, or enough to go on: starts, works, saves
    stalled,     // a node of it has failed, and it has not noticed
    suspended,   // stopped where it was; others may have its GPUs
    completing,  // its epilog runs
    over,
};

// How a job ended for good.
enum class JobEnd : std::uint8_t {
    completed,
    failed,
    node_fail,
    timeout,
    preempted,
    cancelled,
    refused
};
const char* job_end_name(JobEnd how);

// What each run is planned to take at most: the job's own limit, else its partition's, else a year, as Slurm
// plans it.
Duration time_limit(const WorldSpec& spec, const WorldJob& job);
// It is not that year.
bool has_time_limit(const WorldSpec& spec, const WorldJob& job);

// What a kind may know of a job while it is about.
struct WorldJobStatus {
    WorldPhase phase = WorldPhase::pending;
    Allocation held;        // sorted by node
    std::int64_t gpus = 0;  // of these
    Instant submitted{};    // or submitted anew, when its time limit had ended it
    Instant eligible{};     // waits since
    Instant started{};      // of the run under way: when it had all its GPUs
    std::int64_t restarts = 0;
};

// The world as a kind may use it.
class WorldView {
  public:
    // References must outlive it.
    WorldView(const CampaignEngine& engine, const WorldSpec& spec,
              const std::vector<WorldJob>& jobs)
        : cluster_(spec), engine_(engine), spec_(spec), all_(jobs) {}
    virtual ~WorldView() = default;

    const WorldSpec& spec() const { return spec_; }
    const WorldCluster& cluster() const { return cluster_; }
    const WorldJob& job(JobIndex job) const { return all_[job]; }
    // What it asks for: GPUs (0), or slices of a profile.
    std::size_t device_of(JobIndex job) const { return cluster_.device_of(spec_.pool(all_[job])); }
    // Its pods' under Kubernetes: by its trace, else its QOS's.
    std::int64_t priority(JobIndex job) const {
        return all_[job].priority.value_or(spec_.slurm.qos[all_[job].qos].priority);
    }
    virtual const WorldJobStatus& status(JobIndex job) const = 0;
    Instant now() const { return engine_.now(); }

    // Gives a waiting, gathering or stalled job free GPUs of nodes that are up, or none; or one that runs on
    // fewer than it asked for. It starts, or starts again, once it holds all that it asked for.
    virtual void bind(JobIndex job, const Allocation& gpus) = 0;
    // Takes back what a gathering or stalled job holds on a node, or what a running one does not run on;
    // nothing left: it waits.
    virtual void unbind(JobIndex job, NodeIndex node) = 0;
    // It runs, and not without that node.
    virtual bool runs_on(JobIndex job, NodeIndex node) const = 0;
    // A running job stops where it is, and gathers: it holds what it held, and its work since it last saved
    // is lost.
    virtual void halt(JobIndex job) = 0;
    // Stops a job, if it runs, takes all that it holds, and lets it wait again: submitted() follows, not
    // before `eligible`. Ends it instead if its kind is not requeued, or has been too often.
    virtual void requeue(JobIndex job, Instant eligible, JobEnd otherwise) = 0;
    // Stops a job for good.
    virtual void end(JobIndex job, JobEnd how) = 0;
    // Stops a running job where it is, and takes its GPUs; resume() needs exactly these free.
    virtual void suspend(JobIndex job) = 0;
    virtual void resume(JobIndex job) = 0;
    // No new jobs there. A broken node is repaired once it is empty, and then up again.
    virtual void drain(NodeIndex node) = 0;
    // schedule() at that instant, whatever happens.
    virtual void wake_at(Instant at) = 0;
    // Says, for those who watch, by when a kind that plans ahead has planned a waiting job to start.
    virtual void promise(JobIndex job, Instant start) = 0;
    // Whether the site's power budget carries it beside those that hold GPUs. A job that holds some has its
    // power; no other may be bound or resumed without it.
    virtual bool power_for(JobIndex job) const = 0;
    // False of a node whose host is gone: what runs there can't tell anybody that it has failed.
    virtual bool answers(NodeIndex node) const = 0;
    // Nodes of a job that are broken and can tell: when its processes have given up, nothing runs there.
    std::vector<NodeIndex> failed_nodes(JobIndex job) const {
        std::vector<NodeIndex> nodes = cluster_.ailing(status(job).held);
        std::erase_if(nodes, [this](NodeIndex node) {
            return !cluster_.node(node).broken || !answers(node);
        });
        return nodes;
    }
    // An entry in the log of events; of no_world_job: of a node alone.
    virtual void note(const char* what, JobIndex job, NodeIndex node) = 0;

  protected:
    WorldCluster cluster_;

  private:
    const CampaignEngine& engine_;
    const WorldSpec& spec_;
    const std::vector<WorldJob>& all_;
};

class WorldScheduler {
  public:
    virtual ~WorldScheduler() = default;

    // Why it could never run; nothing when it could. Asked once, at submission.
    virtual std::optional<std::string> never(JobIndex job) const = 0;
    virtual void submitted(JobIndex job) = 0;  // waits from now on; again after a requeue
    // Instead, of one that runs since before the campaign: it binds these GPUs at once, which are free. They
    // are all of its own, or those that it went on with.
    virtual void goes_on(JobIndex job, const Allocation& gpus) = 0;
    virtual void leaving(JobIndex) {}  // over, or about to wait: its epilog begins
    virtual void released(
        JobIndex job) = 0;  // holds nothing any more: over, suspended, or about to wait
    // Its processes have given up, because of a node or, no_node, by themselves. It holds all that it held.
    virtual void failed(JobIndex job, NodeIndex node) = 0;
    // The prolog has found a node of a job broken, and drained it.
    virtual void prolog_failed(JobIndex job, NodeIndex node) = 0;
    // A node has been silent for heartbeat().
    virtual Duration heartbeat() const = 0;
    virtual void silent(NodeIndex node) = 0;
    virtual void node_changed(NodeIndex node) = 0;  // up, or not any more
    // All that has happened at this instant is known.
    virtual void schedule() = 0;
    // Who waits first in a partition, for GPUs and not for a limit of its own; or no_world_job.
    virtual JobIndex first(std::uint32_t partition) const = 0;
    // Who holds what and can never have what it waits for; empty: nobody.
    virtual std::string stuck() const { return {}; }
};

struct WorldSchedulerKind {
    const char* name;
    const char* doc;
    std::unique_ptr<WorldScheduler> (*make)(WorldView& world);
};

// In the order in which they are listed.
const std::vector<WorldSchedulerKind>& world_scheduler_kinds();

std::unique_ptr<WorldScheduler> make_slurm(WorldView& world);
std::unique_ptr<WorldScheduler> make_kubernetes(WorldView& world);
std::unique_ptr<WorldScheduler> make_volcano(WorldView& world);
std::unique_ptr<WorldScheduler> make_kueue(WorldView& world);
std::unique_ptr<WorldScheduler> make_fifo(WorldView& world);
std::unique_ptr<WorldScheduler> make_sjf(WorldView& world);
std::unique_ptr<WorldScheduler> make_priority(WorldView& world);
std::unique_ptr<WorldScheduler> make_easy(WorldView& world);

}  // namespace railyard
