#include <fmt/format.h>

#include "tools/cli/run_text.h"
#include "tools/cli/terminal.h"

namespace railyard {

namespace {

// "192 to 2032", of a ramp's levels.
template <class Shown>
std::string over_levels(const StageSpec& stage, const Shown& shown) {
    const std::string first = shown(stage.levels.front());
    const std::string last = shown(stage.levels.back());
    return first == last ? first : fmt::format("{} to {}", first, last);
}

}  // namespace

void print_stage_plans(const Scenario& s) {
    if (s.stages.empty()) return;
    Table table({"stage", ">nodes", "plan", ">sequences", ">tokens each", ">step", ">GB per GPU"});
    for (std::size_t i = 0; i < s.stages.size(); ++i) {
        const StagePlan& plan = s.stages[i];
        const StageSpec& stage = s.job.stages[i];
        table.add(
            {visible(plan.name), fmt::format("{}", plan.nodes), split_text(plan.plan),
             over_levels(stage, [](const auto& l) { return fmt::format("{}", l.batch); }),
             over_levels(stage, [](const auto& l) { return fmt::format("{}", l.sequence_length); }),
             over_levels(stage, [](const auto& l) { return to_text(l.step.duration()); }),
             fmt::format("{:.1f}", total_bytes(plan.memory) * 1e-9)});
    }
    fmt::print("\n{}", table.text());
}

void print_stages(const Scenario& s, const CampaignResult& r) {
    constexpr double day = 86400;
    if (!s.stages.empty()) {
        Table table({"stage", ">days", ">steps kept", ">tokens", ">step", ">MFU of a step"});
        for (std::size_t i = 0; i < s.stages.size(); ++i) {
            const auto mean = [&](const char* what) {
                return r.mean(fmt::format("stage_{}_{}", i + 1, what));
            };
            if (mean("steps") == 0) {
                table.add({visible(s.stages[i].name), "-", "never began", "-", "-", "-"});
                continue;
            }
            table.add({visible(s.stages[i].name), fmt::format("{:.2f}", mean("wall_time") / day),
                       grouped(mean("steps")), fmt::format("{:.4g}", mean("tokens")),
                       time_text(mean("step_time")),
                       fmt::format("{:.1f} %", 100 * mean("mfu_step"))});
        }
        fmt::print("\n{}", table.text());
    }
    if (s.job.pauses.empty()) return;
    fmt::print("\n  {:.1f} pauses a replica; those without a restart take {} together\n",
               r.mean("pauses"), time_text(r.mean("pause_time")));
}

}  // namespace railyard
