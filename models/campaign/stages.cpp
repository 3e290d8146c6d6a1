#include "models/campaign/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/campaign/job_plan.h"
#include "sim/integers.h"

namespace railyard {

namespace {

constexpr std::int64_t levels_max = 10'000;
constexpr double tokens_max = 1e17;

// A rise in equal parts of the stage's length, from below what the plan says up to it.
struct Ramp {
    const char* from_key = "";
    const char* by_key = "";
    std::optional<std::int64_t> from;
    std::optional<std::int64_t> by;
};

struct Length {
    std::optional<double> tokens;
    std::optional<std::int64_t> steps;
    std::optional<Duration> until;
    bool any() const { return tokens || steps || until; }
};

// `before`: the date that ends the stages so far.
Length read_length(Section& stage, const Scenario& s, bool last, std::optional<Duration>& before) {
    Length length;
    const char* const none = "the next one never begins: only the last stage may have no length";
    stage.read("tokens", length.tokens, "Tokens that the stage trains on",
               {.bound = Bound::positive, .otherwise = "no end, or what steps or until says"});
    stage.read("steps", length.steps, "Steps of the stage",
               {.bound = Bound::positive, .otherwise = "no end, or what tokens or until says"});
    stage.read("until", length.until,
               "When the stage ends on the wall clock, from the campaign's start",
               {.bound = Bound::positive, .otherwise = "no end, or what tokens or steps says"});
    if (stage.describing()) return length;
    const int given = int{length.tokens.has_value()} + int{length.steps.has_value()} +
                      int{length.until.has_value()};
    if (given > 1) {
        stage.error(length.tokens ? "tokens" : "steps",
                    "a stage has one length: tokens, steps or until", "leave out the others");
    }
    if (length.tokens && *length.tokens > tokens_max) {
        stage.error("tokens", fmt::format("expected at most {:g} tokens", tokens_max));
        length.tokens.reset();
    }
    if (given == 0 && !last) stage.error("", none, "give it tokens, steps or until");
    if (!length.until) return length;
    if (before && *length.until <= *before) {
        stage.error("until", fmt::format("stages follow each other: one before lasts until {}",
                                         to_text(*before)));
    }
    before = length.until;
    if (s.duration > Duration{} && *length.until >= s.duration) {
        stage.warning("until",
                      fmt::format("the campaign has ended by then, after {}", to_text(s.duration)));
    }
    return length;
}

Ramp read_ramp(Section& stage, const char* from_key, const char* by_key, const char* from_doc,
               const char* by_doc, const char* by_default) {
    Ramp ramp{from_key, by_key, {}, {}};
    stage.read(from_key, ramp.from, from_doc, {.bound = Bound::positive, .otherwise = "no ramp"});
    stage.read(by_key, ramp.by, by_doc, {.bound = Bound::positive, .otherwise = by_default});
    if (ramp.by && !ramp.from) {
        stage.error(by_key, fmt::format("has no effect without {}", from_key));
    }
    return ramp;
}

// The ramp's values below `full`; empty, and reported, when there is no such ramp.
std::vector<std::int64_t> values_of(Section& stage, const Ramp& ramp, std::int64_t full,
                                    std::int64_t unit) {
    const std::int64_t by = ramp.by.value_or(unit);
    if (*ramp.from >= full) {
        stage.error(ramp.from_key,
                    fmt::format("a ramp rises to {}: expected less, found {}", full, *ramp.from));
        return {};
    }
    if ((full - *ramp.from) % by != 0) {
        stage.error(ramp.by ? ramp.by_key : ramp.from_key,
                    fmt::format("{} is not a whole number of increments of {} above {}", full, by,
                                *ramp.from));
        return {};
    }
    if ((full - *ramp.from) / by > levels_max) {
        stage.error(ramp.by ? ramp.by_key : ramp.from_key,
                    fmt::format("a ramp of more than {} levels", levels_max));
        return {};
    }
    std::vector<std::int64_t> values;
    for (std::int64_t value = *ramp.from; value < full; value += by) {
        if (value % unit != 0) {
            stage.error(ramp.by ? ramp.by_key : ramp.from_key,
                        fmt::format("{} is no multiple of {}, which each step of this plan needs",
                                    value, unit));
            return {};
        }
        values.push_back(value);
    }
    return values;
}

StageLevel level_of(std::int64_t batch, std::int64_t sequence_length) {
    StageLevel level;
    level.batch = batch;
    level.sequence_length = sequence_length;
    level.tokens = batch * sequence_length;
    return level;
}

// Each level ends with the first step that reaches its share of the stage's length.
void set_steps(const Length& length, std::vector<StageLevel>& levels) {
    const auto count = static_cast<double>(levels.size());
    double tokens = 0;
    std::int64_t steps = 0;
    for (std::size_t i = 0; i < levels.size(); ++i) {
        const double share = static_cast<double>(i + 1) / count;
        StageLevel& level = levels[i];
        const auto each = static_cast<double>(level.tokens);
        if (length.tokens) {
            level.steps = static_cast<std::int64_t>(
                std::max(0.0, std::ceil((*length.tokens * share - tokens) / each)));
            tokens += each * static_cast<double>(level.steps);
        } else if (length.steps) {
            const auto levels_left = static_cast<std::int64_t>(levels.size() - i);
            level.steps = ceil_div(*length.steps - steps, levels_left);
            steps += level.steps;
        }
    }
}

std::vector<StageLevel> levels_of(Section& stage, const ParallelPlan& plan, const Length& length,
                                  const Ramp& batch, const Ramp& sequence) {
    const auto whole = {level_of(plan.global_batch, plan.sequence_length)};
    if (!batch.from && !sequence.from) return whole;
    const Ramp& ramp = batch.from ? batch : sequence;
    if (batch.from && sequence.from) {
        stage.error(sequence.from_key, "a stage has one ramp, of the batch or of the sequence",
                    "make two stages of it");
        return whole;
    }
    if (!length.tokens && !length.steps) {
        stage.error(ramp.from_key, "a ramp is over when its stage is: the stage needs a length",
                    "give it tokens or steps");
        return whole;
    }
    std::vector<StageLevel> levels;
    if (batch.from) {
        const std::int64_t unit = plan.data * plan.microbatch;
        for (const std::int64_t value : values_of(stage, batch, plan.global_batch, unit)) {
            levels.push_back(level_of(value, plan.sequence_length));
        }
    } else {
        const std::int64_t unit = plan.context * plan.tensor;
        for (const std::int64_t value : values_of(stage, sequence, plan.sequence_length, unit)) {
            levels.push_back(level_of(plan.global_batch, value));
        }
    }
    return levels.empty() ? whole : levels;
}

void put(Value& table, const std::string& key, const Value& value) {
    if (Value* there = table.find(key)) {
        *there = value;
    } else {
        table.members.push_back({key, value});
    }
}

// [job] as a stage has it: its own keys in place of the job's. Another split, or other nodes, have as many
// replicas as then fit, unless the stage says how many.
Value job_of_stage(const Value& job, const Section& stage, const Value* own) {
    Value out;
    out.at = stage.at();
    if (const Value* software = job.find("software"))
        out.members.push_back({"software", *software});
    Value parallel;
    parallel.at = stage.at();
    if (const Value* usual = job.find("parallel")) parallel = *usual;
    const bool splits =
        own && (own->find("tensor") || own->find("context") || own->find("pipeline"));
    if (splits || stage.has("nodes")) {
        std::erase_if(parallel.members, [](const Member& m) { return m.key == "data"; });
    }
    if (own != nullptr) {
        for (const Member& member : own->members) put(parallel, member.key, member.value);
        parallel.at = own->at;
    }
    out.members.push_back({"parallel", parallel});
    return out;
}

// Only the batch differs: the processes go on.
bool same_processes(const StagePlan& a, const StagePlan& b) {
    ParallelPlan plan = a.plan;
    plan.global_batch = b.plan.global_batch;
    return a.nodes == b.nodes && plan == b.plan;
}

class StageReader {
  public:
    StageReader(const Value* job_table, ValueReader& values, Catalogue& catalogue,
                const ScenarioChanges& changes, const Scenario& before, Scenario& s)
        : job_table_(job_table),
          values_(values),
          catalogue_(catalogue),
          changes_(changes),
          before_(before),
          s_(s) {}

