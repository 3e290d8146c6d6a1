#pragma once
// The stretch of steps that a job runs at present: alike, one after another, without an event between them.

#include <algorithm>
#include <utility>

#include "models/failure/failure.h"
#include "models/training/steps_done.h"

namespace railyard {

class RunningSteps {
  public:
    // What steps are from now on: each, with an upload beside it or without; `slow` of it they wait for
    // slow parts.
    void plan(const StepTime& each, bool uploads, Duration slow) {
        each_ = each;
        uploads_ = uploads;
        slow_ = slow;
    }
    void wait(Duration for_data) { each_.data_wait = for_data; }
    const StepTime& each() const { return each_; }
    Duration slow() const { return slow_; }

    // So many begin, so far into the first of them, which wait for data so long and `extra` more. When the
    // last one ends.
    Instant begin(Instant now, std::int64_t steps, Duration into, Duration wait, Duration extra) {
        start_ = now - into;
        steps_ = steps;
        // A step that has waited long enough, as things are now, is over.
        each_.data_wait = wait;
        each_.data_wait += std::max(extra, into - each_.duration());
        return start_ + steps * each_.duration();
    }
    // An upload begins or ends beside the step under way, of which `into` has passed.
    void look_at_upload(bool uploads, Duration into, Duration penalty, Duration wait) {
        each_.data_wait = wait;
        if (std::exchange(uploads_, uploads) == uploads) return;
        upload_changes(each_, into, uploads, penalty);
    }

    std::int64_t steps() const { return steps_; }
    // Whole ones by then, and the time in the next one.
    std::int64_t whole(Instant now) const { return (now - start_) / each_.duration(); }
    Duration into_next(Instant now) const { return (now - start_) % each_.duration(); }

  private:
    Instant start_{};  // on paper, of the first whole step
    std::int64_t steps_ = 0;
    StepTime each_;
    bool uploads_ = false;
    Duration slow_{};
};

}  // namespace railyard
