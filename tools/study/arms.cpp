#include "tools/study/arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/error.h"
#include "sim/text.h"
#include "tools/program/lists.h"

namespace railyard {

namespace {

// Parts between separators that stand outside of quotes and brackets.
std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts(1);
    char quote = 0;
    int depth = 0;
    bool escaped = false;
    for (const char c : text) {
        if (quote != 0) {
            if (c == quote && !escaped) quote = 0;
            escaped = quote == '"' && c == '\\' && !escaped;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '[' || c == '{') {
            ++depth;
        } else if (c == ']' || c == '}') {
            --depth;
        } else if (c == separator && depth == 0) {
            parts.emplace_back();
            continue;
        }
        parts.back() += c;
    }
    if (quote != 0 || depth != 0) {
        throw ScenarioError(
            fmt::format("'{}': {}", visible(text),
                        quote != 0 ? "a quote is not closed" : "brackets don't match"));
    }
    for (std::string& part : parts) part = std::string(trimmed(part));
    return parts;
}

// "kmin = 100 KB" of fabric.compute.ecn.kmin.
std::string label(const std::string& key, const std::string& value) {
    return key.substr(key.rfind('.') + 1) + " = " + value;
}

Arm named_arm(const std::string& text) {
    const std::size_t colon = text.find(':');
    const std::size_t equals = text.find('=');
    if (colon == std::string::npos || colon > equals || trimmed(text.substr(0, colon)).empty()) {
        throw ScenarioError(fmt::format("--arm '{}' has no name", text),
                            "--arm \"NAME: KEY=VALUE; KEY=VALUE\"");
    }
    Arm arm{visible(trimmed(text.substr(0, colon))), {}};
    for (const std::string& setting : split(text.substr(colon + 1), ';')) {
        if (!setting.empty()) arm.settings.push_back(setting);
    }
    return arm;
}

std::string length_text(const Scenario& s) {
    return s.duration > Duration{} ? to_text(s.duration) : "until its job is done";
}

bool within(double a, double b, double one) {
    return std::abs(a - b) < one;
}

// As much time in steps, or as many tokens: a faster step does more in the one, a larger one needs fewer for
// the other. Each to a whole step.
bool same_training(const Scenario& a, const Scenario& b) {
    const double steps_a = static_cast<double>(a.job.target_steps);
    const double steps_b = static_cast<double>(b.job.target_steps);
    const double step_a = seconds(a.job.step.duration());
    const double step_b = seconds(b.job.step.duration());
    if (within(steps_a * step_a, steps_b * step_b, std::max(step_a, step_b))) return true;
    const double tokens_a = static_cast<double>(a.tokens_per_step);
    const double tokens_b = static_cast<double>(b.tokens_per_step);
    return tokens_a > 0 && tokens_b > 0 &&
           within(steps_a * tokens_a, steps_b * tokens_b, std::max(tokens_a, tokens_b));
}

// With one file --set is of the second design alone.
std::string same_length_help(const ComparedArm& a, const ComparedArm& b) {
    if (a.file == b.file) {
        return fmt::format("run.duration = \"30 day\" in {} gives all of them the same length",
                           a.file);
    }
    return "--set run.duration=\"30 day\" gives all of them the same length";
}

void check_pair(const ComparedArm& a, const ComparedArm& b) {
    if ((a.scenario.world == nullptr) != (b.scenario.world == nullptr)) {
        const bool a_many = a.scenario.world != nullptr;
        throw ScenarioError(
            fmt::format("{} has many jobs and {} has one: nothing in them can be paired",
                        (a_many ? a : b).name, (a_many ? b : a).name),
            "compare scenarios that both have [scheduler], or neither");
    }
    if (a.scenario.seed != b.scenario.seed) {
        throw ScenarioError(
            fmt::format(
                "{} has seed {} and {} has seed {}: on other random numbers nothing can be paired",
                a.name, a.scenario.seed, b.name, b.scenario.seed),
            "--seed N gives all of them the same");
    }
    if (a.scenario.duration != b.scenario.duration) {
        throw ScenarioError(
            fmt::format("{} runs {} and {} runs {}: replicas of different length can't be paired",
                        a.name, length_text(a.scenario), b.name, length_text(b.scenario)),
            same_length_help(a, b));
    }
    // Many jobs have run when the last has, whatever that takes: their steps are their own.
    if (a.scenario.world != nullptr) return;
    if (a.scenario.duration == Duration{} && !same_training(a.scenario, b.scenario)) {
        throw ScenarioError(
            fmt::format("{} trains {} steps until it is done and {} trains {}: replicas of "
                        "different length can't be paired",
                        a.name, a.scenario.job.target_steps, b.name, b.scenario.job.target_steps),
            same_length_help(a, b));
    }
}

std::vector<std::size_t> luck_of_pairs(const ComparedArm& a, const ComparedArm& b) {
    return dealt_over(static_cast<std::size_t>(a.sums.replicas),
                      draws_of_pairs(a.scenario.draws.size(), b.scenario.draws.size()));
}

// Whether nothing but prices and how they are paid is another in some of them, and all are priced.
bool differ_in_money_alone(const std::vector<ComparedArm>& arms) {
    std::vector<std::string> rest;
    std::vector<std::string> all;
    for (const ComparedArm& arm : arms) {
        if (!arm.scenario.cost) return false;
        Value root = arm.document.root;
        std::erase_if(root.members, [](const Member& m) { return m.key == "title"; });
        all.push_back(to_toml(root));
        std::erase_if(root.members,
                      [](const Member& m) { return m.key == "cost" || m.key == "quote"; });
        rest.push_back(to_toml(root));
    }
    const auto others = [](const std::vector<std::string>& texts) {
        return std::ranges::any_of(texts, [&](const std::string& t) { return t != texts[0]; });
    };
    return others(all) && !others(rest);
}

}  // namespace

