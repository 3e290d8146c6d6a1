#include "tools/study/verdict_estimates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/program/lists.h"

namespace railyard {

namespace {

constexpr std::int64_t replicas_enough = 4;

bool turned(double as_is, const std::optional<double>& end) {
    return end && *end != 0 && as_is != 0 && (*end > 0) != (as_is > 0);
}

// One price within its range.
std::optional<UncertainInput> price_input(const Price& price) {
    if (price.low >= price.high) return std::nullopt;
    const auto text = [&](double v) {
        const std::string number = fmt::format("{}", v);
        return price.unit.empty() ? number : fmt::format("{} {}", number, price.unit);
    };
    return UncertainInput(
        KeyRange("cost.price." + price.name, text(price.low), text(price.high), false, price.name));
}

// So many replicas of the design as it is, then with each of these inputs at its low end and at its high one.
// An end that changes nothing is the design as it is.
std::vector<std::optional<Trial>> trials_at_ends(std::int64_t replicas, const TrialOptions& like,
                                                 const JudgedDesign& design,
                                                 std::vector<std::string> metrics,
                                                 const std::vector<UncertainInput>& inputs) {
    std::vector<ScenarioChanges> variants = {design.changes};
    std::vector<std::size_t> ends = {0};  // which variant each is
    for (const UncertainInput& input : inputs) {
        for (const double share : {0.0, 1.0}) {
            ends.push_back(input.as_it_is(share) ? 0 : variants.size());
            if (ends.back() == 0) continue;
            variants.push_back(design.changes);
            input.set(variants.back(), share);
        }
    }
    TrialOptions options = like;
    options.text = design.text;
    options.file = design.file;
    options.metrics = std::move(metrics);
    options.replicas = replicas;
    std::vector<std::optional<Trial>> trials = run_trials(options, variants);
    for (std::optional<Trial>& trial : trials) {
        if (!trial || design.scale == 1) continue;
        for (std::vector<double>& values : trial->values) {
            for (double& value : values) value *= design.scale;
        }
    }
    std::vector<std::optional<Trial>> out;
    for (const std::size_t variant : ends) out.push_back(trials[variant]);
    return out;
}

// A design as it is, and at both ends of some inputs, in one metric.
class DesignAtEnds {
  public:
    DesignAtEnds(std::int64_t replicas, const TrialOptions& like, const JudgedDesign& design,
                 const std::string& metric, const std::vector<UncertainInput>& of)
        : inputs(of), trials_(trials_at_ends(replicas, like, design, {metric}, of)) {
        for (std::size_t i = 0; i < of.size(); ++i) low_of_[of[i].name()] = 2 * i + 1;
        interrupted = std::ranges::any_of(trials_, [](const auto& trial) { return !trial; });
    }
    // As it is where the end of this input was not tried; nothing after Ctrl-C.
    const std::optional<Trial>& at(const std::string& input, bool high) const {
        const auto found = low_of_.find(input);
        return trials_[found == low_of_.end() ? 0 : found->second + (high ? 1 : 0)];
    }
    // None: there is no such design.
    std::optional<double> mean(const std::string& input, bool high) const {
        return mean_of(at(input, high));
    }
    std::optional<double> as_is() const { return mean_of(trials_[0]); }

    std::vector<UncertainInput> inputs;  // that the design reads
    bool interrupted;

  private:
    static std::optional<double> mean_of(const std::optional<Trial>& trial) {
        if (!trial || !trial->possible()) return std::nullopt;
        const double value = trial->summary(0).mean;
        return std::isfinite(value) ? std::optional(value) : std::nullopt;
    }