    void read(Section& stage, bool last);

  private:
    std::optional<StagePlan> plan_of(Section& stage, const Value* own, std::int64_t nodes);

    const Value* job_table_;
    ValueReader& values_;
    Catalogue& catalogue_;
    const ScenarioChanges& changes_;
    const Scenario& before_;
    Scenario& s_;
    std::optional<Duration> until_;
};

std::optional<StagePlan> StageReader::plan_of(Section& stage, const Value* own,
                                              std::int64_t nodes) {
    if (!stage.ok() || job_table_ == nullptr) return std::nullopt;
    Scenario as = before_;
    as.job.nodes = nodes;
    const Value merged = job_of_stage(*job_table_, stage, own);
    std::string path = stage.path("");
    if (path.ends_with('.')) path.pop_back();
    Section job(values_, &merged, path, stage.at());
    read_job_plan(job, values_, catalogue_, changes_, as);
    if (!stage.ok()) return std::nullopt;
    return StagePlan{"", as.plan, nodes, as.memory};
}

void StageReader::read(Section& stage, bool last) {
    StageSpec spec;
    spec.name = fmt::format("stage {}", s_.job.stages.size() + 1);
    stage.read("name", spec.name, "What the stage is called",
               {.otherwise = "stage and its number"});
    const Length length = read_length(stage, s_, last, until_);
    spec.nodes = s_.job.nodes;
    stage.read("nodes", spec.nodes, "Nodes of the stage: the job's others are free meanwhile",
               {.bound = Bound::count, .otherwise = "job.nodes"});
    if (spec.nodes > s_.job.nodes) {
        stage.error(
            "nodes",
            fmt::format("the stage wants {} nodes, the job has {}", spec.nodes, s_.job.nodes),
            "raise job.nodes or lower the stage's");
    }
    const Value* own = stage.open_table(
        "parallel", "Keys of [job.parallel] that are others in this stage, as in that section");
    const Ramp batch = read_ramp(
        stage, "batch_from", "batch_increment",
        "Sequences a step at the stage's begin, which rise to global_batch in equal parts of it",
        "Sequences by which the batch rises", "one microbatch of each replica");
    const Ramp sequence = read_ramp(
        stage, "sequence_from", "sequence_increment",
        "Tokens per sequence at the stage's begin, which rise to sequence_length in equal parts of "
        "it",
        "Tokens by which a sequence grows", "a token of each context- and tensor-parallel rank");
    stage.read("stop", spec.stop,
               "How long the job stands still before it starts again with the stage's plan",
               {.bound = Bound::non_negative,
                .otherwise = "0 s; a stage of which only the batch is another starts without"});
    Duration time{};
    stage.read_time_or_steps("checkpoint_interval", time, spec.checkpoint_steps,
                             "Steps between two checkpoints in this stage",
                             {.bound = Bound::positive, .otherwise = "job.checkpoint.interval"});
    if (time > Duration{}) {
        stage.error("checkpoint_interval", "expected a number of steps, as \"100 steps\"");
    }
    stage.finish();
    if (stage.describing()) return;
    std::optional<StagePlan> plan = plan_of(stage, own, spec.nodes);
    if (!plan) return;
    plan->name = spec.name;
    spec.levels = levels_of(stage, plan->plan, length, batch, sequence);
    set_steps(length, spec.levels);
    if (length.until) spec.until = Instant(*length.until);
    if (!s_.stages.empty()) {
        spec.restarts = stage.has("stop") || !same_processes(s_.stages.back(), *plan);
    } else if (stage.has("stop")) {
        stage.warning("stop",
                      "has no effect on the first stage: the campaign opens on a job that runs");
    }
    s_.stages.push_back(*plan);
    s_.job.stages.push_back(std::move(spec));
}

// The cluster as the stage has it, for its communicators.
Scenario for_stage(const Scenario& s, const StagePlan& stage) {
    Scenario out = s;
    out.job.nodes = stage.nodes;
    out.plan = stage.plan;
    return out;
}

// The steps of one stage's levels on one draw.
class StageSteps {
  public:
    StageSteps(const Scenario& s, const StagePlan& stage, const NetworkDraw* draw)
        : s_(s), stage_(stage), draw_(draw), cluster_(for_stage(s, stage)) {}

