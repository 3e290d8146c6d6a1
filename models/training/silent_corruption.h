#pragma once
// Numbers that are wrong and that nobody notices: what a job saves from then on is worth nothing.

#include <algorithm>
#include <optional>

#include "models/training/node_pool.h"

namespace railyard {

class SilentCorruption {
  public:
    struct Found {
        NodePool::Struck struck;  // without a slot, when the node has left
        std::int64_t clean_steps = 0;
    };

    explicit SilentCorruption(const NodePool& pool) : pool_(pool) {}

    // One at a time: a second one before the first shows changes nothing. When it will show, if ever.
    std::optional<Instant> begin(const Strike& strike, std::int64_t clean_steps, Instant now,
                                 Duration shows_after) {
        if (strike_) return std::nullopt;
        strike_ = strike;
        node_ = pool_.node_in(strike.slot);
        clean_steps_ = clean_steps;
        if (shows_after > Instant::max() - now) return std::nullopt;
        return shows_at_ = now + shows_after;
    }
    // The job has gone back to a state. A part that corrupts goes on doing so; with its node gone, a state
    // from before is clean. True: it has shown while the job was down.
    bool went_back_to(std::int64_t steps) {
        if (!strike_) return false;
        if (node_left() && steps <= clean_steps_) {
            strike_.reset();
            return false;
        }
        clean_steps_ = std::min(clean_steps_, steps);
        return due_;
    }
    bool shows(Instant now) const { return now == shows_at_; }
    // It has shown; a job that is down finds it when it runs again.
    std::optional<Found> find(bool job_runs) {
        due_ = strike_ && !job_runs;
        if (!strike_ || due_) return std::nullopt;
        Found found{{*strike_, {}}, clean_steps_};
        if (!node_left()) found.struck.slots.push_back(strike_->slot);
        strike_.reset();
        return found;
    }

  private:
    bool node_left() const { return pool_.node_in(strike_->slot) != node_; }

    const NodePool& pool_;
    std::optional<Strike> strike_;
    std::int64_t node_ = -1;
    std::int64_t clean_steps_ = 0;
    Instant shows_at_{};
    bool due_ = false;
};

}  // namespace railyard
