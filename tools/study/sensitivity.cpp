#include "tools/study/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/sampling.h"
#include "tools/study/verdict_estimates.h"

namespace railyard {

namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

class Screening {
  public:
    Screening(const TrialOptions& trials, const ScenarioChanges& changes, std::uint64_t seed,
              const SensitivityOptions& options)
        : trials_(trials), changes_(changes), seed_(seed), options_(options) {
        trials_.metrics = {options.metric};
    }

    Sensitivity run(const std::vector<UncertainInput>& inputs) {
        const std::optional<Trial> base = run_trials(trials_, {changes_})[0];
        if (!base) throw Interrupted();
        out_.base = base->summary(0);
        out_.runs = 1;
        try {
            turn_one_by_one(inputs);
            screen();
            split_variance();
        } catch (const Interrupted&) {
            out_.interrupted = true;
        }
        return out_;
    }

  private:
    // The metric's mean in each variant; not a number where there is no such design.
    std::vector<double> means(const std::vector<ScenarioChanges>& variants) {
        std::vector<double> out;
        for (const std::optional<Trial>& trial : run_trials(trials_, variants)) {
            if (!trial) throw Interrupted();
            out.push_back(trial->possible() ? trial->summary(0).mean : nothing);
            if (!trial->possible()) problem_ = trial->problem;
        }
        out_.runs += variants.size();
        return out;
    }

    ScenarioChanges at(const std::vector<double>& point) const {
        ScenarioChanges changed = changes_;
        for (std::size_t i = 0; i < point.size(); ++i) out_.bars[i].input.set(changed, point[i]);
        return changed;
    }

    void turn_one_by_one(const std::vector<UncertainInput>& inputs) {
        std::vector<ScenarioChanges> variants;
        for (const UncertainInput& input : inputs) {
            for (const double share : {0.0, 1.0}) {
                variants.push_back(changes_);
                input.set(variants.back(), share);
            }
        }
        const std::vector<double> found = means(variants);
        const auto change = [&](double mean) -> std::optional<double> {
            if (std::isnan(mean)) return std::nullopt;
            return mean - out_.base.mean;
        };
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const bool never = std::isnan(found[2 * i]) && std::isnan(found[2 * i + 1]);
            if (never && inputs[i].value().empty()) {
                throw ScenarioError(
                    fmt::format("{}: no scenario is possible at either end of its range",
                                inputs[i].name()),
                    problem_);
            }
            out_.bars.push_back({inputs[i], change(found[2 * i]), change(found[2 * i + 1])});
        }
        constexpr double negligible = 1e-3;
        double largest = 0;
        for (const TornadoBar& bar : out_.bars) largest = std::max(largest, bar.largest());
        const auto decides = [&](const TornadoBar& bar) {
            if (!bar.low || !bar.high) return true;
            return largest > 0 && bar.largest() >= negligible * largest;
        };
        std::ranges::stable_sort(out_.bars, [&](const TornadoBar& a, const TornadoBar& b) {
            if (decides(a) != decides(b)) return decides(a);
            return a.swing() > b.swing();
        });
        out_.deciding = static_cast<std::size_t>(std::ranges::count_if(out_.bars, decides));
    }

    void screen() {
        if (options_.trajectories == 0 || out_.deciding == 0) return;
        RandomStream random(seed_, 0, "sensitivity/morris");
        const MorrisDesign design =
            morris_design(out_.deciding, static_cast<std::size_t>(options_.trajectories), random);
        std::vector<ScenarioChanges> variants;
        for (const std::vector<double>& point : design.points) variants.push_back(at(point));
        out_.effects = elementary_effects(design, means(variants));
    }

    void split_variance() {
        if (options_.samples == 0 || out_.deciding == 0) return;
        UnitPoints points = latin_hypercube(options_.samples, out_.deciding, seed_);
        std::vector<ScenarioChanges> variants;
        for (const std::vector<double>& point : points) variants.push_back(at(point));
        std::vector<double> results = means(variants);
        for (std::size_t i = 0; i < results.size(); ++i) {
            if (std::isnan(results[i])) points[i].clear();
        }
        std::erase_if(points, [](const auto& point) { return point.empty(); });
        std::erase_if(results, [](double result) { return std::isnan(result); });
        out_.samples_possible = results.size();
        if (results.size() < 2 * (out_.deciding + 1)) return;
        RandomStream bootstrap(seed_, 0, "sensitivity/bootstrap");
        out_.fit = first_order_indices(points, results, bootstrap);
    }

    TrialOptions trials_;
    const ScenarioChanges& changes_;
    std::uint64_t seed_;
    const SensitivityOptions& options_;
    Sensitivity out_;
    std::string problem_;  // why the last variant that was impossible is
};

}  // namespace

std::vector<WorkBasis> designs_at_ends(const TrialOptions& trials, const ScenarioChanges& changes,
                                       const Scenario& scenario,
                                       const std::vector<KeyRange>& ranges) {
    std::vector<WorkBasis> out = {work_of(scenario)};
    for (const KeyRange& range : ranges) {
        for (const double end : {range.low(), range.high()}) {
            try {
                ScenarioChanges changed = changes;
                changed.settings.push_back(range.setting(end));
                out.push_back(work_of(load_scenario(trials.text, trials.file, changed)));
            } catch (const ScenarioError& error) {
                for (const Diagnostic& d : error.diagnostics()) {
                    if (d.message.starts_with("unknown key")) throw;
                }
            }
        }
    }
    return out;
}

std::vector<UncertainInput> what_is_uncertain(const Scenario& scenario, const std::string& metric,
                                              const std::vector<KeyRange>& ranges, bool estimates) {
    std::vector<UncertainInput> out(ranges.begin(), ranges.end());
    for (const UncertainInput& input : uncertain_inputs(scenario, metric)) {
        const bool given = std::ranges::any_of(
            ranges, [&](const KeyRange& range) { return range.key() == input.name(); });
        if (estimates && !given) out.push_back(input);
    }
    if (out.empty()) {
        throw ScenarioError("there is nothing to vary: no estimate was read",
                            "give a key a range: --over KEY=LOW:HIGH");
    }
    return out;
}

Sensitivity find_sensitivity(const TrialOptions& trials, const ScenarioChanges& changes,
                             std::uint64_t seed, const std::vector<UncertainInput>& inputs,
                             const SensitivityOptions& options) {
    return Screening(trials, changes, seed, options).run(inputs);
}

}  // namespace railyard
