#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "tools/cli/metric_text.h"
#include "tools/cli/prediction_text.h"
#include "tools/cli/run_text.h"
#include "tools/cli/terminal.h"
#include "tools/program/program.h"

namespace railyard {

namespace {

// What another cluster's failure rates leave open of a share of the time, through what failures take of it.
ModelError with_borrowed_rates(const ModelError& error, const ModelError& rates,
                               const CampaignResult& r) {
    const double kept = r.mean("ettr");
    if (rates.nine_tenths == 0 || !(kept > 0)) return error;
    const double lost =
        r.mean("interruptions") *
        (r.mean("lost_work_per_interruption") + r.mean("recovery_per_interruption")) /
        r.mean("wall_time");
    if (!(lost > 0)) return error;
    // So many times as often, failures take as much more beside what is kept.
    const auto more = [x = lost / kept](double rate) { return (1 + x * (1 + rate)) / (1 + x) - 1; };
    return {std::hypot(error.half, more(rates.half)),
            std::hypot(error.nine_tenths, more(rates.nine_tenths))};
}

// Which metrics have an interval of prediction. An error of the step is one of what is not productive in it:
// the wide side, goodput then goes as MFU does.
std::vector<Question> run_questions(const Scenario& s, const CampaignResult& r) {
    std::vector<Question> out;
    const auto ask = [&](const char* metric, const ModelError& error, const char* measure,
                         bool share = true) {
        const double mean = r.mean(metric);
        if (!std::isfinite(mean) || mean <= 0) return;
        out.push_back({metric, mean, r.values.find(metric)->values, error, measure, share});
    };
    if (s.world) {
        ask("goodput", {}, "");
        ask("utilisation", {}, "");
        return out;
    }
    const ModelError step = step_is_modelled(s) ? ModelError(s.step_error) : ModelError{};
    const char* measure = s.step_error.named ? "a measured step (job.step.time)"
                                             : "a measured step (job.step.time), or the software's "
                                               "name (job.software)";
    StandaloneCatalogue own = s.open_catalogue();
    const ModelError rates =
        s.of_another_cluster ? read_model_error(own.catalogue, "interruptions") : ModelError{};
    const char* failures = "the cluster's own failures (import xid, slurm_events)";
    // What a training loses to failures and to what nobody plans, and its step beside that.
    const ModelError ettr = read_model_error(own.catalogue, "ettr");
    const ModelError losses = with_borrowed_rates(ettr, rates, r);
    const ModelError both{std::hypot(step.half, losses.half),
                          std::hypot(step.nine_tenths, losses.nine_tenths)};
    const bool by_rates = losses.nine_tenths > std::numbers::sqrt2 * ettr.nine_tenths;
    const char* of_losses = by_rates ? failures : "a run of its kind";
    const char* of_both = losses.nine_tenths > step.nine_tenths ? of_losses : measure;
    ask("goodput", both, of_both);
    ask("ettr", losses, of_losses);
    // A count that may be none has no such interval.
    const auto* counted = r.values.find("interruptions");
    if (s.of_another_cluster && counted != nullptr &&
        std::ranges::none_of(counted->values, [](double count) { return count == 0; })) {
        ask("interruptions", rates, failures, false);
    }
    if (!s.model.name.empty()) {
        ask("mfu", both, of_both);
        ask("mfu_step", step, measure);
    }
    if (!s.stages.empty()) {
        ask("step_time", step, measure, false);
        if (has_an_end(s)) ask("wall_time", both, of_both, false);
    }
    return out;
}

}  // namespace

Prediction run_prediction(const Scenario& s, const CampaignResult& r, const TrialOptions& like,
                          ScenarioChanges changes) {
    const std::vector<Question> questions = run_questions(s, r);
    changes.one_draw = true;
    TrialOptions options = like;
    for (const Question& question : questions) options.metrics.push_back(question.name);
    const Answers answers = [&](const std::vector<Perturbations>& variants) {
        return means_with(options, changes, variants);
    };
    constexpr std::size_t of_many_jobs = 8;
    return predict(questions, s.estimates, s.world ? of_many_jobs : draws_of(s), s.seed, answers);
}

void print_other_clock(const Scenario& s, const CampaignResult& r, const std::string& text,
                       ScenarioChanges changes, unsigned threads) {
    if (s.checkpoint_clock.empty()) return;
    const bool wall = s.checkpoint_clock == "wall";
    changes.settings.push_back(fmt::format("job.checkpoint.clock={}", wall ? "training" : "wall"));
    std::optional<Scenario> loaded;
    try {
        loaded = load_scenario(text, s.file, changes);
    } catch (const Interrupted&) {
        return;
    }
    Scenario& other = *loaded;
    constexpr std::int64_t replicas_max = 8;
    other.replicas = std::min(r.replicas, replicas_max);
    CampaignOptions options;
    options.threads = threads;
    options.cancelled = &interrupted();
    const CampaignResult result = run_campaign(other, options);
    if (result.cancelled) return;
    double difference = 0;
    const std::vector<double>& goodput = r.values.find("goodput")->values;
    const std::vector<double>& others = result.values.find("goodput")->values;
    for (std::size_t i = 0; i < others.size(); ++i) {
        difference += (others[i] - goodput[i]) / static_cast<double>(others.size());
    }
    constexpr double worth_saying = 5e-5;
    if (std::abs(difference) < worth_saying) return;
    fmt::print(
        "\n  the checkpoint interval counts {};\n  {}, goodput would be {} ({:+.2f} points)\n",
        wall ? "wall-clock time from start to start" : "training time",
        wall ? "counting training time" : "from start to start on the wall clock",
        percent(r.mean("goodput") + difference), 100 * difference);
}

void print_estimates(const std::vector<EstimateEffect>& effects, std::size_t read_count) {
    constexpr std::size_t shown_max = 3;
    fmt::print("\n  {}\n", coloured("the estimates that this answer hangs on", Colour::dim));
    if (effects.empty()) {
        fmt::print("  none of the {} estimates that were read moves goodput\n", read_count);
        return;
    }
    Table table({"", "value", "tried", "goodput, points", "training speed"});
    using Change = EstimateEffect::Change;
    const auto points = [](const std::optional<Change>& c) {
        return c ? fmt::format("{:+.2f}", 100 * c->goodput) : std::string("impossible");
    };
    const auto speed = [](const std::optional<Change>& c) {
        return c ? fmt::format("{:+.1f} %", 100 * c->speed) : std::string("impossible");
    };
    for (std::size_t i = 0; i < std::min(shown_max, effects.size()); ++i) {
        const EstimateEffect& e = effects[i];
        table.add({e.estimate.path, e.estimate.value,
                   fmt::format("x {:.3g} to x {:.3g}{}", e.estimate.low_factor,
                               e.estimate.high_factor, e.estimate.range_given ? "" : " *"),
                   fmt::format("{} to {}", points(e.low), points(e.high)),
                   fmt::format("{} to {}", speed(e.low), speed(e.high))});
    }
    fmt::print(
        "{}  {} estimates were read, {} of them move goodput; * no range is printed for it\n",
        table.text(), read_count, effects.size());
}

}  // namespace railyard
