#include "tools/study/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "sim/fingerprint.h"
#include "sim/parallel.h"
#include "tools/program/lists.h"
#include "tools/program/program.h"

namespace railyard {

namespace {

TrialStep step_of(const Scenario& s) {
    TrialStep out;
    out.error = s.step_error;
    out.memory_capacity = static_cast<double>(s.node.gpu.usable_memory.count());
    const auto tokens = static_cast<double>(s.plan.global_batch * s.plan.sequence_length);
    out.model_flops = model_flops(s.model, s.plan);
    const double masked = attended_tokens(s.model, s.plan.sequence_length) *
                          (s.model.query_width() + s.model.value_width()) *
                          count_layers(s.model).with(Mixer::attention);
    out.causal_flops = out.model_flops - 3 * masked * tokens;
    Communicators groups(s.collective_constants, s.node);
    for (const PathPart& part :
         critical_path(s.model, s.plan, groups, s.parameter_bytes, s.optimizer_traffic)) {
        if (part.seconds > 0) out.parts.emplace_back(part.name, part.seconds);
    }
    return out;
}

Trial run_one(const TrialOptions& options, const ScenarioChanges& changes, unsigned threads) {
    Trial trial;
    std::optional<Scenario> scenario;
    try {
        ScenarioChanges with_phases = changes;
        with_phases.phases = true;
        with_phases.threads = threads;
        scenario = load_scenario(options.text, options.file, with_phases);
    } catch (const ScenarioError& error) {
        trial.problem = error.what();
        trial.problems = error.diagnostics();
        return trial;
    }
    if (!scenario->no_path.empty()) {
        trial.problem = "the job can't take its first step: " + scenario->no_path;
        return trial;
    }
    if (options.replicas > 0) scenario->replicas = std::min(scenario->replicas, options.replicas);
    trial.memory = scenario->memory;
    if (options.steps && !scenario->model.name.empty()) trial.step = step_of(*scenario);
    trial.causes = loss_causes(*scenario);
    trial.draws = scenario->draws.size();
    trial.work = work_of(*scenario);
    CampaignOptions campaign;
    campaign.threads = threads;
    campaign.cancelled = options.cancelled;
    Fingerprint all;  // of everything that a run prints about its replicas
    campaign.finished = [&](const ReplicaResult& r) {
        all.add(r.outcome);
        for (const Metric& metric : r.metrics) all.add(metric.value);
    };
    const CampaignResult result = run_campaign(*scenario, campaign);
    if (result.cancelled) throw Interrupted();
    for (const std::string& metric : options.metrics) {
        const MetricTable::Column* of_replicas = result.values.find(metric);
        if (of_replicas == nullptr && options.lacking) {
            trial.values.emplace_back();
            continue;
        }
        if (of_replicas == nullptr) {
            throw ScenarioError(
                fmt::format("a variant of the scenario has no metric '{}'", metric));
        }
        trial.values.push_back(paired_values(*of_replicas));
    }
    if (options.prices && scenario->cost) {
        trial.cost = study_costs(scenario->cost->plan, result.uses);
    }
    for (std::size_t i = 0; i < result.interruptions.size(); ++i) {
        trial.interruptions.emplace_back(scenario->causes[i].name, result.interruptions[i]);
    }
    trial.ledger = result.ledger;
    trial.fingerprint = all.value();
    trial.ending = result.ending();
    return trial;
}

}  // namespace

PairedComparison compare_trials(const Trial& a, const Trial& b, std::size_t metric,
                                const std::string& name) {
    if (const CostMetric* money = cost_metric(name)) {
        return compare_money({*a.cost, a.values[metric], a.draws},
                             {*b.cost, b.values[metric], b.draws}, *money, 0.95);
    }
    return compare_values(a, b, metric, better_of(name));
}

PairedComparison compare_values(const Trial& a, const Trial& b, std::size_t metric, Better better) {
    const std::size_t pairs = std::min(a.values[metric].size(), b.values[metric].size());
    return compare_paired(std::span(a.values[metric]).first(pairs),
                          std::span(b.values[metric]).first(pairs), better, 0.95,
                          dealt_over(pairs, draws_of_pairs(a.draws, b.draws)));
}

Summary summarise_change(const Trial& after, const Trial& before, std::size_t metric) {
    const std::vector<double>& values = after.values[metric];
    return summarise_paired(values, before.values[metric],
                            dealt_over(values.size(), draws_of_pairs(after.draws, before.draws)));
}

std::vector<std::optional<Trial>> run_trials(const TrialOptions& options,
                                             const std::vector<ScenarioChanges>& variants) {
    std::vector<std::optional<Trial>> trials(variants.size());
    const auto count = static_cast<unsigned>(variants.size());
    const unsigned threads_each = count > 0 ? std::max(1U, options.threads / count) : 1;
    std::mutex mutex;
    std::int64_t done = 0;
    parallel_for(variants.size(), options.threads, options.cancelled, [&](std::size_t i) {
        try {
            trials[i] = run_one(options, variants[i], threads_each);
        } catch (const Interrupted&) {
            return;
        }
        const std::lock_guard lock(mutex);
        ++done;
        if (options.progress) options.progress(done, std::ssize(variants));
    });
    return trials;
}

std::vector<std::vector<double>> means_with(const TrialOptions& options,
                                            const ScenarioChanges& changes,
                                            const std::vector<Perturbations>& variants) {
    std::vector<ScenarioChanges> changed(variants.size(), changes);
    for (std::size_t i = 0; i < variants.size(); ++i) changed[i].perturbations = variants[i];
    std::vector<std::vector<double>> out;
    for (const std::optional<Trial>& trial : run_trials(options, changed)) {
        if (!trial) break;
        std::vector<double>& means = out.emplace_back();
        for (std::size_t m = 0; trial->possible() && m < options.metrics.size(); ++m) {
            means.push_back(trial->summary(m).mean);
        }
    }
    return out;
}

DrawRange range_of_steps(const Scenario& s) {
    return range_of_draws(
        mapped(s.draws, [](const NetworkDraw& draw) { return seconds(draw.step.duration()); }));
}

bool takes_first_step(const Scenario& scenario) {
    if (scenario.no_path.empty()) return true;
    fmt::print(stderr, "railyard: stuck: the job can't take its first step: {}\n",
               scenario.no_path);
    return false;
}

bool can_start(const Scenario& scenario) {
    print_warnings(scenario.warnings);
    return takes_first_step(scenario);
}

int complain_of_limits(const std::vector<LimitReached>& limits) {
    for (const LimitReached& limit : limits) {
        fmt::print(stderr, "railyard: limit: {}: this result is partial\n    {}\n", limit.what,
                   limit.help);
    }
    return limits.empty() ? exit_ok : exit_limit;
}

void warn_of_deadlocks(const std::vector<Deadlock>& deadlocks) {
    constexpr std::size_t named_max = 5;
    for (std::size_t i = 0; i < std::min(named_max, deadlocks.size()); ++i) {
        const Deadlock& d = deadlocks[i];
        fmt::print(stderr, "railyard: warning: {}{}replica {}: {}\n", visible(d.design),
                   d.design.empty() ? "" : ": ", d.replica, d.report);
    }
    if (deadlocks.size() > named_max) {
        fmt::print(stderr, "railyard: warning: and in {} more designs jobs wait for ever\n",
                   deadlocks.size() - named_max);
    }
}

Metric find_metric(const Scenario& scenario, const std::string& name) {
    const ReplicaResult replica = run_replica(scenario, 0, false);
    std::vector<std::string> names;
    for (const Metric& metric : replica.metrics) {
        if (metric.name == name) return metric;
        names.push_back(metric.name);
    }
    const std::string near = did_you_mean(name, names);
    throw ScenarioError(
        fmt::format("there is no metric '{}'", name),
        near.empty() ? "'railyard run SCENARIO.toml --json' prints all of them" : near);
}

}  // namespace railyard
