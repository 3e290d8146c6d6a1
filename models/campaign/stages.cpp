#include <fmt/format.h>

#include <algorithm>

#include "models/campaign/sections.h"
#include "sim/parallel.h"

namespace railyard {

namespace {

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
    read_job_plan(job, values_, catalogue_, changes_, true, as);
    if (!stage.ok()) return std::nullopt;
    return StagePlan{"", as.plan, nodes, as.memory};
}

void StageReader::read(Section& stage, bool last) {
    StageKeys keys =
        read_stage(stage, {s_.job.nodes, s_.job.stages.size() + 1, last, s_.duration}, until_);
    StageSpec& spec = keys.spec;
    if (stage.describing()) return;
    std::optional<StagePlan> plan = plan_of(stage, keys.parallel, spec.nodes);
    if (!plan) return;
    plan->name = spec.name;
    settle_levels(stage, plan->plan, keys);
    if (!s_.stages.empty()) {
        spec.restarts = stage.has("stop") || !same_processes(s_.stages.back(), *plan);
    } else if (stage.has("stop")) {
        stage.warning("stop",
                      "has no effect on the first stage: the campaign opens on a job that runs");
    }
    s_.stages.push_back(*plan);
    s_.job.stages.push_back(std::move(spec));
}

std::vector<StageSpec> stages_on(const Scenario& s, const NetworkDraw* draw,
                                 const LossCauses& without) {
    const double heat =
        seconds(s.job.step.throttled) / seconds(s.job.step.duration() - s.job.step.throttled);
    std::vector<StageSpec> stages = s.job.stages;
    for (std::size_t i = 0; i < stages.size(); ++i) {
        Scenario cluster = s;  // as the stage has it, for its communicators
        cluster.job.nodes = s.stages[i].nodes;
        StepModel steps = steps_of(cluster, s.fidelity, draw);
        for (StageLevel& level : stages[i].levels) {
            ParallelPlan plan = s.stages[i].plan;
            plan.global_batch = level.batch;
            plan.sequence_length = level.sequence_length;
            level.step = steps.step(plan);
            level.step.degraded = held_up(steps, plan, s.faults);
            level.step.throttled = from_seconds(seconds(level.step.duration()) * heat);
            level.slowed = slowed_steps(s, steps, plan);
            remove_from_step(level.step, without);
        }
    }
    return stages;
}

}  // namespace

void read_stages(Section& job, const Value* job_table, ValueReader& values, Catalogue& catalogue,
                 const ScenarioChanges& changes, const Scenario& before, Scenario& s) {
    StageReader reader(job_table, values, catalogue, changes, before, s);
    std::vector<Section> stages = job.sections(
        "stage", "A part of the training with a plan of its own: the stages follow each other");
    for (std::size_t i = 0; i < stages.size(); ++i) reader.read(stages[i], i + 1 == stages.size());
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

void model_stages(Scenario& s, const LossCauses& without, unsigned threads) {
    if (s.job.stages.empty() || !s.no_path.empty()) return;
    try {
        parallel_for(s.draws.size(), threads, nullptr, [&](std::size_t k) {
            s.draws[k].stages = stages_on(s, &s.draws[k], without);
        });
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