    void fill(std::vector<StageLevel>& levels) {
        const double heat = seconds(s_.job.step.throttled) /
                            seconds(s_.job.step.duration() - s_.job.step.throttled);
        for (StageLevel& level : levels) {
            const StepTime sound = sound_step(level);
            level.step = sound;
            level.step.degraded = held_up(level, s_.faults, sound);
            level.step.throttled = from_seconds(seconds(level.step.duration()) * heat);
            level.slowed.assign(std::size_t{1} << s_.slow_parts.size(), Duration{});
            for (std::size_t set = 1; set < level.slowed.size(); ++set) {
                std::vector<PartFault> faults = s_.faults;
                for (std::size_t i = 0; i < s_.slow_parts.size(); ++i) {
                    if (set >> i & 1) faults.push_back(s_.slow_parts[i]);
                }
                level.slowed[set] =
                    std::max(Duration{}, held_up(level, faults, sound) - level.step.degraded);
            }
        }
    }

  private:
    ParallelPlan plan_of(const StageLevel& level) const {
        ParallelPlan plan = stage_.plan;
        plan.global_batch = level.batch;
        plan.sequence_length = level.sequence_length;
        return plan;
    }
    // Groups are measured once for all levels.
    Communicators& groups(const std::vector<PartFault>& faults) {
        const auto known = std::ranges::find(groups_, faults, &Measured::faults);
        if (known != groups_.end()) return known->groups;
        groups_.push_back({faults, communicators(cluster_, s_.fidelity, faults, false, draw_)});
        return groups_.back().groups;
    }
    StepTime step_with(const StageLevel& level, const std::vector<PartFault>& faults) {
        return model_step(s_.model, plan_of(level), groups(faults), s_.parameter_bytes,
                          s_.optimizer_traffic);
    }
    StepTime sound_step(const StageLevel& level) { return step_with(level, {}); }
    Duration held_up(const StageLevel& level, const std::vector<PartFault>& faults,
                     const StepTime& sound) {
        if (faults.empty()) return {};
        const StepTime slow = with_one_slow_stage(step_with(level, faults), sound);
        return std::max(Duration{}, slow.duration() - sound.duration());
    }