std::vector<Arm> arms_of(const std::vector<std::string>& varied,
                         const std::vector<std::string>& named) {
    std::vector<Arm> arms = mapped(named, named_arm);
    if (arms.empty() && !varied.empty()) arms.emplace_back();
    for (const std::string& text : varied) {
        const std::size_t equals = text.find('=');
        const std::string key(trimmed(std::string_view(text).substr(0, equals)));
        if (equals == std::string::npos || key.empty()) {
            throw ScenarioError(fmt::format("--vary '{}': expected KEY=V1,V2", text));
        }
        std::vector<Arm> combined;
        for (const Arm& arm : arms) {
            for (const std::string& value : split(text.substr(equals + 1), ',')) {
                combined.push_back(arm);
                Arm& last = combined.back();
                last.name += (last.name.empty() ? "" : ", ") + label(key, value);
                last.settings.push_back(key + "=" + value);
            }
        }
        arms = std::move(combined);
    }
    return arms;
}

ComparedArm load_arm(std::string name, std::string file, std::vector<std::string> settings,
                     const std::shared_ptr<WindowCache>& windows) {
    ComparedArm arm{std::move(name), std::move(file), {}, std::move(settings)};
    arm.toml = read_file(arm.file);
    ScenarioChanges changes;
    changes.settings = arm.settings;
    changes.windows = windows;
    changes.phases = true;
    arm.scenario = load_scenario(arm.toml, arm.file, changes);
    arm.document = document_with(arm.toml, arm.file, arm.settings);
    return arm;
}

void check_pairs(const std::vector<ComparedArm>& arms) {
    for (std::size_t i = 1; i < arms.size(); ++i) check_pair(arms[0], arms[i]);
}

DecidingMetric deciding_metric(const std::vector<ComparedArm>& arms) {
    const auto designs = mapped(arms, [](const auto& arm) { return work_of(arm.scenario); });
    if (!differ_in_money_alone(arms)) return deciding_metric(designs);
    DecidingMetric out = deciding_cost(designs);
    out.why = "the designs differ in money alone, and " + out.why;
    return out;
}