    std::vector<std::optional<Trial>> trials_;
    std::map<std::string, std::size_t> low_of_;
};

Scenario scenario_of(const JudgedDesign& design) {
    ScenarioChanges changes = design.changes;
    changes.phases = true;
    return load_scenario(design.text, design.file, changes);
}

DesignAtEnds at_ends_of(const TrialOptions& like, const JudgedDesign& design,
                        const std::string& metric) {
    const Scenario scenario = scenario_of(design);
    const std::int64_t enough =
        like.replicas > 0 ? std::min(like.replicas, replicas_enough) : replicas_enough;
    const std::vector<UncertainInput> inputs = uncertain_inputs(scenario, metric);
    if (!scenario.world) return {enough, like, design, metric, inputs};
    // A replica of many jobs takes long, and all that there is happens in one: what moves nothing there
    // moves nothing.
    DesignAtEnds screened(1, like, design, metric, inputs);
    if (screened.interrupted || !screened.as_is()) return screened;
    std::vector<UncertainInput> moving = inputs;
    std::erase_if(moving, [&](const UncertainInput& input) {
        return screened.mean(input.name(), false) == screened.as_is() &&
               screened.mean(input.name(), true) == screened.as_is();
    });
    DesignAtEnds out(enough, like, design, metric, moving);
    out.inputs = inputs;
    return out;
}

std::vector<UncertainInput> chosen(const std::vector<UncertainInput>& inputs,
                                   const std::vector<std::string>& names) {
    std::vector<UncertainInput> out;
    for (const UncertainInput& input : inputs) {
        if (contains(names, input.name())) out.push_back(input);
    }
    return out;
}

// The second design's less the first's; without a first, less its own as it is.
VerdictEstimates between(const DesignAtEnds* a, const DesignAtEnds& b, const Judgement& judged) {
    VerdictEstimates out;
    out.judged = judged;
    out.interrupted = b.interrupted || (a && a->interrupted);
    std::vector<UncertainInput> inputs = a ? a->inputs : std::vector<UncertainInput>();
    const std::vector<std::string> read_by_a = mapped(inputs, &UncertainInput::name);
    for (const UncertainInput& input : b.inputs) {
        if (!contains(read_by_a, input.name())) inputs.push_back(input);
    }
    out.read = inputs.size();
    out.default_ranges =
        std::ranges::any_of(inputs, [](const auto& input) { return !input.range_given(); });
    const std::optional<double> a_as_is = a ? a->as_is() : b.as_is();
    if (!a_as_is || !b.as_is()) return out;
    // What a few replicas say of the change; the difference itself is known from more.
    const double few = *b.as_is() - *a_as_is;
    const auto at_end = [&](const UncertainInput& input, bool high) -> std::optional<double> {
        const auto of_a = a ? a->mean(input.name(), high) : a_as_is;
        const auto of_b = b.mean(input.name(), high);
        if (!of_a || !of_b) return std::nullopt;
        return judged.difference + (*of_b - *of_a - few);
    };
    for (const UncertainInput& input : inputs) {
        const EstimateEnds ends{input, at_end(input, false), at_end(input, true)};
        const bool impossible = !ends.low || !ends.high;
        if (impossible || ends.swing(judged.difference) > 0) out.moving.push_back(ends);
    }
    std::ranges::stable_sort(out.moving, [&](const auto& x, const auto& y) {
        return x.swing(judged.difference) > y.swing(judged.difference);
    });
    return out;
}

// The effect of each of these, over so many replicas; none when the design itself is impossible.
std::vector<EstimateEffect> effects_over(std::int64_t replicas, const TrialOptions& like,
                                         const JudgedDesign& design, bool many_jobs,
                                         const std::vector<Estimate>& estimates) {
    std::vector<std::string> metrics = {"goodput", "steps", "wall_time"};
    if (many_jobs) metrics = {"goodput", "utilisation"};
    const std::vector<UncertainInput> inputs(estimates.begin(), estimates.end());
    const auto trials = trials_at_ends(replicas, like, design, metrics, inputs);
    const auto speed_of = [&](const Trial& trial) {
        const double done = trial.summary(1).mean;
        return many_jobs ? done : done / trial.summary(2).mean;
    };
    std::vector<EstimateEffect> effects;
    if (!trials[0] || !trials[0]->possible()) return effects;
    const Trial& as_is = *trials[0];
    const double speed = speed_of(as_is);
    const auto change =
        [&](const std::optional<Trial>& trial) -> std::optional<EstimateEffect::Change> {
        if (!trial->possible()) return std::nullopt;
        return EstimateEffect::Change{trial->summary(0).mean - as_is.summary(0).mean,
                                      speed > 0 ? speed_of(*trial) / speed - 1 : -1};
    };
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const std::optional<Trial>& low = trials[2 * i + 1];
        const std::optional<Trial>& high = trials[2 * i + 2];
        if (!low || !high) break;  // Ctrl-C
        effects.push_back({estimates[i], change(low), change(high)});
    }
    return effects;
}

}  // namespace

double EstimateEnds::swing(double as_is) const {
    return std::abs(high.value_or(as_is) - low.value_or(as_is));
}

bool EstimateEnds::turns(double as_is) const {
    return (low_told && turned(as_is, low)) || (high_told && turned(as_is, high));
}

bool EstimateEnds::may_turn(double as_is) const {
    return !turns(as_is) && (turned(as_is, low) || turned(as_is, high));
}

std::size_t VerdictEstimates::may_turn() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        moving, [&](const EstimateEnds& ends) { return ends.may_turn(judged.difference); }));
}