    struct Measured {
        std::vector<PartFault> faults;
        Communicators groups;
    };
    const Scenario& s_;
    const StagePlan& stage_;
    const NetworkDraw* draw_;
    Scenario cluster_;
    std::vector<Measured> groups_;
};

std::vector<StageSpec> stages_on(const Scenario& s, const NetworkDraw* draw,
                                 const LossCauses& without) {
    std::vector<StageSpec> stages = s.job.stages;
    for (std::size_t i = 0; i < stages.size(); ++i) {
        StageSteps(s, s.stages[i], draw).fill(stages[i].levels);
        for (StageLevel& level : stages[i].levels) remove_from_step(level.step, without);
    }
    return stages;
}

}  // namespace

void read_stages(Section& job, const Value* job_table, ValueReader& values, Catalogue& catalogue,
                 const ScenarioChanges& changes, const Scenario& before, Scenario& s) {
    StageReader reader(job_table, values, catalogue, changes, before, s);
    std::vector<Section> stages =
        job.sections("stage",
                     "A part of the training with a plan of its own: the stages follow "
                     "each other");
    for (std::size_t i = 0; i < stages.size(); ++i) {
        reader.read(stages[i], i + 1 == stages.size());
    }
    if (stages.empty() || job.describing()) return;
    if (!step_is_modelled(s)) {
        job.error("stage", "how long a step takes in each stage must be modelled",
                  "give job.model, and neither job.step.time nor job.trace");
    }
    for (const char* key : {"length", "data"}) {
        if (!job.has(key)) continue;
        job.error(key,
                  key == std::string_view("length")
                      ? "the lengths of the stages say how long the job is"
                      : "what stages read that differ in their steps is not modelled",
                  "leave it out, or leave out [[job.stage]]");
    }
    if (!s.job.stages.empty() && s.job.stages.size() == stages.size()) {
        const auto largest = std::ranges::max_element(s.job.stages, {}, &StageSpec::nodes);
        if (largest->nodes < s.job.nodes) {
            job.error("stage", fmt::format("no stage uses all of the job's {} nodes", s.job.nodes),
                      fmt::format("job.nodes = {}", largest->nodes));
        }
    }
}

void read_pauses(Section& job, Scenario& s) {
    for (Section& section : job.sections(
             "pause", "The job stands still between two steps: to evaluate, or it is stopped")) {
        PauseSpec pause;
        pause.name = fmt::format("pause {}", s.job.pauses.size() + 1);
        section.read("name", pause.name, "What the pause is called",
                     {.otherwise = "pause and its number"});
        Duration every{};
        section.read_time_or_steps("every", every, pause.every_steps, "Steps between two of them",
                                   {.bound = Bound::positive, .otherwise = "it comes once"});
        Duration at{};
        section.read_time_or_steps("at", at, pause.at_step,
                                   "After how many steps, or when from the campaign's start",
                                   {.bound = Bound::positive, .otherwise = "not at one time"});
        section.read("duration", pause.duration, "How long each lasts",
                     {.bound = Bound::positive, .required = true});
        section.read("restart", pause.restart,
                     "The processes stop: the job saves before, and starts again afterwards");
        section.finish();
        if (section.describing()) continue;
        if (every > Duration{}) {
            section.error("every", "expected a number of steps, as \"1000 steps\"");
        } else if (section.has("every") == section.has("at")) {
            section.error(section.has("at") ? "at" : "",
                          "a pause comes every so often, or at a time", "give every or at");
        }
        if (at > Duration{}) pause.at = Instant(at);
        if (pause.at && s.duration > Duration{} && at >= s.duration) {
            section.warning(
                "at", fmt::format("the campaign has ended by then, after {}", to_text(s.duration)));
        }
        s.job.pauses.push_back(std::move(pause));
    }
}

void check_planned_stops(Section& job, const Scenario& s) {
    const bool stops = std::ranges::any_of(s.job.stages, &StageSpec::restarts) ||
                       std::ranges::any_of(s.job.pauses, &PauseSpec::restart);
    const bool none = s.job.checkpoint.mode == CheckpointMode::none;
    if (stops && none && s.job.recovery.recompute) {
        job.error("checkpoint", "a planned stop loses all steps of a job that does not save",
                  "give job.checkpoint a mode, or job.recovery.recompute = false");
    }
    const bool own = std::ranges::any_of(
        s.job.stages, [](const StageSpec& stage) { return stage.checkpoint_steps > 0; });
    if (own && (none || s.job.checkpoint.interval_steps == 0)) {
        job.error("stage", "checkpoint_interval counts steps, job.checkpoint.interval does not",
                  "give job.checkpoint.interval in steps");
    }
    if (!s.job.stages.empty() && s.job.recovery.policy == RecoveryPolicy::shrink) {
        job.error("recovery", "a job with stages does not shrink", "policy = \"spare\"");
    }
}

void model_stages(Scenario& s, const LossCauses& without) {
    if (s.job.stages.empty() || !s.no_path.empty()) return;
    try {
        for (NetworkDraw& draw : s.draws) draw.stages = stages_on(s, &draw, without);
        const NetworkDraw* const usual = usual_draw(s);
        s.job.stages = usual != nullptr ? usual->stages : stages_on(s, nullptr, without);
    } catch (const NoPath& no_path) {
        s.no_path = no_path.what();
    }
}

bool has_an_end(const Scenario& s) {
    if (s.job.stages.empty()) return s.job.target_steps > 0;
    const StageSpec& last = s.job.stages.back();
    return last.until || last.levels.back().steps < endless;
}

}  // namespace railyard
