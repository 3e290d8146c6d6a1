#pragma once
// What a run of a job has done after a time, from the time alone.

#include "models/training/training.h"

namespace railyard {

struct RunProgress {
    Duration prolog{}, restart{}, restore{};
    Duration first_batch{};  // its loaders fill their shuffle buffers
    Duration stall{};        // for checkpoints, finished or not
    std::int64_t steps = 0;  // whole ones
    std::int64_t saved = 0;  // of these, safe
    bool any_saved = false;  // so are those before them
    Duration partial{};      // in the step after them
    bool saving = false;     // a checkpoint of all of them is under way
};

// From the instant at which a job has all its GPUs. A step has a length; a stall follows each
// `interval` steps but the last.
struct RunPlan {
    // How long it waits for a store, which says when that is over.
    static constexpr Duration open_ended = Duration::max() / 4;

    Duration prolog{}, restart{}, restore{}, first_batch{};
    Duration step{};
    std::int64_t steps = 0;
    std::int64_t interval = 0;  // 0: nothing is saved on the way
    Duration stall{};
    std::int64_t done =
        0;  // of the first interval, before this plan; all of it: the stall comes first
    Duration stalled{};     // of that stall, likewise
    Duration last_stall{};  // after the last step
    bool ends_safe = true;  // once its last step is done, nothing of it can be lost
    // After its set-up it waits, without a step, until another plan takes its place.
    bool stands_still = false;

    Duration setup() const { return prolog + restart + restore + first_batch; }
    std::int64_t stalls() const {
        return interval > 0 && steps > 0 ? (done + steps - 1) / interval : 0;
    }
    // The longest time there is where it is open-ended, or a step waits so long that it would take more.
    Duration finish_after() const;
    // What is left of it after that; a stall that is under way begins anew.
    RunPlan rest_after(Duration elapsed) const;
    // The end of the step, or of the stall, that is under way then.
    Duration boundary_after(Duration elapsed) const;
    // Needs 0 <= elapsed <= finish_after(). The parts sum to `elapsed`, each step as long as it is.
    RunProgress after(Duration elapsed) const;
};

}  // namespace railyard
