// railyard plan: the step of a scenario's parallel plan, its memory, and the best plans there are.

#include <fmt/format.h>

#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/plan_text.h"
#include "tools/cli/prediction_text.h"
#include "tools/cli/terminal_observer.h"

namespace railyard {

namespace {

// The modelled step of the plan as given.
Prediction plan_prediction(const Scenario& s, const std::string& path, ScenarioChanges changes) {
    Question step{"step", seconds(s.job.step.duration()), {}, s.step_error, "", false};
    step.measure = s.step_error.named ? "a measured step (job.step.time)"
                                      : "the software's name (job.software), or a measured step";
    for (const NetworkDraw& draw : s.draws) step.luck.push_back(seconds(draw.step.duration()));
    changes.plan = s.plan;
    return predict({step}, s.estimates, draws_of(s), s.seed,
                   read_again(path, changes, [](const Scenario& drawn) {
                       return std::vector<double>{seconds(drawn.job.step.duration())};
                   }));
}

struct PlanArguments {
    std::string path;
    std::int64_t top = 0;
    std::optional<std::int64_t> splits;
    std::vector<std::string> settings;
    bool json = false;
};

PlanArguments parse_plan(const std::vector<std::string>& arguments) {
    PlanArguments out;
    CommandLine line(
        "railyard plan SCENARIO.toml [options]",
        "Prints the step of the scenario's parallel plan, the critical path that it is made of, "
        "its\n"
        "memory, and the fastest plans that fit into the same GPUs with the same global batch: all "
        "are\ntried on an ideal network, and the best of them on the scenario's.");
    line.positional("scenario", 1);
    line.add_settings();
    line.add()("top", a_count(5), "How many of the best plans to print");
    line.add()("splits", a_count(),
               "How many splits over the GPUs to try on the scenario's network at most (default "
               "64, packet by packet as many as --top)");
    line.add_json();
    const auto values = line.parse(arguments);
    out.path = only_scenario(values, "plan");
    out.settings = settings_of(values);
    out.json = values.count("json") > 0;
    out.top = count_option(values, "top", 1);
    if (values.count("splits")) out.splits = values["splits"].as<std::int64_t>();
    if (out.splits.value_or(out.top) < out.top) {
        throw ScenarioError(
            fmt::format("--splits: expected --top = {} or more, found {}", out.top, *out.splits));
    }
    return out;
}

}  // namespace

int cmd_plan(const std::vector<std::string>& arguments) {
    const PlanArguments args = parse_plan(arguments);
    ScenarioChanges changes;
    changes.must_run = false;  // a plan that does not fit is a reason to look for others
    changes.settings = args.settings;
    changes.windows = watched_windows();
    changes.overrides_read = std::make_shared<OverridesRead>();
    const Scenario given = load_scenario_file(args.path, changes);
    need_one_job(given, "plan");
    print_warnings(given.warnings);
    if (given.model.name.empty()) {
        throw ScenarioError(
            fmt::format("{} has no job.model: there is nothing to plan", given.file));
    }
    std::optional<Duration> measured;
    if (given.given_step || given.trace) measured = given.job.step.duration();
    const Scenario s = measured ? with_plan(args.path, changes, given.plan) : given;
    if (!takes_first_step(s)) return exit_stuck;
    PlanAnswer answer{.given = given, .modelled = s, .measured = measured};
    Communicators groups = communicators(s, s.fidelity, {}, false, usual_draw(s));
    answer.path = critical_path(s.model, s.plan, groups, s.parameter_bytes, s.optimizer_traffic);
    constexpr std::int64_t splits_on_flows = 64;
    const std::int64_t splits_max =
        args.splits.value_or(s.fidelity == Fidelity::packet ? args.top : splits_on_flows);
    try {
        answer.best =
            find_best_plans(s, args.path, changes, static_cast<std::size_t>(args.top), splits_max);
    } catch (const Interrupted&) {
        answer.cut_short = true;
    }
    for (const LimitReached& limit : s.limits->all()) answer.best.limits.push_back(limit);
    answer.prediction = plan_prediction(s, args.path, changes);
    if (!s.step_error.named && !measured && !answer.cut_short) {
        answer.stacks = over_stacks(args.path, changes);
    }
    if (args.json) {
        fmt::print("{}\n", one_line(plans_json(answer)));
    } else {
        print_plans(answer);
    }
    print_warnings(unread_overrides(s));
    if (answer.cut_short) {
        fmt::print(stderr,
                   "railyard: interrupted: this is the plan as given; others were not all tried\n");
        return exit_interrupted;
    }
    return complain_of_limits(answer.best.limits);
}

}  // namespace railyard
