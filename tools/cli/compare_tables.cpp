#include "tools/cli/compare_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "tools/cli/cost_report.h"
#include "tools/cli/metric_text.h"
#include "tools/cli/terminal.h"
#include "tools/cli/verdict_table.h"
#include "tools/language/settings_diff.h"
#include "tools/program/json_text.h"
#include "tools/program/lists.h"

namespace railyard {

std::vector<MetricComparison> Comparison::verdicts() const {
    std::vector<MetricComparison> out;
    std::copy_if(metrics.begin(), metrics.end(), std::back_inserter(out),
                 [&](const MetricComparison& m) { return m.metric == decided_by.metric; });
    return out;
}

std::vector<std::size_t> Comparison::unbeaten() const {
    std::vector<std::size_t> out(arms.size());
    std::iota(out.begin(), out.end(), std::size_t{0});
    for (const MetricComparison& m : verdicts()) {
        if (m.pairs.verdict == Verdict::first) std::erase(out, m.b);
        if (m.pairs.verdict == Verdict::second) std::erase(out, m.a);
    }
    return out;
}

const MetricComparison& Comparison::front_runners() const {
    const auto goodness = [&](double mean) {
        return decided_by.better == Better::higher ? mean : -mean;
    };
    const auto better = [&](const MetricComparison* x, const MetricComparison* y) {
        const auto ends = [&](const MetricComparison& m) {
            const double a = goodness(m.pairs.mean_a);
            const double b = goodness(m.pairs.mean_b);
            return std::pair(std::min(a, b), std::max(a, b));
        };
        const auto of_x = ends(*x);
        const auto of_y = ends(*y);
        return std::tie(of_x.second, of_x.first) > std::tie(of_y.second, of_y.first);
    };
    const MetricComparison* best = nullptr;
    for (const MetricComparison& m : metrics) {
        if (m.metric == decided_by.metric && (best == nullptr || better(&m, best))) best = &m;
    }
    return *best;
}

std::optional<std::size_t> Comparison::winner() const {
    std::vector<std::size_t> wins(arms.size(), 0);
    for (const MetricComparison& m : verdicts()) {
        if (m.pairs.verdict == Verdict::first) ++wins[m.a];
        if (m.pairs.verdict == Verdict::second) ++wins[m.b];
    }
    for (std::size_t i = 0; i < arms.size(); ++i) {
        if (wins[i] + 1 == arms.size()) return i;
    }
    return std::nullopt;
}

namespace {

using Column = Table::Column;
using enum Table::Align;

std::string interval_text(const MetricComparison& m, int decimals = 2) {
    if (m.pairs.pairs == 0) return "no replica of both has it";
    return interval_text(
        m.pairs.interval, [&](double d) { return difference_text(m.metric, d, decimals); },
        "one pair: none");
}

void print_arms(const Comparison& c) {
    Table table({Column{"", left}, Column{"", left}, Column{"", left}});
    for (const ComparedArm& arm : c.arms) {
        table.add({coloured(arm.name, Colour::bold), arm.scenario.title,
                   coloured(fmt::format("{} {}", visible(arm.file), fmt::join(arm.settings, " ")),
                            Colour::dim)});
    }
    fmt::print("{}", table.text());
}

std::vector<DifferingKey> differences_of(const Comparison& c) {
    return differing_keys(mapped(c.arms, [](const ComparedArm& arm) { return &arm.document; }));
}

void print_differences(const Comparison& c) {
    std::vector<Column> columns = {{"what differs", left}};
    for (const ComparedArm& arm : c.arms) columns.push_back({arm.name, left});
    Table table(std::move(columns));
    const std::vector<DifferingKey> keys = differences_of(c);
    for (const DifferingKey& key : keys) {
        std::vector<std::string> row = {key.path};
        for (const std::string& value : key.values)
            row.push_back(value.empty() ? "(not given)" : value);
        table.add(std::move(row));
    }
    if (keys.empty()) {
        fmt::print("\n  nothing differs: these are the same scenario\n");
    } else {
        fmt::print("\n{}", table.text());
    }
}

// The mean of each arm and, where there are two, their difference with its interval.
class ArmTable {
  public:
    ArmTable(const Comparison& c, const char* title, const char* interval = "95 % interval")
        : comparison_(c), table_(columns(c, title, interval)) {}