std::vector<std::string> VerdictEstimates::turning() const {
    std::vector<std::string> out;
    for (const EstimateEnds& ends : moving) {
        if (ends.turns(judged.difference)) out.push_back(ends.input.name());
    }
    return out;
}

std::vector<UncertainInput> uncertain_inputs(const Scenario& scenario, const std::string& metric) {
    std::vector<UncertainInput> out;
    for (const Estimate& estimate : scenario.estimates) out.emplace_back(estimate);
    if (!cost_metric(metric) || !scenario.cost) return out;
    // What renting would cost is in no cost of what is bought.
    const CostPlan& plan = scenario.cost->plan;
    for (std::size_t i = 0; i < plan.prices.size(); ++i) {
        if (plan.rental == i) continue;
        if (const auto input = price_input(plan.prices[i])) out.push_back(*input);
    }
    return out;
}

VerdictEstimates verdict_estimates(const TrialOptions& like, const JudgedDesign& first,
                                   const JudgedDesign& second, const Judgement& judged) {
    const DesignAtEnds a = at_ends_of(like, first, judged.metric);
    const DesignAtEnds b = at_ends_of(like, second, judged.metric);
    VerdictEstimates out = between(&a, b, judged);
    if (out.survives() || out.interrupted) return out;
    const std::int64_t all = like.replicas > 0 ? like.replicas : scenario_of(first).replicas;
    if (all <= replicas_enough) return out;
    const std::vector<std::string> turning = out.turning();
    const DesignAtEnds of_a(all, like, first, judged.metric, chosen(a.inputs, turning));
    const DesignAtEnds of_b(all, like, second, judged.metric, chosen(b.inputs, turning));
    for (EstimateEnds& ends : out.moving) {
        if (!ends.turns(judged.difference)) continue;
        const auto look = [&](bool high, std::optional<double>& difference, bool& told) {
            const std::optional<Trial>& at_a = of_a.at(ends.input.name(), high);
            const std::optional<Trial>& at_b = of_b.at(ends.input.name(), high);
            out.interrupted |= !at_a || !at_b;
            if (!at_a || !at_b || !at_a->possible() || !at_b->possible()) return;
            const PairedComparison pairs = compare_values(*at_a, *at_b, 0, judged.better);
            difference = pairs.difference;
            told = pairs.verdict != Verdict::undecided;
        };
        look(false, ends.low, ends.low_told);
        look(true, ends.high, ends.high_told);
    }
    return out;
}

VerdictEstimates answer_estimates(const TrialOptions& like, const JudgedDesign& design,
                                  const std::string& metric) {
    return between(nullptr, at_ends_of(like, design, metric), {metric, better_of(metric), 0, true});
}

double EstimateEffect::swing() const {
    return std::abs(high.value_or(Change{}).goodput - low.value_or(Change{}).goodput);
}

// A few replicas tell who moves the answer and who moves it most; the others are for these.
std::vector<EstimateEffect> rank_estimates(const TrialOptions& like, const JudgedDesign& design) {
    constexpr std::int64_t few = 2;
    constexpr std::size_t leading = 3;
    constexpr double worth_more = 0.25;  // of what the last of the leading ones moves
    const Scenario scenario = scenario_of(design);
    JudgedDesign on_one_draw = design;
    on_one_draw.changes.one_draw = true;  // what an estimate changes, it changes on any
    const auto over = [&](std::int64_t replicas, const std::vector<Estimate>& estimates) {
        return effects_over(replicas, like, on_one_draw, scenario.world != nullptr, estimates);
    };
    const auto rank = [](std::vector<EstimateEffect>& effects) {
        std::erase_if(effects, [](const EstimateEffect& e) { return e.swing() == 0; });
        std::ranges::stable_sort(
            effects, [](const auto& a, const auto& b) { return a.swing() > b.swing(); });
    };
    const bool enough = like.replicas > 0 && like.replicas <= few;
    std::vector<EstimateEffect> effects = over(enough ? like.replicas : few, scenario.estimates);
    rank(effects);
    if (enough || effects.empty()) return effects;
    const double least = worth_more * effects[std::min(leading, effects.size()) - 1].swing();
    const auto rest = std::ranges::find_if(
        effects, [&](const EstimateEffect& effect) { return effect.swing() < least; });
    std::vector<Estimate> first;
    for (auto effect = effects.begin(); effect != rest; ++effect) first.push_back(effect->estimate);
    std::vector<EstimateEffect> out = over(like.replicas, first);
    out.insert(out.end(), rest, effects.end());
    rank(out);
    return out;
}

}  // namespace railyard
