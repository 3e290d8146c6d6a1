#include "tools/study/design_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "tools/study/design_search.h"

namespace railyard {

double named_value(std::span<const Metric> metrics, std::string_view name) {
    const Metric* found = find_named(metrics, name);
    return found == nullptr ? NAN : found->value;
}

namespace {

std::string watts_text(double watts) {
    return watts >= 1e6 ? fmt::format("{:.3g} MW", watts * 1e-6)
                        : fmt::format("{:.3g} kW", watts * 1e-3);
}
std::string count_text(double count) {
    return fmt::format("{:.0f}", count);
}
std::string time_text_of(double s) {
    return to_text(from_seconds(s));
}

// What a design needs of something, and how much of it there may be.
struct Limit {
    const char* key;
    double most;
    double (*need)(const DesignQuestion&, const DesignFacts&);
    std::string (*text)(double);
};

double years_of(const DesignQuestion& q) {
    return q.over_s / seconds_per_year;
}

std::vector<Limit> limits_of(const DesignQuestion& q) {
    std::vector<Limit> out;
    const DesignLimits& l = q.limits;
    const auto capital = [](const DesignQuestion&, const DesignFacts& f) { return f.capital; };
    const auto power = [](const DesignQuestion&, const DesignFacts& f) { return f.power; };
    const auto racks = [](const DesignQuestion&, const DesignFacts& f) { return f.racks; };
    const auto spend = [](const DesignQuestion& question, const DesignFacts& f) {
        return f.cost_per_year_least * years_of(question);
    };
    const auto time = [](const DesignQuestion& question, const DesignFacts& f) {
        const double a_day = f.tokens_per_day_most * f.utilisation;
        return a_day > 0 ? question.tokens / a_day * seconds_per_day : 0;
    };
    if (l.capital) out.push_back({"capital", *l.capital, capital, money_text});
    if (l.power) out.push_back({"power", *l.power, power, watts_text});
    if (l.racks) out.push_back({"racks", *l.racks, racks, count_text});
    if (l.spend) out.push_back({"spend", *l.spend, spend, money_text});
    if (l.deadline_s) out.push_back({"deadline", *l.deadline_s, time, time_text_of});
    return out;
}

[[noreturn]] void fail(const DesignQuestion& q, const std::string& key, std::string message,
                       std::string help) {
    throw ScenarioError(
        std::vector<Diagnostic>{{q.file, {}, key, std::move(message), std::move(help)}});
}

// The possible design that needs the least of something.
const SearchedDesign* nearest(const DesignQuestion& q, const std::vector<SearchedDesign>& designs,
                              const Limit& limit) {
    const SearchedDesign* out = nullptr;
    for (const SearchedDesign& d : designs) {
        if (!d.facts.problem.empty()) continue;
        if (out == nullptr || limit.need(q, d.facts) < limit.need(q, out->facts)) out = &d;
    }
    return out;
}

void fail_for_one(const DesignQuestion& q, const std::vector<SearchedDesign>& designs,
                  const Limit& limit) {
    const SearchedDesign* least = nearest(q, designs, limit);
    const double need = limit.need(q, least->facts);
    std::string what;
    if (std::string_view(limit.key) == "deadline") {
        what = fmt::format("it takes training {:.3g} times as fast, or a deadline of {}",
                           need / limit.most, limit.text(need));
    } else {
        what = fmt::format("it takes {:.3g} times as much", need / limit.most);
    }
    const bool time = std::string_view(limit.key) == "deadline";
    fail(q, fmt::format("design.limits.{}", limit.key),
         fmt::format("no design keeps {}: the nearest, {}, needs {}{}", limit.text(limit.most),
                     visible(least->label), limit.text(need),
                     time ? " even if nothing ever fails" : ""),
         what);
}

// Two limits that some designs keep, each, and none both.
void fail_for_two(const DesignQuestion& q, const std::vector<SearchedDesign>& designs,
                  const std::vector<Limit>& limits) {
    const auto keeps = [&](const SearchedDesign& d, const Limit& limit) {
        return limit.need(q, d.facts) <= limit.most;
    };
    for (std::size_t a = 0; a < limits.size(); ++a) {
        for (std::size_t b = a + 1; b < limits.size(); ++b) {
            const SearchedDesign* near = nullptr;  // keeps a, and needs the least of b
            bool both = false;
            for (const SearchedDesign& d : designs) {
                if (!d.facts.problem.empty() || !keeps(d, limits[a])) continue;
                both |= keeps(d, limits[b]);
                if (near == nullptr ||
                    limits[b].need(q, d.facts) < limits[b].need(q, near->facts)) {
                    near = &d;
                }
            }
            if (both || near == nullptr) continue;
            fail(q, fmt::format("design.limits.{}", limits[a].key),
                 fmt::format("contradicts design.limits.{}: designs keep {} or {}, and none both",
                             limits[b].key, limits[a].text(limits[a].most),
                             limits[b].text(limits[b].most)),
                 fmt::format("of those that keep the first, {} is nearest: it needs {}",
                             visible(near->label), limits[b].text(limits[b].need(q, near->facts))));
        }
    }
}

}  // namespace

std::string broken_limit(const DesignQuestion& q, const DesignFacts& facts) {
    if (!facts.problem.empty()) return "";
    for (const Limit& limit : limits_of(q)) {
        if (limit.need(q, facts) > limit.most) return limit.key;
    }
    return "";
}

bool keeps_limits(const DesignQuestion& q, const DesignFacts& facts,
                  std::span<const Metric> metrics) {
    if (q.limits.deadline_s) {
        const DesignQuestion::Job job = *q.job();
        const double a_day = named_value(metrics, job.per_day) * facts.utilisation;
        const double time = job.amount / a_day * seconds_per_day;
        if (!(time <= *q.limits.deadline_s)) return false;
    }
    if (q.limits.spend) {
        const double spent = named_value(metrics, "cost_per_year") * years_of(q);
        if (!(spent <= *q.limits.spend)) return false;
    }
    return std::ranges::all_of(q.limits.metrics, [&](const MetricLimit& limit) {
        const double value = named_value(metrics, limit.metric);
        return limit.at_most ? value <= limit.value : value >= limit.value;
    });
}

std::vector<std::string> figure_names(const DesignQuestion& q) {
    std::vector<std::string> out;
    if (q.priced) out.emplace_back(q.job() ? "cost" : "cost a year");
    out.push_back(q.job() ? "days" : q.objective.name);
    out.emplace_back("power");
    return out;
}

std::vector<double> figures_of_replica(const DesignQuestion& q, const DesignFacts& facts,
                                       std::span<const Metric> metrics) {
    std::vector<double> out;
    const std::optional<DesignQuestion::Job> job = q.job();
    if (q.priced && job) {
        out.push_back(named_value(metrics, job->unit_cost) * job->amount * job->units);
    } else if (q.priced) {
        out.push_back(named_value(metrics, "cost_per_year"));
    }
    if (job) {
        out.push_back(job->amount / (named_value(metrics, job->per_day) * facts.utilisation));
    } else {
        const double figure =
            q.objective.of(named_value(metrics, q.objective.metric), facts.utilisation);
        out.push_back(q.objective.better == Better::higher ? -figure : figure);
    }
    out.push_back(facts.power);
    return out;
}

std::vector<double> least_figures(const DesignQuestion& q, const DesignFacts& facts) {
    if (q.tokens <= 0 || facts.tokens_per_day_mean_most <= 0) return {};
    std::vector<double> out;
    if (q.priced) {
        if (!facts.cost_per_1e12_mean_least) return {};
        out.push_back(*facts.cost_per_1e12_mean_least * q.tokens * 1e-12);
    }
    out.push_back(q.tokens / (facts.tokens_per_day_mean_most * facts.utilisation));
    out.push_back(facts.power);
    return out;
}

void check_limits(const DesignQuestion& q, const std::vector<SearchedDesign>& designs) {
    const auto possible = [](const SearchedDesign& d) { return d.facts.problem.empty(); };
    if (std::ranges::none_of(designs, possible)) {
        throw ScenarioError(
            fmt::format("{}: none of {} designs is possible", visible(q.file), designs.size()),
            fmt::format("the first, {}:\n{}", visible(designs.at(0).label),
                        designs.at(0).facts.problem));
    }
    const auto able = [&](const SearchedDesign& d) { return possible(d) && d.limit.empty(); };
    if (std::ranges::any_of(designs, able)) return;
    const std::vector<Limit> limits = limits_of(q);
    for (const Limit& limit : limits) {
        const SearchedDesign* least = nearest(q, designs, limit);
        if (limit.need(q, least->facts) > limit.most) fail_for_one(q, designs, limit);
    }
    fail_for_two(q, designs, limits);
    throw ScenarioError(fmt::format("{}: no design keeps all of [design.limits]", visible(q.file)),
                        "any two of them are kept by some design: relax one");
}

void check_metrics(const DesignQuestion& q, const std::set<std::string>& had) {
    if (had.empty()) return;  // nothing has run
    const std::vector<std::string> names(had.begin(), had.end());
    Diagnostics diagnostics;
    const auto check = [&](Position at, const std::string& path, const std::string& metric) {
        if (had.contains(metric)) return;
        const std::string near = did_you_mean(metric, names);
        diagnostics.error(
            q.file, std::move(at), path,
            fmt::format("no design has the metric '{}'", visible(metric)),
            near.empty() ? "'railyard run SCENARIO.toml --json' prints all of them" : near);
    };
    for (const MetricLimit& limit : q.limits.metrics) check(limit.at, limit.path, limit.metric);
    if (q.objective.name == q.objective.metric) check({}, "design.metric", q.objective.metric);
    diagnostics.raise_if_any();
}

void check_outcome(const DesignQuestion& q, const std::vector<SearchedDesign>& designs,
                   const std::vector<std::size_t>& field) {
    const SearchedDesign* nearest_one = nullptr;
    bool kept = !q.limits.open();
    bool differs = false;
    bool known = false;  // somebody has the figure
    std::optional<double> first;
    std::optional<double> cost;  // the cheaper of two that are alike is the answer
    for (const std::size_t i : field) {
        const SearchedDesign& d = designs[i];
        if (!d.ran() || !d.problem.empty()) {
            differs |= d.fate == Fate::bounded;
            continue;
        }
        const double value = d.mean();
        known |= std::isfinite(value);
        differs |= first && value != *first;
        if (!first) first = value;
        differs |= q.priced && cost && d.spent[0] != *cost;
        if (q.priced) cost = d.spent[0];
        kept |= d.kept_share() >= q.limits.probability;
        if (nearest_one == nullptr || d.kept_share() > nearest_one->kept_share()) nearest_one = &d;
    }
    if (nearest_one == nullptr) {
        throw ScenarioError(fmt::format("{}: no design runs to its end", visible(q.file)),
                            fmt::format("the first, {}: {}", visible(designs[field[0]].label),
                                        visible(designs[field[0]].problem)));
    }
    if (!known) {
        const bool work = q.objective.metric == "work_per_day" || q.work > 0;
        fail(q, "design.objective",
             fmt::format("no replica has the metric '{}'", visible(q.objective.metric)),
             work ? "jobs.kind.worth says what work counts"
                  : "'railyard run SCENARIO.toml --json' prints all of them");
    }
    if (!kept) {
        const std::string key = q.limits.deadline_s ? "deadline"
                                : q.limits.spend    ? "spend"
                                : q.limits.metrics[0].at_most
                                    ? "most." + q.limits.metrics[0].metric
                                    : "least." + q.limits.metrics[0].metric;
        fail(q, "design.limits." + key,
             fmt::format("no design keeps the limits with a probability of {:.3g}: the nearest, "
                         "{}, does in {:.3g} % of its replicas",
                         q.limits.probability, visible(nearest_one->label),
                         100 * nearest_one->kept_share()),
             q.limits.metrics.empty()
                 ? "a later deadline, more to spend, or a lower design.limits.probability"
                 : "a wider limit, a lower design.limits.probability, or a metric that replicas "
                   "have");
    }
    if (!differs && field.size() > 1) {
        fail(q, "design.objective",
             fmt::format("no design changes it: the {} is {:.6g} in all {} designs",
                         q.objective.name, *first, field.size()),
             "another objective, or axes that it hangs on");
    }
}

}  // namespace railyard