    void add(const std::string& label, const std::string& metric, const std::vector<double>& means,
             const MetricComparison* pair) {
        std::vector<std::string> row = {label};
        for (std::size_t i = 0; i < means.size(); ++i) {
            row.push_back(metric_text(metric, means[i]));
            if (i > 0 && comparison_.arms.size() > 2) {
                row.push_back(difference_text(metric, means[i] - means[0]));
            }
        }
        if (comparison_.arms.size() == 2) {
            row.push_back(pair ? difference_text(metric, pair->pairs.difference) : "-");
            row.push_back(pair ? interval_text(*pair) : "");
        }
        table_.add(std::move(row));
        ++rows_;
    }
    void print() const {
        if (rows_ > 0) fmt::print("\n{}", table_.text());
    }

  private:
    static std::vector<Column> columns(const Comparison& c, const char* title,
                                       const char* interval) {
        std::vector<Column> out = {{title, left}};
        for (std::size_t i = 0; i < c.arms.size(); ++i) {
            out.push_back({c.arms[i].name, right});
            if (i > 0 && c.arms.size() > 2) {
                out.push_back({fmt::format("{} - {}", c.arms[i].name, c.arms[0].name), right});
            }
        }
        if (c.arms.size() == 2) {
            out.push_back({fmt::format("{} - {}", c.arms[1].name, c.arms[0].name), right});
            out.push_back({interval, left});
        }
        return out;
    }

