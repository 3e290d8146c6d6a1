#include "models/training/stage_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/failure/failure.h"
#include "sim/integers.h"

namespace railyard {

namespace {

constexpr std::int64_t levels_max = 10'000;
constexpr double tokens_max = 1e17;

// `before`: the date that ends the stages so far.
StageLength read_length(Section& stage, const StageContext& context,
                        std::optional<Duration>& before) {
    StageLength length;
    const char* const none = "the next one never begins: only the last stage may have no length";
    stage.read("tokens", length.tokens, "Tokens that the stage trains on",
               {Bound::positive, "no end, or what steps or until says"});
    stage.read("steps", length.steps, "Steps of the stage",
               {Bound::positive, "no end, or what tokens or until says"});
    stage.read("until", length.until,
               "When the stage ends on the wall clock, from the campaign's start",
               {Bound::positive, "no end, or what tokens or steps says"});
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
    if (given == 0 && !context.last) stage.error("", none, "give it tokens, steps or until");
    if (!length.until) return length;
    if (before && *length.until <= *before) {
        stage.error("until", fmt::format("stages follow each other: one before lasts until {}",
                                         to_text(*before)));
    }
    before = length.until;
    warn_if_over(stage, "until", *length.until, context.campaign);
    return length;
}

StageRamp read_ramp(Section& stage, const char* from_key, const char* by_key, const char* from_doc,
                    const char* by_doc, const char* by_default) {
    StageRamp ramp{from_key, by_key, {}, {}};
    stage.read(from_key, ramp.from, from_doc, {Bound::positive, "no ramp"});
    stage.read(by_key, ramp.by, by_doc, {Bound::positive, by_default});
    if (ramp.by && !ramp.from) {
        stage.error(by_key, fmt::format("has no effect without {}", from_key));
    }
    return ramp;
}

// The ramp's values below `full`; empty, and reported, when there is no such ramp.
std::vector<std::int64_t> values_of(Section& stage, const StageRamp& ramp, std::int64_t full,
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
void set_steps(const StageLength& length, std::vector<StageLevel>& levels) {
    const auto count = real(levels.size());
    double tokens = 0;
    std::int64_t steps = 0;
    for (std::size_t i = 0; i < levels.size(); ++i) {
        const double share = real(i + 1) / count;
        StageLevel& level = levels[i];
        const auto each = real(level.tokens);
        if (length.tokens) {
            level.steps = static_cast<std::int64_t>(
                std::max(0.0, std::ceil((*length.tokens * share - tokens) / each)));
            tokens += each * real(level.steps);
        } else if (length.steps) {
            const auto levels_left = static_cast<std::int64_t>(levels.size() - i);
            level.steps = ceil_div(*length.steps - steps, levels_left);
            steps += level.steps;
        }
    }
}

std::vector<StageLevel> levels_of(Section& stage, const ParallelPlan& plan,
                                  const StageLength& length, const StageRamp& batch,
                                  const StageRamp& sequence) {
    const auto whole = {level_of(plan.global_batch, plan.sequence_length)};
    if (!batch.from && !sequence.from) return whole;
    const StageRamp& ramp = batch.from ? batch : sequence;
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

}  // namespace

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

StageKeys read_stage(Section& stage, const StageContext& context, std::optional<Duration>& until) {
    StageKeys keys;
    StageSpec& spec = keys.spec;
    spec.name = fmt::format("stage {}", context.number);
    stage.read("name", spec.name, "What the stage is called",
               {.otherwise = "stage and its number"});
    keys.length = read_length(stage, context, until);
    spec.nodes = context.job_nodes;
    stage.read("nodes", spec.nodes, "Nodes of the stage: the job's others are free meanwhile",
               {Bound::count, "job.nodes"});
    if (spec.nodes > context.job_nodes) {
        stage.error(
            "nodes",
            fmt::format("the stage wants {} nodes, the job has {}", spec.nodes, context.job_nodes),
            "raise job.nodes or lower the stage's");
    }
    keys.parallel = stage.open_table(
        "parallel", "Keys of [job.parallel] that are others in this stage, as in that section");
    keys.batch = read_ramp(
        stage, "batch_from", "batch_increment",
        "Sequences a step at the stage's begin, which rise to global_batch in equal parts of it",
        "Sequences by which the batch rises", "one microbatch of each replica");
    keys.sequence = read_ramp(stage, "sequence_from", "sequence_increment",
                              "Tokens per sequence at the stage's begin, which rise to "
                              "sequence_length in equal parts of it",
                              "Tokens by which a sequence grows",
                              "a token of each context- and tensor-parallel rank");
    stage.read(
        "stop", spec.stop,
        "How long the job stands still before it starts again with the stage's plan",
        {Bound::non_negative, "0 s; a stage of which only the batch is another starts without"});
    Duration time{};
    stage.read_time_or_steps("checkpoint_interval", time, spec.checkpoint_steps,
                             "Steps between two checkpoints in this stage",
                             {Bound::positive, "job.checkpoint.interval"});
    if (time > Duration{}) {
        stage.error("checkpoint_interval", "expected a number of steps, as \"100 steps\"");
    }
    stage.finish();
    return keys;
}

void settle_levels(Section& stage, const ParallelPlan& plan, StageKeys& keys) {
    keys.spec.levels = levels_of(stage, plan, keys.length, keys.batch, keys.sequence);
    set_steps(keys.length, keys.spec.levels);
    if (keys.length.until) keys.spec.until = Instant(*keys.length.until);
}

void read_maintenance(Section& top, MaintenanceSpec& out) {
    Section maintenance = top.section("maintenance");
    maintenance.read("every", out.every, "Time between planned interruptions of the job",
                     {Bound::positive, "never"});
    maintenance.read("duration", out.duration, "How long one lasts, before the restart",
                     {Bound::non_negative});
    maintenance.finish();
    if (maintenance.has("duration") && !maintenance.has("every")) {
        maintenance.error("duration", "has no effect without maintenance.every");
    }
}

void read_pauses(Section& job, Duration campaign, std::vector<PauseSpec>& pauses) {
    for (Section& section : job.sections(
             "pause", "The job stands still between two steps: to evaluate, or it is stopped")) {
        PauseSpec pause;
        pause.name = fmt::format("pause {}", pauses.size() + 1);
        section.read("name", pause.name, "What the pause is called",
                     {.otherwise = "pause and its number"});
        Duration every{};
        section.read_time_or_steps("every", every, pause.every_steps, "Steps between two of them",
                                   {Bound::positive, "it comes once"});
        Duration at{};
        section.read_time_or_steps("at", at, pause.at_step,
                                   "After how many steps, or when from the campaign's start",
                                   {Bound::positive, "not at one time"});
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
        if (pause.at) warn_if_over(section, "at", at, campaign);
        pauses.push_back(std::move(pause));
    }
}

void check_planned_stops(Section& section, const JobSpec& job) {
    const bool stops = std::ranges::any_of(job.stages, &StageSpec::restarts) ||
                       std::ranges::any_of(job.pauses, &PauseSpec::restart);
    const bool none = job.checkpoint.mode == CheckpointMode::none;
    if (stops && none && job.recovery.recompute) {
        section.error("checkpoint", "a planned stop loses all steps of a job that does not save",
                      "give job.checkpoint a mode, or job.recovery.recompute = false");
    }
    if (job.maintenance.every > Duration{} && none && job.recovery.recompute) {
        section.warning("checkpoint", "each maintenance loses all steps: this job does not save");
    }
    const bool own = std::ranges::any_of(
        job.stages, [](const StageSpec& stage) { return stage.checkpoint_steps > 0; });
    if (own && (none || job.checkpoint.interval_steps == 0)) {
        section.error("stage", "checkpoint_interval counts steps, job.checkpoint.interval does not",
                      "give job.checkpoint.interval in steps");
    }
    if (!job.stages.empty() && job.recovery.policy == RecoveryPolicy::shrink) {
        section.error("recovery", "a job with stages does not shrink", "policy = \"spare\"");
    }
}

}  // namespace railyard
