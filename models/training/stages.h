#pragma once
// The stages of a training job, one after another, and the pauses between its steps.
//
// A stage is a plan of its own on its own number of nodes. Its steps come in levels, each of steps that are
// alike: a ramp of the batch or of the sequence has many, any other stage one. Without stages a job is one
// level that never ends.

#include <optional>
#include <string>
#include <vector>

#include "models/failure/failure.h"
#include "models/training/step.h"

namespace railyard {

constexpr std::int64_t endless = std::int64_t{1} << 62;  // steps

struct StageLevel {
    std::int64_t steps = endless;
    std::int64_t tokens = 0;  // of each
    std::int64_t batch = 0;   // sequences
    std::int64_t sequence_length = 0;
    StepTime step;
    std::vector<Duration> slowed;  // as JobSteps::slowed
};

struct StageSpec {
    std::string name;
    std::int64_t nodes = 0;
    std::vector<StageLevel> levels;
    std::optional<Instant> until;  // the last level then has no end of its own
    // As it begins the job saves, stands still for `stop` and starts again.
    bool restarts = false;
    Duration stop{};
    std::int64_t checkpoint_steps = 0;  // between two checkpoints; 0: as the job says
};

// The stage of each step. A stage that a date ends does so at the step that the job has then;
// when the job goes back behind that step, the stage after it begins there.
class StepSchedule {
  public:
    explicit StepSchedule(std::vector<StageSpec> stages);

    // Stage and level of the step that follows after so many.
    std::size_t stage_at(std::int64_t steps) const { return places_[place_at(steps)].stage; }
    const StageLevel& level_at(std::int64_t steps) const { return level(places_[place_at(steps)]); }
    std::int64_t steps_left(std::int64_t steps) const;  // of that level, at least one
    bool finished(std::int64_t steps) const { return steps >= end_; }
    const StageSpec& stage(std::size_t index) const { return stages_[index]; }
    std::size_t stages() const { return stages_.size(); }

    // Ends the stage of the next step, if its date has come by `now`; and what follows likewise.
    void look_at_date(std::int64_t steps, Instant now);
    void back_to(std::int64_t steps);

    // What the first so many steps of the job are, by stage.
    struct Done {
        std::int64_t steps = 0;
        double tokens = 0;
        double model_flops = 0;
        Duration time{};  // of bare steps
    };
    std::vector<Done> done(std::int64_t steps) const;

  private:
    struct LevelPlace {
        std::int64_t first = 0;
        std::size_t stage = 0;
        std::size_t level = 0;
    };
    const StageLevel& level(const LevelPlace& place) const {
        return stages_[place.stage].levels[place.level];
    }
    std::size_t place_at(std::int64_t steps) const {
        return places_.size() == 1 ? 0 : place_among(steps);
    }
    std::size_t place_among(std::int64_t steps) const;
    void lay_out();

    std::vector<StageSpec> stages_;
    std::vector<std::optional<std::int64_t>> ended_;  // by its date, at this step
    std::vector<LevelPlace> places_;
    std::int64_t end_ = endless;
};

// The job stands still between two steps: it evaluates, say. Or it stops, and starts again.
struct PauseSpec {
    std::string name;
    // Exactly one of the three is set.
    std::int64_t every_steps = 0;
    std::int64_t at_step = 0;
    std::optional<Instant> at = {};
    Duration duration{};
    bool restart = false;
    std::int64_t steps_before =
        0;                 // with every_steps: steps that count too, of an earlier campaign
    bool goes_on = false;  // it began in an earlier campaign, where it was counted
    bool over = false;     // of those that come once: there
};

// The pauses that are due. Those of every n-th step come again when that step is done again, others only
// once.
class Pauses {
  public:
    explicit Pauses(const std::vector<PauseSpec>& specs);

    bool none() const { return specs_.empty(); }
    // The first that is due after so many steps.
    std::optional<std::size_t> due(std::int64_t steps, Instant now) const;
    std::int64_t steps_until_next(std::int64_t steps) const;  // at least one
    void began(std::size_t pause, std::int64_t steps) { last_[pause] = steps; }
    void begin_after(std::int64_t steps);  // what is due then has been
    std::vector<bool> had() const;         // by pause: it has begun, once or more
    void back_to(std::int64_t steps);

  private:
    static constexpr std::int64_t never = -1;
    const std::vector<PauseSpec>& specs_;
    std::vector<std::int64_t> last_;  // by pause: the steps after which it was the last time
};

}  // namespace railyard
