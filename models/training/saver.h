#pragma once
// When a job saves, and what it waits for then: the same for one job and for each of many.

#include "models/training/checkpointer.h"

namespace railyard {

class Saver : public Checkpointer {
  public:
    using Checkpointer::Checkpointer;
    // What a job waits for before or after the stall of a save.
    enum class Waits : std::uint8_t { nothing, buffer, upload };

    const CheckpointSpec& spec() const { return spec_; }
    bool saves() const { return spec_.mode != CheckpointMode::none; }
    // Steps since the last save began, of `done`.
    std::int64_t unsaved(std::int64_t done) const { return done - saved_; }
    void went_back_to(std::int64_t steps) { saved_ = steps; }
    // A state has just been read: it counts as a save that ends now, so the next one begins one interval
    // after that one's begin.
    void was_read(std::int64_t steps);
    // It goes on from another campaign: so many of its steps came after the begin of its last save, the next
    // is due by the wall clock in so long, and so many states were offered to each tier.
    void goes_on(std::int64_t done, std::int64_t since_save, Duration due_in,
                 const std::vector<std::int64_t>& offered);
    Duration due_in() const { return due_ - clock_.now(); }
    const std::vector<std::int64_t>& offered() const { return reached_; }
    // After every so many steps; 0: by the wall clock.
    bool due(std::int64_t done, std::int64_t every) const;
    // Until then, each step so long; `into` the first of them already.
    std::int64_t steps_until_due(std::int64_t done, std::int64_t every, Duration each,
                                 Duration into = {}) const;
    // The stall begins, or the wait for a buffer: then false.
    bool save(std::int64_t done, bool before_stop);
    void begin_stall(std::int64_t done, bool before_stop);
    // A save that nothing disturbs (Checkpointer::pass).
    void pass_save(std::int64_t done, const StoreService::Undisturbed& stall);
    Waits waits() const { return waits_; }
    void wait_for(Waits what);
    void count_wait();  // it is over, or something else goes on
    // What it waited for, if that is there by now: then it waits no more.
    Waits come();

  private:
    // The grid of start times stands; what a late save missed of it is not made up for.
    void begin_interval();

    std::int64_t saved_ = 0;
    Instant due_{};
    Waits waits_ = Waits::nothing;
    Instant waits_since_{};
};

}  // namespace railyard
