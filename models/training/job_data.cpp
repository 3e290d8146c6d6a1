// The data that a job reads: steps that wait for it, shuffle buffers that fill, epochs that end.

#include <algorithm>

#include "models/training/job.h"

namespace railyard {

void TrainingJob::data_wait_changed() {
    if (phase_ == JobPhase::running) finish_step_under_way();
}

void TrainingJob::first_batch_there() {
    if (phase_ == JobPhase::first_batch) start_segment();
}

std::int64_t TrainingJob::epoch_ends_after(std::int64_t steps) const {
    if (!spec_.data || spec_.data->epoch_steps == 0) return 0;
    return (steps / spec_.data->epoch_steps + 1) * spec_.data->epoch_steps;
}

// Towards an epoch's end all of it is read; at its end the next one begins with empty buffers.
void TrainingJob::look_at_epoch() {
    if (epoch_ends_ == 0) return;
    if (done_.steps >= epoch_ends_) {
        epoch_ends_ = epoch_ends_after(done_.steps);
        feed_->begin_epoch();
    } else if (feed_->reading() && feed_->ready() &&
               feed_->steps_at_hand() >= epoch_ends_ - done_.steps) {
        feed_->end_reading();
    }
}

// Until the epoch ends, or until all that is left of it is read.
std::int64_t TrainingJob::steps_of_epoch() const {
    const std::int64_t left = epoch_ends_ - done_.steps;
    return feed_->reading() ? feed_->steps_to_read(left) : left;
}

}  // namespace railyard
