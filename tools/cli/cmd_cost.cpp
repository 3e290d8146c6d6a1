// railyard cost: what the scenario's cluster costs to buy, to keep and to use, line by line, and what its
// answer costs; several designs at the same prices.

#include <fmt/format.h>

#include <algorithm>

#include "models/campaign/campaign.h"
#include "tools/cli/cmd.h"
#include "tools/cli/cost_report.h"
#include "tools/cli/metric_text.h"
#include "tools/cli/study_arguments.h"
#include "tools/cli/terminal.h"
#include "tools/cli/verdict_table.h"
#include "tools/program/json_text.h"
#include "tools/program/lists.h"
#include "tools/study/arms.h"
#include "tools/study/deciding_metric.h"
#include "tools/study/trials.h"

namespace railyard {

namespace {

struct Costed {
    std::string name;  // of the arm
    ScenarioChanges changes;
    Scenario scenario;
    CampaignResult result;
    CostStudy study;
};

// None, and why is said, when the job can't take its first step.
std::optional<Costed> cost_of(const StudyArguments& study, const Arm& arm) {
    ScenarioChanges changes = study.changes;
    changes.settings.insert(changes.settings.end(), arm.settings.begin(), arm.settings.end());
    Costed out{
        arm.name, changes, load_scenario(study.trials.text, study.trials.file, changes), {}, {}};
    for (const Diagnostic& warning : out.scenario.warnings) {
        fmt::print(stderr, "{}{}\n", arm.name.empty() ? "" : arm.name + ": ",
                   format_diagnostic(warning, "warning"));
    }
    if (!out.scenario.cost) {
        throw ScenarioError(fmt::format("{} has no [cost]", study.trials.file),
                            "an empty [cost] takes the catalogue's prices");
    }
    if (!takes_first_step(out.scenario)) return std::nullopt;
    CampaignOptions options;
    options.threads = study.trials.threads;
    options.cancelled = &interrupted();
    out.result = run_campaign(out.scenario, options);
    if (out.result.cancelled) throw Interrupted();
    out.study = study_costs(out.scenario.cost->plan, out.result.uses);
    return out;
}

// What decides between designs.
const CostMetric& deciding_figure(const std::vector<Costed>& arms) {
    const auto designs = mapped(arms, [](const auto& arm) { return work_of(arm.scenario); });
    return *cost_metric(deciding_cost(designs).metric);
}

CostDifference difference_of(const Costed& a, const Costed& b, const CostMetric& figure) {
    const auto replicas = [&](const Costed& c) {
        return CostedReplicas{c.study, c.result.values.find(figure.name)->values,
                              c.scenario.draws.size()};
    };
    return compare_costs(a.study, b.study, figure.of,
                         figure.has_luck ? open_by_luck(replicas(a), replicas(b), 0.95) : 0);
}

// The estimates that decide between the two cheapest of several designs.
struct Estimated {
    VerdictEstimates found;
    std::string first;  // empty: of one design
    std::string second;
};

Estimated try_estimates(TrialOptions like, const std::vector<Costed>& arms) {
    const CostMetric& figure = deciding_figure(arms);
    const std::string metric(figure.name);
    const auto judged = [&](const Costed& arm) {
        return JudgedDesign{arm.name, like.text, like.file, arm.changes};
    };
    Progress progress("estimates");
    like.progress = progress.updates();
    if (arms.size() == 1) return {answer_estimates(like, judged(arms[0]), metric), "", ""};
    std::vector<const Costed*> order = mapped(arms, [](const Costed& arm) { return &arm; });
    std::ranges::stable_sort(order, [&](const Costed* a, const Costed* b) {
        return figure.of(a->study.typical) < figure.of(b->study.typical);
    });
    const CostDifference d = difference_of(*order[0], *order[1], figure);
    return {verdict_estimates(like, judged(*order[0]), judged(*order[1]),
                              {metric, Better::lower, d.difference.typical, d.decided()}),
            order[0]->name, order[1]->name};
}

std::string verdict_text(const CostDifference& d, const Costed& first, const Costed& other) {
    const double cheaper = std::max(d.second_cheaper, 1 - d.second_cheaper);
    const std::string& winner = d.second_cheaper >= 0.5 ? other.name : first.name;
    return fmt::format("{} in {:.0f} % of draws{}", winner, 100 * cheaper,
                       d.decided() ? "" : ": undecided");
}

void print_comparison(const std::vector<Costed>& arms) {
    fmt::print("{}\n", coloured(arms[0].scenario.title, Colour::bold));
    for (const Costed& arm : arms) {
        const CostPlan& plan = arm.scenario.cost->plan;
        fmt::print("  {}: goodput {:.2f} %{}{}\n", arm.name, 100 * arm.result.mean("goodput"),
                   plan.left_out.empty() ? "" : ", without ", fmt::join(plan.left_out, ", "));
        print_budget(plan, capital_sum(plan, typical_prices(plan.prices)));
    }
    for (const CostFigure& figure : cost_figures(arms[0].scenario)) {
        Table table({{figure.label},
                     ">typical",
                     "middle 95 %",
                     {fmt::format("less {}", arms[0].name), Table::Align::right},
                     "middle 95 %, same prices",
                     "cheaper"});
        for (const Costed& arm : arms) {
            const CostRange range = arm.study.range(figure.metric->of);
            std::vector<std::string> row = {
                arm.name, money_text(range.typical),
                fmt::format("{} to {}", money_text(range.low), money_text(range.high))};
            if (&arm == &arms[0]) {
                row.insert(row.end(), {"", "", ""});
            } else {
                const CostDifference d = difference_of(arms[0], arm, *figure.metric);
                row.insert(row.end(), {money_text(d.difference.typical),
                                       interval_text(d.difference, money_text, "one pair: none"),
                                       verdict_text(d, arms[0], arm)});
            }
            table.add(std::move(row));
        }
        fmt::print("\n{}", table.text());
    }
}

Json comparison_json(const std::vector<Costed>& arms) {
    Json out = Json::array();
    for (std::size_t i = 1; i < arms.size(); ++i) {
        Json figures = Json::object();
        for (const CostFigure& figure : cost_figures(arms[0].scenario)) {
            const CostDifference d = difference_of(arms[0], arms[i], *figure.metric);
            figures[figure.name] = {{"difference", range_json(d.difference)},
                                    {"share_of_draws_cheaper", d.second_cheaper},
                                    {"decided", d.decided()}};
        }
        out.push_back({{"arm", arms[i].name}, {"less", arms[0].name}, {"figures", figures}});
    }
    return out;
}

int exit_of(const std::vector<Costed>& arms) {
    int code = exit_ok;
    for (const Costed& arm : arms) {
        if (arm.result.ending() == Ending::stuck) return exit_stuck;
        if (arm.result.ending() == Ending::limit) code = exit_limit;
    }
    return code;
}

void print_costed(const std::vector<Costed>& costed, const std::optional<Estimated>& estimates,
                  bool alone) {
    if (alone) {
        const Costed& only = costed[0];
        print_cost_lines(only.scenario, only.result, only.study);
        print_cost_figures(only.scenario, only.study);
    } else {
        print_comparison(costed);
    }
    if (estimates && estimates->first.empty()) {
        print_answer_estimates(estimates->found);
    } else if (estimates) {
        print_verdict_estimates(estimates->found, estimates->first, estimates->second);
    }
    if (estimates && estimates->found.default_ranges) print_default_range();
}

}  // namespace

int cmd_cost(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard cost SCENARIO.toml [options]",
        "Prints what the cluster of a scenario with [cost] costs, line by line, then what a\n"
        "goodput GPU-hour and 10^12 trained tokens cost, with the interval that prices and\n"
        "failures give. Designs given as arms are compared at the same prices.");
    line.positional("scenario", 1);
    line.add_settings();
    line.add()(
        "vary", po::value<std::vector<std::string>>()->composing(),
        "Compare values (combinations, if given more than once): --vary \"cluster.nodes=4,8\"");
    line.add()("arm", po::value<std::vector<std::string>>()->composing(),
               "Compare designs: --arm \"NAME: KEY=VALUE; KEY=VALUE\"");
    line.add_threads();
    line.add_json();
    line.add()("no-estimates", "Don't try the estimates that the cost hangs on");
    const auto values = line.parse(arguments);
    const StudyArguments study = study_arguments(values, only_scenario(values, "cost"));
    std::vector<Arm> arms = arms_of(all_of(values, "vary"), all_of(values, "arm"));
    const bool alone = arms.empty();
    if (alone) arms.emplace_back();
    std::vector<Costed> costed;
    for (const Arm& arm : arms) {
        auto each = cost_of(study, arm);
        if (!each) return exit_stuck;
        costed.push_back(std::move(*each));
    }
    warn_of_prices_missing(
        mapped(costed, [](const Costed& each) { return std::pair(each.name, &each.scenario); }));
    std::optional<Estimated> estimates;
    if (!values.count("no-estimates")) estimates = try_estimates(study.trials, costed);
    if (study.json) {
        Json out = {
            {"scenario", study.trials.file}, {"version", version()}, {"arms", Json::array()}};
        for (const Costed& each : costed) {
            Json arm = {{"arm", each.name}, {"digest", each.result.digest}};
            arm.update(cost_lines_json(each.scenario, each.result, each.study));
            out["arms"].push_back(arm);
        }
        if (!alone) out["comparison"] = comparison_json(costed);
        if (estimates) {
            out["estimates"] =
                verdict_estimates_json(estimates->found, estimates->first, estimates->second);
        }
        fmt::print("{}\n", one_line(out));
        return exit_of(costed);
    }
    print_costed(costed, estimates, alone);
    return exit_of(costed);
}

}  // namespace railyard
