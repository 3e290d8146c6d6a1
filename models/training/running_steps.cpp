#include "models/training/running_steps.h"

#include <algorithm>

#include "models/training/steps_done.h"

namespace railyard {

Instant RunningSteps::begin(Instant now, std::int64_t steps, Duration into, Duration wait,
                            Duration extra) {
    start_ = now - into;
    steps_ = steps;
    // A step that has waited long enough, as things are now, is over.
    each_.data_wait = wait;
    each_.data_wait += std::max(extra, into - each_.duration());
    return start_ + steps * each_.duration();
}

void RunningSteps::look_at_upload(bool uploads, Duration into, Duration penalty, Duration wait) {
    each_.data_wait = wait;
    if (std::exchange(uploads_, uploads) != uploads) upload_changes(each_, into, uploads, penalty);
}

}  // namespace railyard