void find_common_metric(const std::vector<ComparedArm>& arms, const std::string& wanted) {
    std::vector<std::string> names;
    for (const ComparedArm& arm : arms) {
        const std::vector<std::string> own = names_of(run_replica(arm.scenario, 0, false).metrics);
        if (&arm == &arms[0]) names = own;
        std::erase_if(names, [&](const std::string& name) { return !contains(own, name); });
    }
    if (!contains(names, wanted)) {
        const std::string near = did_you_mean(wanted, names);
        throw ScenarioError(
            fmt::format("--metric: there is no metric '{}' that all designs have", wanted),
            near.empty() ? "--json without --metric prints all of them" : near);
    }
}

void share_replicas(std::vector<ComparedArm>& arms) {
    std::int64_t replicas = arms[0].scenario.replicas;
    for (const ComparedArm& arm : arms) replicas = std::min(replicas, arm.scenario.replicas);
    for (ComparedArm& arm : arms) arm.scenario.replicas = replicas;
}

bool run_arms(std::vector<ComparedArm>& arms, const CampaignOptions& like, SavedRun& saved) {
    const std::int64_t replicas = arms[0].scenario.replicas;
    const auto total = std::ssize(arms) * replicas;
    std::int64_t before = 0;
    for (std::size_t i = 0; i < arms.size(); ++i) {
        ComparedArm& arm = arms[i];
        CampaignOptions options = like;
        options.progress = [&](std::int64_t done, std::int64_t) {
            like.progress(before + done, total);
        };
        options.finished = [&](const ReplicaResult& r) { saved.add(i, r); };
        CampaignResult result = run_campaign(arm.scenario, options);
        saved.finish_point(i, result);
        if (result.cancelled) {
            saved.finish("interrupted", nullptr);
            return false;
        }
        before += replicas;
        if (arm.scenario.cost) {
            arm.cost = study_costs(arm.scenario.cost->plan, result.uses);
            carry_prices(*arm.cost, result.metrics);
        }
        arm.limits = std::move(result.limits);
        arm.stuck = std::move(result.stuck);
        arm.sums = std::move(result);
    }
    return true;
}

std::vector<MetricComparison> compare_arms(const std::vector<ComparedArm>& arms, std::size_t a,
                                           std::size_t b, const std::string& verdict_on,
                                           Better better, double confidence) {
    std::vector<MetricComparison> out;
    for (const MetricTable::Column& m : arms[a].sums.values.columns()) {
        const MetricTable::Column* other = arms[b].sums.values.find(m.name);
        if (other == nullptr || m.plain != other->plain) continue;
        const bool decides = m.name == verdict_on;
        const Better direction = decides ? better : better_of(m.name);
        const double sure = decides ? confidence : 0.95;
        const std::vector<double> of_a = paired_values(m);
        const std::vector<double> of_b = paired_values(*other);
        const CostMetric* money = cost_metric(m.name);
        out.push_back(
            {m.name, direction, a, b,
             money
                 ? compare_money({*arms[a].cost, of_a, arms[a].scenario.draws.size()},
                                 {*arms[b].cost, of_b, arms[b].scenario.draws.size()}, *money, sure)
                 : compare_paired(of_a, of_b, direction, sure, luck_of_pairs(arms[a], arms[b]))});
    }
    return out;
}

std::vector<MetricComparison> compare_all(const std::vector<ComparedArm>& arms,
                                          const DecidingMetric& by, double confidence) {
    std::vector<MetricComparison> out;
    for (std::size_t a = 0; a < arms.size(); ++a) {
        for (std::size_t b = a + 1; b < arms.size(); ++b) {
            const auto pair = compare_arms(arms, a, b, by.metric, by.better, confidence);
            out.insert(out.end(), pair.begin(), pair.end());
        }
    }
    return out;
}

PairedComparison compare_category(const ComparedArm& a, const ComparedArm& b, Category category) {
    const auto c = static_cast<std::size_t>(category);
    return compare_paired(a.sums.shares[c], b.sums.shares[c],
                          category == Category::productive ? Better::higher : Better::lower, 0.95,
                          luck_of_pairs(a, b));
}

}  // namespace railyard