    const Comparison& comparison_;
    Table table_;
    int rows_ = 0;
};

void print_ledger(const Comparison& c) {
    ArmTable table(c, "ledger");
    for (std::size_t i = 0; i < category_count; ++i) {
        const auto category = static_cast<Category>(i);
        const auto shares = mapped(c.arms, [&](const auto& arm) { return arm.sums.ledger[i]; });
        if (std::ranges::all_of(shares, [](double s) { return s == 0; })) continue;
        const MetricComparison pair{"goodput", Better::lower, 0, 1,
                                    compare_category(c.arms[0], c.arms[1], category)};
        table.add(std::string(category_name(category)), "goodput", shares, &pair);
    }
    table.print();
}

std::vector<double> means_of(const Comparison& c, const std::string& metric) {
    std::vector<double> out;
    for (const ComparedArm& arm : c.arms) {
        const MetricSummary* found = find_named(arm.sums.metrics, metric);
        out.push_back(found == nullptr ? std::nan("") : found->summary.mean);
    }
    return out;
}

void print_metrics(const Comparison& c, ArmTable table,
                   const std::function<bool(const MetricSummary&)>& wanted) {
    std::vector<std::string> seen;
    for (const ComparedArm& arm : c.arms) {
        for (const MetricSummary& m : arm.sums.metrics) {
            if (!wanted(m) || std::ranges::find(seen, m.name) != seen.end()) continue;
            seen.push_back(m.name);
            const std::vector<double> means = means_of(c, m.name);
            if (std::ranges::all_of(means, [](double v) { return v == 0 || std::isnan(v); })) {
                continue;
            }
            const auto pair = std::ranges::find_if(c.metrics, [&](const auto& p) {
                return p.metric == m.name && p.a == 0 && p.b == 1;
            });
            table.add(m.name, m.name, means, pair == c.metrics.end() ? nullptr : &*pair);
        }
    }
    table.print();
}

// "B - A: +1.50 points, 95 % interval +1.42 points to +1.58 points".
std::string difference_with_interval(const Comparison& c, const MetricComparison& m) {
    // Enough of them to tell what a verdict stands on from nothing.
    constexpr double shown_with_two = 1e-4;
    const double size = std::abs(m.pairs.difference);
    const int decimals = size > 0 && size < shown_with_two ? 5 : 2;
    return fmt::format("{} - {}: {}, {:.3g} % interval {}", c.arms[m.b].name, c.arms[m.a].name,
                       difference_text(m.metric, m.pairs.difference, decimals),
                       100 * m.pairs.confidence, interval_text(m, decimals));
}

// Its replicas may differ: something fails, or jobs come, as luck has it.
bool hangs_on_luck(const Scenario& s) {
    const auto breaks = [](const StoreSetup& store) {
        const auto& f = store.failures;
        return f &&
               f->drive.rate.per_second + f->server.rate.per_second + f->box.rate.per_second > 0;
    };
    const auto fails = [](const WorldJobKind& kind) {
        return kind.own_failure_rate_per_gpu.per_second > 0;
    };
    const bool jobs = s.world && (std::ranges::any_of(s.world->sources, drawn_at_random) ||
                                  std::ranges::any_of(s.world->spec.kinds, fails));
    return jobs || strike_rate(s).per_second > 0 || strike_rate_per_job(s).per_second > 0 ||
           !s.network_faults.causes.empty() ||
           (s.power.pump && s.power.pump->failure_rate.per_second > 0) ||
           std::ranges::any_of(s.stores, breaks);
}

// In what share of replicas two that were equal in all may differ, at 95 %: the rule of three. None: they
// are not equal, or nothing is drawn.
std::optional<double> may_differ_in(const Comparison& c, const MetricComparison& m) {
    const bool drawn = hangs_on_luck(c.arms[m.a].scenario) || hangs_on_luck(c.arms[m.b].scenario);
    if (m.pairs.verdict != Verdict::equal || !drawn) return std::nullopt;
    return std::min(1.0, 3 / static_cast<double>(m.pairs.pairs));
}

// "B over A  (goodput B - A: +1.50 points, ...)"; what it takes when it is open.
std::string verdict_text(const Comparison& c, const MetricComparison& m) {
    const PairedComparison& p = m.pairs;
    const std::string& a = c.arms[m.a].name;
    const std::string& b = c.arms[m.b].name;
    const std::string numbers = fmt::format("{} {}", m.metric, difference_with_interval(c, m));
    switch (p.verdict) {
        case Verdict::first:
        case Verdict::second: {
            const bool first = p.verdict == Verdict::first;
            return fmt::format("{} over {}  ({})", coloured(first ? a : b, Colour::green),
                               first ? b : a, numbers);
        }
        case Verdict::equal: {
            const std::string same =
                fmt::format("{} is the same in each of the {} replicas", m.metric, p.pairs);
            if (!may_differ_in(c, m)) return fmt::format("{} and {} are equal: {}", a, b, same);
            return fmt::format(
                "no difference between {} and {} was seen: {}; what comes less than "
                "3 times in as many is not excluded",
                a, b, same);
        }
        case Verdict::undecided:
            break;
    }
    std::string more = p.pairs == 0  ? "; --metric takes another"
                       : p.pairs < 2 ? "; an interval takes two replicas or more"
                                     : "; no number of replicas in reach would settle it";
    if (cost_metric(m.metric) && p.pairs > 1) more = "; prices, or too few replicas, leave it open";
    if (p.pairs_to_settle) {
        more = fmt::format(
            "; about {} more replicas would settle it",
            grouped(static_cast<double>(*p.pairs_to_settle) - static_cast<double>(p.pairs)));
    }
    return fmt::format("{} between {} and {}  ({}{})", coloured("undecided", Colour::yellow), a, b,
                       numbers, more);
}

// Where two designs get the same done, what they cost is what is left to choose by.
void print_money_beside(const Comparison& c, const MetricComparison& decided) {
    static constexpr std::array money = {"cost_per_work", "cost_per_1e12_tokens",
                                         "cost_per_goodput_gpu_hour"};
    for (const char* metric : money) {
        for (const MetricComparison& m : c.metrics) {
            if (m.a != decided.a || m.b != decided.b || m.metric != metric) continue;
            if (m.pairs.difference == 0 || !std::isfinite(m.pairs.difference)) return;
            const bool second = m.pairs.difference < 0;
            fmt::print("    but {} costs less: {} {}{}; --metric {} decides by it\n",
                       c.arms[second ? decided.b : decided.a].name, metric,
                       difference_text(m.metric, -std::abs(m.pairs.difference)),
                       m.pairs.verdict == Verdict::undecided ? " at typical prices" : "", metric);
            return;
        }
    }
}

// What the metric that decides says nothing of: goodput is a share of the GPU time, and who has other
// GPUs can have more of it and get less done.
void print_contradictions(const Comparison& c, const MetricComparison& decided) {
    if (decided.pairs.verdict == Verdict::equal && !cost_metric(decided.metric)) {
        return print_money_beside(c, decided);
    }
    if (decided.pairs.verdict != Verdict::first && decided.pairs.verdict != Verdict::second) return;
    static constexpr std::array results = {"tokens",   "wall_time", "cost_per_1e12_tokens",
                                           "jct_mean", "goodput",   "jobs_completed"};
    const bool first = decided.pairs.verdict == Verdict::second;  // who wins those
    std::vector<std::string> others;
    for (const MetricComparison& m : c.metrics) {
        if (m.a != decided.a || m.b != decided.b || m.metric == decided.metric) continue;
        if (std::ranges::find(results, m.metric) == results.end()) continue;
        if (m.pairs.verdict != (first ? Verdict::first : Verdict::second)) continue;
        others.push_back(
            fmt::format("{} ({})", m.metric, difference_text(m.metric, m.pairs.difference)));
    }
    if (others.empty()) return;
    fmt::print("    but {} over {} by {}; --metric says which decides\n",
               c.arms[first ? decided.a : decided.b].name,
               c.arms[first ? decided.b : decided.a].name, fmt::join(others, " and "));
}

// How many replicas two designs with luck of their own would take.
std::string effort_text(double times) {
    constexpr double shown_max = 1e4;
    constexpr double digits_matter = 100;
    if (times > shown_max) return "more than 10,000 times as many";
    const std::string shown = times < digits_matter ? fmt::format("{:.2g}", times) : grouped(times);
    return shown == "1" ? "as many" : fmt::format("about {} times as many", shown);
}

// By what the designs are judged, and why where nobody has said so.
void print_decided_by(const Comparison& c) {
    const DecidingMetric& by = c.decided_by;
    fmt::print("\n  decided by {}, {} is better{}{}\n", coloured(by.metric, Colour::bold),
               better_name(by.better), by.why.empty() ? "" : ": ", by.why);
}

void print_verdict(const Comparison& c) {
    const std::vector<MetricComparison> pairs = c.verdicts();
    print_decided_by(c);
    for (const MetricComparison& m : pairs) {
        fmt::print("  {}\n", verdict_text(c, m));
        print_contradictions(c, m);
    }
    if (c.arms.size() > 2) {
        std::vector<std::string> names;
        for (const std::size_t i : c.unbeaten()) names.push_back(c.arms[i].name);
        const auto best = c.winner();
        fmt::print("  {}\n", best ? fmt::format("{} beats all others by {}",
                                                coloured(c.arms[*best].name, Colour::green),
                                                c.decided_by.metric)
                                  : fmt::format("no arm beats all others by {}; unbeaten: {}",
                                                c.decided_by.metric, fmt::join(names, ", ")));
        fmt::print(
            "  {} pairs of arms, so each interval is at {:.3g} % (Bonferroni): all hold together "
            "at 95 %\n",
            pairs.size(), 100 * c.confidence);
    }
    const PairedComparison& only = pairs[0].pairs;
    if (c.arms.size() == 2 && only.pairs > 1 && only.verdict != Verdict::equal &&
        !cost_metric(c.decided_by.metric)) {
        fmt::print(
            "  {} pairs on the same random numbers, correlation {:.3f}: unpaired it takes {}\n",
            only.pairs, only.correlation, effort_text(only.unpaired_effort));
    }
}

Json arm_json(const ComparedArm& arm) {
    Json ledger = Json::object();
    for (std::size_t i = 0; i < category_count; ++i) {
        ledger[std::string(category_name(static_cast<Category>(i)))] = arm.sums.ledger[i];
    }
    Json out = {{"name", arm.name},
                {"scenario", arm.file},
                {"settings", arm.settings},
                {"title", arm.scenario.title},
                {"digest", arm.sums.digest},
                {"complete", arm.sums.worst == Ending::complete && arm.limits.empty()},
                {"metrics", metrics_json(arm.sums.metrics)},
                {"ledger", ledger}};
    if (arm.stuck) out["stuck"] = stuck_json(*arm.stuck);
    return out;
}

Json pair_json(const Comparison& c, const MetricComparison& m) {
    const PairedComparison& p = m.pairs;
    const std::optional<double> rare = may_differ_in(c, m);
    return {{"metric", m.metric},
            {"unit", unit_of(m.metric)},
            {"a", c.arms[m.a].name},
            {"b", c.arms[m.b].name},
            {"better", better_name(m.better)},
            {"pairs", p.pairs},
            {"mean_a", json_number(p.mean_a)},
            {"mean_b", json_number(p.mean_b)},
            {"difference", json_number(p.difference)},
            {"interval", ends_json(p.interval)},
            {"confidence", p.confidence},
            {"correlation", p.correlation},
            {"verdict", verdict_name(p.verdict)},
            {"may_differ_in", rare ? Json(*rare) : Json(nullptr)},
            {"pairs_to_settle", p.pairs_to_settle ? Json(*p.pairs_to_settle) : Json(nullptr)}};
}

}  // namespace

void print_comparison(const Comparison& c) {
    print_arms(c);
    print_differences(c);
    static constexpr std::array headline = {
        "goodput", "ettr", "mfu", "mfu_step", "tokens", "tokens_per_day", "steps", "wall_time",
        "step_time", "interruptions", "recovery_per_interruption", "checkpoint_stall_time",
        // Clusters of many jobs have these.
        "utilisation", "occupancy", "jobs_completed", "wait_mean", "wait_p95", "jct_mean",
        "jct_p95", "bounded_slowdown_mean", "preemptions"};
    print_metrics(c, ArmTable(c, ""), [&](const MetricSummary& m) {
        return (m.name == c.decided_by.metric && !unit_of(m.name).starts_with("USD")) ||
               contains(headline, m.name);
    });
    print_ledger(c);
    const std::string middle = middle_of_money(c.arms[0].scenario.replicas);
    print_metrics(c, ArmTable(c, "cost, typical prices", middle.c_str()),
                  [](const MetricSummary& m) { return unit_of(m.name).starts_with("USD"); });
    const bool priced = std::ranges::any_of(
        c.arms, [](const ComparedArm& arm) { return arm.scenario.cost.has_value(); });
    if (!priced) {
        fmt::print("\n  {}\n", coloured("without prices: no scenario has a [cost]", Colour::dim));
    }
    print_verdict(c);
    if (c.estimates) {
        const MetricComparison& front = c.front_runners();
        print_verdict_estimates(*c.estimates, c.arms[front.a].name, c.arms[front.b].name);
        if (c.estimates->default_ranges) print_default_range();
    }
}

std::string comparison_json(const Comparison& c, const std::string& version) {
    const Json differs = json_array(differences_of(c), [](const DifferingKey& key) -> Json {
        const auto value = [](const std::string& v) { return v.empty() ? Json() : Json(v); };
        return {{"key", key.path}, {"values", json_array(key.values, value)}};
    });
    Json pairs = json_array(c.metrics, [&](const MetricComparison& m) { return pair_json(c, m); });
    Json ledger = Json::array();
    for (std::size_t i = 0; i < category_count; ++i) {
        const auto category = static_cast<Category>(i);
        for (std::size_t b = 1; b < c.arms.size(); ++b) {
            const PairedComparison p = compare_category(c.arms[0], c.arms[b], category);
            ledger.push_back({{"category", category_name(category)},
                              {"a", c.arms[0].name},
                              {"b", c.arms[b].name},
                              {"difference", p.difference},
                              {"interval", ends_json(p.interval)}});
        }
    }
    const auto best = c.winner();
    Json unbeaten = json_array(c.unbeaten(), [&](const std::size_t i) { return c.arms[i].name; });
    Json out = {{"version", version},
                {"seed", c.arms[0].scenario.seed},
                {"replicas", c.arms[0].sums.replicas},
                {"arms", json_array(c.arms, arm_json)},
                {"differs", differs},
                {"metric", c.decided_by.metric},
                {"better", better_name(c.decided_by.better)},
                {"why_this_metric", c.decided_by.why},
                {"verdict", best ? Json(c.arms[*best].name) : Json(nullptr)},
                {"unbeaten", unbeaten},
                {"correction", c.arms.size() > 2 ? "bonferroni" : "none"},
                {"comparisons", pairs},
                {"ledger", ledger}};
    if (c.estimates) {
        const MetricComparison& front = c.front_runners();
        out["estimates"] =
            verdict_estimates_json(*c.estimates, c.arms[front.a].name, c.arms[front.b].name);
    }
    return one_line(out);
}

}  // namespace railyard
