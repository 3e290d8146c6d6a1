// A job on a network whose parts break: it goes round them, slower, or stands still until they are mended.

#include "models/training/job.h"

namespace railyard {

void TrainingJob::network_changed() {
    if (phase_ == JobPhase::running && !slowed_by_network()) {
        // What is on its way goes no further: the step goes on when there is a way again.
        engine_.cancel(phase_event_);
        running_.carry(stop_steps());
        stand_still();
    } else if (phase_ == JobPhase::running) {
        finish_step_under_way();
    } else if (waits_for_network_ && slowed_by_network()) {
        start_segment();
    }
}

void TrainingJob::stand_still() {
    held_ = JobPhase::running;
    enter(JobPhase::storm_stall);
    waits_for_network_ = true;
    record("no_path", network_->names(network_->broken()), -1, done());
}

}  // namespace railyard
