// railyard explain: why is goodput not 100 %?

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/cli/cmd.h"
#include "tools/cli/cost_report.h"
#include "tools/cli/metric_text.h"
#include "tools/cli/study_arguments.h"
#include "tools/cli/terminal.h"
#include "tools/cli/verdict_table.h"
#include "tools/program/json_text.h"
#include "tools/study/attribution.h"
#include "tools/study/trials.h"
#include "tools/study/upgrades.h"

namespace railyard {

namespace {

Json json_of(const std::optional<Summary>& s) {
    if (!s) return nullptr;
    return {{"mean", json_number(s->mean)}, {"ci95", ends_json(s->ci95)}};
}

Json json_of(const UpgradeTable& table) {
    return json_array(table.effects, [](const UpgradeEffect& e) {
        Json row = {{"change", e.upgrade.name},
                    {"settings", e.upgrade.settings},
                    {"free", e.upgrade.free},
                    {"speed", json_of(e.speed)},
                    {"goodput", json_of(e.goodput)}};
        if (e.cost) {
            row["cost_per_year"] = range_json(*e.cost);
            row["steps_per_cost"] = range_json(*e.return_on_cost);
        }
        return row;
    });
}

void print_json(const Scenario& s, const Attribution& a,
                const std::optional<UpgradeTable>& upgrades,
                const std::optional<VerdictEstimates>& estimates) {
    const Json causes = json_array(a.causes, [](const CauseOfLoss& c) -> Json {
        return {{"name", loss_cause_name(c.cause)},
                {"share", json_of(c.share)},
                {"sampling_error", json_number(c.sampling_error)},
                {"alone", json_of(c.alone)},
                {"last", json_of(c.last)}};
    });
    Json residue = Json::object();
    for (std::size_t i = 1; i < a.residue.size(); ++i) {
        if (a.residue[i] == 0) continue;
        residue[std::string(category_name(static_cast<Category>(i)))] = a.residue[i];
    }
    Json out = {{"scenario", s.file},
                {"version", version()},
                {"seed", s.seed},
                {"replicas", a.goodput.count},
                {"arms", a.arms},
                {"complete", a.complete() && a.unfinished.empty()},
                {"goodput", json_of(a.goodput)},
                {"ideal", json_of(a.ideal)},
                {"causes", causes},
                {"residue", residue}};
    if (upgrades) {
        out["upgrades"] = json_of(*upgrades);
        out["impossible_upgrades"] = upgrades->impossible;
    }
    if (estimates) {
        out["estimates"] = verdict_estimates_json(*estimates, upgrades->contest->best.name,
                                                  upgrades->contest->second.name);
    }
    fmt::print("{}\n", one_line(out));
}

std::string points(double fraction) {
    return fmt::format("{:+.2f}", 100 * fraction);
}

std::string points(const std::optional<Summary>& s) {
    return s ? points(s->mean) : "-";
}

// "+4.1 to +4.3" over replicas, and beside it what sampled orders leave open.
std::string interval_text(const CauseOfLoss& c) {
    if (!c.share) return "-";
    std::string out = interval_text(
        c.share->ci95, [](double v) { return points(v); }, "one replica: none");
    if (c.sampling_error > 0) out += fmt::format(", orders +- {:.2g}", 100 * c.sampling_error);
    return out;
}

void print_causes(const Attribution& a) {
    constexpr int bar_width = 20;
    double largest = 1e-9;
    for (const CauseOfLoss& c : a.causes) {
        if (c.share) largest = std::max(largest, c.share->mean);
    }
    Table table({"cause of loss", ">share, points", "95 % interval", "", ">alone", ">last", ""});
    double sum = 0;
    for (const CauseOfLoss& c : a.causes) {
        const double mean = c.share ? c.share->mean : 0;
        sum += mean;
        table.add({std::string(loss_cause_name(c.cause)), points(c.share), interval_text(c),
                   coloured(bar(mean / largest, bar_width), Colour::yellow), points(c.alone),
                   points(c.last), coloured(loss_cause_doc(c.cause), Colour::dim)});
    }
    if (a.complete()) table.add({"together", points(sum), "", "", "", "", ""});
    fmt::print("\n{}", table.text());
}

void print_residue(const Attribution& a) {
    if (!a.ideal) return;
    const bool whole = std::all_of(a.residue.begin() + 1, a.residue.end(),
                                   [](double fraction) { return fraction == 0; });
    fmt::print("\n  {} goodput without all of them{}\n", percent(a.ideal->mean),
               whole ? "" : ", and then:");
    if (whole) return;
    Table table({"", ">GPU time", ""});
    for (std::size_t i = 1; i < a.residue.size(); ++i) {
        if (a.residue[i] == 0) continue;
        const auto category = static_cast<Category>(i);
        table.add({std::string(category_name(category)), percent(a.residue[i]),
                   coloured(residue_doc(category), Colour::dim)});
    }
    fmt::print("{}", table.text());
}

void print_text(const Scenario& s, const Attribution& a) {
    fmt::print("{}\n  goodput {}", coloured(s.title, Colour::bold), percent(a.goodput.mean));
    if (a.ideal) {
        fmt::print(", without its causes of loss {}: {:.2f} points to explain",
                   percent(a.ideal->mean), 100 * (a.ideal->mean - a.goodput.mean));
    }
    fmt::print("\n");
    if (a.causes.empty()) {
        fmt::print("\n  no cause of loss is in this scenario\n");
    } else {
        print_causes(a);
        print_note(
            "share: Shapley's, fair over all orders of taking causes away; alone: only this one "
            "gone;");
        print_note("last: this one gone, when all others are gone already");
    }
    print_residue(a);
    fmt::print(
        "\n  {} on the same random numbers in {}, seed {}\n", counted(a.goodput.count, "replica"),
        a.arms_done == 1 ? "one world" : fmt::format("each of {} worlds", a.arms_done), s.seed);
}

// Nothing is so many percent more than none.
std::string percent_change(double v) {
    return std::isfinite(v) ? fmt::format("{:+.2f} %", 100 * v) : "-";
}

// To the last digit, in every replica.
bool changes_nothing(const UpgradeEffect& e) {
    return e.speed.mean == 0 && e.speed.deviation == 0 && e.goodput.mean == 0 &&
           (!e.cost || e.cost->typical == 0);
}

void print_changes(const char* title, const UpgradeTable& upgrades, bool free) {
    std::vector<Table::Column> columns = {title, ">training speed", "95 % interval",
                                          ">goodput, points"};
    if (upgrades.cost) {
        columns.insert(columns.end(),
                       {">USD a year", "middle 95 %", ">steps per USD", "middle 95 %"});
    }
    Table table(columns);
    for (const UpgradeEffect& e : upgrades.effects) {
        if (e.upgrade.free != free || changes_nothing(e)) continue;
        std::vector<std::string> row = {
            e.upgrade.name, percent_change(e.speed.mean),
            interval_text(
                e.speed.ci95, percent_change,
                std::isfinite(e.speed.mean) ? "one replica: none" : "nothing is trained as it is"),
            points(e.goodput.mean)};
        if (e.cost) {
            const auto usd = [](double v) {
                return fmt::format("{}{}", v <= -0.5 ? "-" : "+", grouped(std::abs(v)));
            };
            const auto between = [](const CostRange& range, const auto& text) {
                return fmt::format("{} to {}", text(range.low), text(range.high));
            };
            row.insert(row.end(), {usd(e.cost->typical), between(*e.cost, usd),
                                   percent_change(e.return_on_cost->typical),
                                   between(*e.return_on_cost, percent_change)});
        }
        table.add(row);
    }
    if (!table.empty()) fmt::print("\n{}", table.text());
}

void print_upgrades(const UpgradeTable& upgrades) {
    print_changes("what costs nothing", upgrades, true);
    print_changes("what money buys", upgrades, false);
    const auto joined = [](const std::vector<std::string>& names) {
        return fmt::format("{}", fmt::join(names, "; "));
    };
    std::vector<std::string> nothing;
    for (const UpgradeEffect& e : upgrades.effects) {
        if (changes_nothing(e)) nothing.push_back(e.upgrade.name);
    }
    if (!nothing.empty()) print_note("changes nothing here: " + joined(nothing));
    if (!upgrades.impossible.empty()) {
        print_note("makes no possible design here: " + joined(upgrades.impossible));
    }
    if (!upgrades.cost && !upgrades.effects.empty()) {
        print_note("without prices: the scenario has no [cost]");
    }
}

void print_contest(const Contest& contest, const std::optional<VerdictEstimates>& estimates) {
    const MetricComparison& d = contest.difference;
    const char* how = d.pairs.verdict == Verdict::first   ? "better than"
                      : d.pairs.verdict == Verdict::equal ? "as good as"
                                                          : "first, but not told from";
    fmt::print("\n  the best two changes by {}: A is {} B\n  A: {}\n  B: {}\n", d.metric, how,
               contest.best.name, contest.second.name);
    if (!estimates) return;
    print_verdict_estimates(*estimates, "A", "B");
    if (estimates->default_ranges) print_default_range();
}

int exit_code(const Attribution& a, const Scenario& s) {
    if (!a.complete()) {
        fmt::print(stderr,
                   "railyard: interrupted: {} of {} worlds were finished; shares need all\n",
                   a.arms_done, a.arms);
        return exit_interrupted;
    }
    if (a.unfinished.empty()) return exit_ok;
    const auto& [without, ending] = a.unfinished.front();
    if (ending == Ending::limit && !s.limits->all().empty()) {
        return complain_of_limits(s.limits->all());
    }
    fmt::print(stderr, "railyard: {}: the scenario without {} (and {} other worlds of {})\n",
               ending == Ending::stuck ? "stuck" : "limit", names_of_causes(without),
               a.unfinished.size() - 1, a.arms);
    return ending == Ending::stuck ? exit_stuck : exit_limit;
}

}  // namespace

int cmd_explain(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard explain SCENARIO.toml [options]",
        "Says why goodput is not 100 %: runs the scenario without each cause of loss, and without\n"
        "each set of them, on the same random numbers, and divides the gap among them.");
    line.positional("scenario", -1);
    add_study_options(line);
    line.add()("orders", a_count(),
               "Count only this many pairs of random orders of the causes, for scenarios that take "
               "long");
    line.add()("no-upgrades", "Don't try other settings, and what the catalogue has next");
    line.add()("no-estimates", "Don't try the estimates that the best change hangs on");
    const auto values = line.parse(arguments);
    StudyArguments args = study_arguments(values, only_scenario(values, "explain"));
    const std::int64_t orders = values.count("orders") ? count_option(values, "orders", 1) : 0;
    const Scenario scenario = load_scenario(args.trials.text, args.trials.file, args.changes);
    need_one_job(scenario, "explain");
    if (!can_start(scenario)) return exit_stuck;

    Attribution attribution;
    std::optional<UpgradeTable> upgrades;
    std::optional<VerdictEstimates> estimates;
    {
        Progress progress("worlds");
        args.trials.progress = progress.updates();
        attribution = attribute_loss(args.trials, args.changes, scenario, orders);
        if (attribution.complete() && !values.count("no-upgrades") && !interrupted()) {
            upgrades = try_upgrades(args.trials, args.changes, scenario);
        }
        const bool contested = upgrades && upgrades->contest &&
                               upgrades->contest->difference.pairs.verdict != Verdict::equal;
        if (contested && !values.count("no-estimates") && !interrupted()) {
            estimates = estimates_of(*upgrades->contest, args.trials, args.changes);
        }
    }
    if (args.json) {
        print_json(scenario, attribution, upgrades, estimates);
    } else {
        print_text(scenario, attribution);
        if (upgrades) print_upgrades(*upgrades);
        if (upgrades && upgrades->contest) print_contest(*upgrades->contest, estimates);
    }
    if (upgrades && upgrades->interrupted) {
        fmt::print(stderr, "railyard: interrupted: {} changes were finished\n",
                   upgrades->effects.size());
        return exit_interrupted;
    }
    return exit_code(attribution, scenario);
}

}  // namespace railyard
