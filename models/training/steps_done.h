#pragma once
// The steps that a job has done and whose fate is not known yet: a failure may take the newest of them away,
// and what is saved for good keeps the oldest.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/training/ledger.h"
#include "models/training/step.h"
#include "sim/check.h"

namespace railyard {

// Where each part of a step's time is booked, in the order in which a step has them.
constexpr std::pair<Category, Duration StepTime::*> step_parts[] = {
    {Category::productive, &StepTime::compute},
    {Category::exposed_communication, &StepTime::exposed_communication},
    {Category::pipeline_bubble, &StepTime::bubble},
    {Category::straggler_wait, &StepTime::straggler_wait},
    {Category::degraded, &StepTime::degraded},
    {Category::throttled, &StepTime::throttled},
    {Category::data_wait, &StepTime::data_wait},
    {Category::contention, &StepTime::contention},
    {Category::checkpoint_stall, &StepTime::upload},
};

// `By`: who did them.
template <class By>
class OpenSteps {
  public:
    // Steps that are alike.
    struct Done {
        std::int64_t steps = 0;
        By by{};
        StepTime each{};

        Duration time() const { return each.duration() * steps; }
    };

    std::int64_t count() const { return count_; }
    const std::vector<Done>& all() const { return runs_; }  // the newest last
    void add(std::int64_t steps, const By& by, const StepTime& each) {
        if (steps == 0) return;
        const bool more = !runs_.empty() && runs_.back().by == by && runs_.back().each == each;
        if (!more) runs_.push_back({0, by, each});
        runs_.back().steps += steps;
        count_ += steps;
    }
    // So many of them are open no longer: settle(Done) is called for those that are alike.
    template <class Settle>
    void take_oldest(std::int64_t steps, const Settle& settle) {
        auto first = runs_.begin();
        for (; steps > 0 && first != runs_.end(); ++first) {
            steps -= take(*first, steps, settle);
            if (first->steps > 0) break;
        }
        runs_.erase(runs_.begin(), first);
    }
    template <class Settle>
    void take_newest(std::int64_t steps, const Settle& settle) {
        while (steps > 0) {
            RY_CHECK(!runs_.empty());
            steps -= take(runs_.back(), steps, settle);
            if (runs_.back().steps == 0) runs_.pop_back();
        }
    }

  private:
    template <class Settle>
    std::int64_t take(Done& run, std::int64_t most, const Settle& settle) {
        const std::int64_t part = std::min(run.steps, most);
        run.steps -= part;
        count_ -= part;
        settle(Done{part, run.by, run.each});
        return part;
    }

    std::vector<Done> runs_;  // the newest last
    std::int64_t count_ = 0;
};

// Starts or ends the slowing of the step under way by an upload (`penalty`): what is left of the step takes
// as long as it does from now on.
void upload_changes(StepTime& step, Duration partial, bool uploads, Duration penalty);

// What became of a job's steps.
struct StepCounts {
    std::int64_t steps_kept = 0;
    std::int64_t steps_lost = 0;
    std::int64_t replica_steps_missing = 0;  // of kept steps: replicas that were not there
    Duration slow_time{};                    // of kept and lost steps: waiting for slow parts
    Duration checkpoint_stall{};  // it waited for checkpoints, or kept steps slowed by one
    Duration
        stepping{};  // of kept steps and the one cut off, without what checkpoints beside them cost
};

// Who did steps that are alike.
struct Workers {
    std::int64_t gpus = 0;
    std::int64_t replicas_missing = 0;
    Duration slowed{};     // of each step: waiting for slow parts
    bool earlier = false;  // in a campaign before this one, which has booked them as kept
    bool operator==(const Workers&) const = default;
};

// The steps of one job: all that it has done since the campaign began, less what was lost. In the ledger
// once their fate is known.
class StepBook {
  public:
    explicit StepBook(Ledger& ledger) : ledger_(ledger) {}

    std::int64_t done() const { return done_; }
    std::int64_t replica_steps_missing() const { return replica_steps_missing_; }  // of these
    void add(std::int64_t steps, const Workers& by, const StepTime& each) {
        open_.add(steps, by, each);
        done_ += steps;
        replica_steps_missing_ += steps * by.replicas_missing;
    }
    void keep(std::int64_t steps);  // nothing takes the first so many away
    // Those after the first so many that something may still take away.
    std::vector<OpenSteps<Workers>::Done> after(std::int64_t steps) const;
    // Those after the first so many are lost: what they have taken.
    Duration back_to(std::int64_t steps);
    // So much of a step was done when the campaign ended.
    void cut_off(const StepTime& step, std::int64_t gpus, Duration partial);
    const StepCounts& counts() const { return counts_; }

  private:
    void count_kept(const OpenSteps<Workers>::Done& done, std::int64_t sign);

    Ledger& ledger_;
    std::int64_t done_ = 0;
    std::int64_t replica_steps_missing_ = 0;
    OpenSteps<Workers> open_;
    StepCounts counts_;
};

}  // namespace railyard
