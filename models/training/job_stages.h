#pragma once
// Where a job is in its stages and pauses, and the stop that these or its maintenance ask for next.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "models/training/job_description.h"
#include "models/training/stages.h"

namespace railyard {

struct StageOutcome {
    StepSchedule::Done kept;  // in this campaign
    std::int64_t safe = 0;    // steps that no failure takes away
    Duration wall{};          // from its beginning to the next one's
};

class JobStages {
  public:
    explicit JobStages(const JobSpec& spec);

    bool none() const { return spec_.stages.empty() && pauses_.none(); }
    void begin(Instant now, std::int64_t steps);          // a job that has done so many
    std::vector<Instant> dates_after(Instant now) const;  // at which somebody has to look

    const StageSpec& stage() const { return schedule_.stage(stage_); }
    const StageLevel& level_at(std::int64_t steps) const { return schedule_.level_at(steps); }
    bool finished(std::int64_t steps) const { return schedule_.finished(steps); }
    // Steps that are alike and without a pause between them.
    std::int64_t steps_ahead(std::int64_t steps) const {
        return std::min(schedule_.steps_left(steps), pauses_.steps_until_next(steps));
    }
    std::int64_t checkpoint_steps() const;  // between two checkpoints
    void back_to(std::int64_t steps);

    // What the next step needs: its stage, which may take a stop, and a stop that is due. True: another
    // stage has begun.
    bool look(std::int64_t steps, Instant now);
    void maintenance_due() { maintenance_ = true; }
    bool stop_planned() const { return maintenance_ || stop_; }
    struct Stop {
        const char* kind = "";
        Duration lasts{};
        std::string pause{};   // that it is for
        bool goes_on = false;  // it began in an earlier campaign
        bool enters_stage = false;
    };
    Stop begin_stop(std::int64_t steps, Instant now);
    void forget_stop();  // but for maintenance
    // The pause that is due, which begins; nullptr: none.
    const PauseSpec* begin_pause(std::int64_t steps, Instant now);

    // After so many steps, of which `safe` are safe.
    std::vector<StageOutcome> outcome(std::int64_t steps, std::int64_t safe, Instant now) const;
    std::vector<bool> had_pause() const { return pauses_.had(); }
    std::int64_t pauses() const { return pauses_begun_; }

  private:
    void enter(std::size_t stage, Instant now);
    void began(std::size_t pause, std::int64_t steps);

    const JobSpec& spec_;
    StepSchedule schedule_;
    Pauses pauses_;
    std::int64_t pauses_begun_ = 0;
    std::size_t stage_ = 0;
    std::int64_t began_with_ = 0;  // steps
    Instant since_{};
    std::vector<Duration> walls_;  // by stage
    bool maintenance_ = false;
    std::optional<Duration> stop_;          // for a stage or a pause; so long
    std::optional<std::size_t> stops_for_;  // the pause that it is for
};

}  // namespace railyard
