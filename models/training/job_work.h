#pragma once
// The work of a job: the step under way and what that takes as things are, the steps that it has done, and
// which of them a failure takes away.

#include <optional>
#include <utility>

#include "models/training/data_feed.h"
#include "models/training/job_nodes.h"
#include "models/training/job_stages.h"
#include "models/training/network_parts.h"
#include "models/training/running_steps.h"
#include "models/training/saver.h"
#include "models/training/steps_done.h"

namespace railyard {

class JobWork {
  public:
    // All references must outlive it.
    JobWork(const JobSpec& spec, JobStages& stages, const JobNodes& nodes, Saver& saver,
            const std::optional<DataFeed>& feed, Ledger& ledger);
    void set_network(const NetworkParts& network) { network_ = &network; }
    const NetworkParts* network() const { return network_; }  // nullptr: none whose parts break

    std::int64_t done() const { return book_.done(); }  // steps
    const StepCounts& counts() const { return book_.counts(); }
    bool all_done() const;
    bool save_due() const { return saver_.due(done(), stages_.checkpoint_steps()); }
    bool has_way() const { return slowed_by_network().has_value(); }  // over the network
    double slowdown(std::uint32_t condition) const;

    // Steps as they are from now on.
    void plan();
    std::int64_t steps_ahead(Instant now) const;  // that nothing which is known ends
    Duration each() const { return running_.each().duration(); }
    // They run, or the rest of one: when they are over.
    Instant run(Instant now);
    Instant run_rest(Instant now, Duration partial);
    void complete(std::int64_t steps);
    void complete() { complete(running_.steps()); }
    std::int64_t done_by(Instant now) const;  // while they run
    Duration stop(Instant now);  // completes the whole ones; the time spent in the next one
    // The next steps begin in one that was stopped so far on.
    void carry(Duration partial) { carried_ += partial; }
    Duration carried() const { return carried_; }
    Duration take_carried() { return std::exchange(carried_, {}); }

    void keep_stored() { book_.keep(saver_.stored_steps()); }
    void fail_copies(const StateLoss& loss);
    void states_leave(const JobNodes::Slots& slots);
    // To the newest state that is left, if steps are done again at all.
    void go_back();
    void fall_back(Duration partial);  // the same for a failure, that strikes so far into a step
    Duration lost() const { return lost_; }  // by these
    void end(Duration partial);              // the campaign ends so far into a step
    // Before: what a failure would take away.
    StepsAtRisk at_risk() const;
    // It goes on from another campaign with these.
    void begin_with(const StepsAtRisk& steps);

  private:
    // Bare, at the size and in the stage that the job has now.
    const StepTime& step() const {
        const SmallerJob* const smaller = nodes_.smaller();
        return smaller == nullptr ? stages_.level_at(done()).step : smaller->step;
    }
    // With the store to the job alone, of a step that is as slow as that under way.
    Duration late() const { return batch_late(step().data_wait, running_.slow()); }
    Duration wait_alone() const { return wait_for_batch(late()); }
    Duration extra_wait() const { return feed_ ? feed_->extra_wait(late()) : Duration{}; }
    // What a step takes longer on a network of which something is broken; nothing when no way is left.
    std::optional<Duration> slowed_by_network() const {
        if (network_ == nullptr || network_->broken().empty() || !spec_.over_network) {
            return Duration{};
        }
        return spec_.over_network(network_->broken(), nodes_.size(), nodes_.conditions());
    }
    Duration slowed_by_parts() const;
    // Nodes that are missing at a job's full size had their part in its steps.
    std::int64_t gpus() const {
        if (nodes_.smaller() != nullptr) return nodes_.gpus();
        return stages_.stage().nodes * spec_.gpus_per_node;
    }
    std::int64_t steps_to_target() const;
    Instant begin(Instant now, std::int64_t steps, Duration partial) {
        return running_.begin(now, steps, partial, wait_alone(), extra_wait());
    }
    Duration lose_unsaved();

    const JobSpec& spec_;
    JobStages& stages_;
    const JobNodes& nodes_;
    Saver& saver_;
    const std::optional<DataFeed>& feed_;
    Ledger& ledger_;
    const NetworkParts* network_ = nullptr;
    StepBook book_;
    RunningSteps running_;
    Duration carried_{};  // with recompute off, by a failure too
    Duration lost_{};
};

}  // namespace railyard
