#include "tools/study/design_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/rng.h"
#include "tools/study/breakeven.h"
#include "tools/study/prediction.h"

namespace railyard {

bool is_price(const std::string& input) {
    return input.starts_with("cost.price.") || input.starts_with("price.");
}

namespace {

constexpr std::int64_t replicas_of_campaigns = 4;  // of what is bought, which hardly varies

class Answerer {
  public:
    Answerer(const DesignQuestion& question, const DesignSearch& search,
             const SearchOptions& options)
        : q_(question),
          search_(search),
          options_(options),
          reader_(question.text, question.file, options.windows) {}

    DesignAnswer answer();

  private:
    struct Known {  // of an answered design
        Scenario scenario;
        std::vector<UncertainInput> inputs;
        std::vector<CampaignUse> uses;
        double work = 0;  // a day
    };
    const SearchedDesign& searched(std::size_t i) const {
        return search_.designs[out_.designs[i].design];
    }
    TrialOptions trials(std::int64_t replicas, const std::string& what) const;
    bool know_designs();
    bool run_worlds();
    ScenarioChanges in_world(std::size_t design, std::int64_t world);
    // Those that are not possible with the plan that they have, with another that fits; others as they are.
    bool replan(std::vector<ScenarioChanges>& variants, std::vector<std::optional<Trial>>& found);
    double share_of(std::size_t design, const UncertainInput& input, std::int64_t world) const;
    void predict_figures();
    void explain_next();
    std::vector<CostStep> lines_of(std::size_t design) const;
    void find_turning();
    double head_start() const;
    std::optional<std::string> breakeven(const UncertainInput& input);

    const DesignQuestion& q_;
    const DesignSearch& search_;
    const SearchOptions& options_;
    DesignReader reader_;
    std::vector<Known> known_;
    Worlds worlds_;
    DesignAnswer out_;
};

TrialOptions Answerer::trials(std::int64_t replicas, const std::string& what) const {
    TrialOptions out;
    out.text = q_.text;
    out.file = q_.file;
    out.metrics = {q_.objective.metric};
    out.replicas = replicas;
    out.threads = options_.threads;
    out.cancelled = options_.cancelled;
    out.progress = [this, what](std::int64_t done, std::int64_t total) {
        if (options_.progress) options_.progress(what, done, total);
    };
    return out;
}

bool Answerer::know_designs() {
    for (const AnsweredDesign& answered : out_.designs) {
        Known known;
        const SearchedDesign& design = search_.designs[answered.design];
        known.scenario = reader_.scenario(design.facts.settings);
        known.inputs = uncertain_inputs(known.scenario, q_.objective.metric);
        Scenario few = known.scenario;
        few.replicas = std::min(few.replicas, replicas_of_campaigns);
        CampaignOptions campaign;
        campaign.threads = options_.threads;
        campaign.cancelled = options_.cancelled;
        const CampaignResult result = run_campaign(few, campaign);
        if (result.cancelled) return false;
        known.uses = result.uses;
        const Scenario& s = known.scenario;
        const char* work = s.counts_work()                     ? "work_per_day"
                           : s.tokens_per_step > 0 && !s.world ? "tokens_per_day"
                                                               : "goodput";
        known.work = result.mean(work) * design.facts.utilisation;
        known_.push_back(std::move(known));
    }
    return true;
}

// A price as likely as its range says; an estimate evenly.
double Answerer::share_of(std::size_t design, const UncertainInput& input,
                          std::int64_t world) const {
    const Scenario& s = known_[design].scenario;
    const auto drawn = [&](const std::string& name) {
        return RandomStream(s.seed, static_cast<std::uint64_t>(world), "design/" + name).uniform();
    };
    if (!s.cost) return drawn(input.name());
    for (const Price& price : s.cost->plan.prices) {
        if (input.name() != "cost.price." + price.name || price.high <= price.low) continue;
        const double u = drawn(price.luck.empty() ? input.name() : price.stream());
        return (triangular(price, u) - price.low) / (price.high - price.low);
    }
    return drawn(input.name());
}

ScenarioChanges Answerer::in_world(std::size_t design, std::int64_t world) {
    ScenarioChanges out;
    out.settings = searched(design).facts.settings;
    out.windows = options_.windows;
    out.one_draw = true;
    const std::uint64_t seed = known_[design].scenario.seed;
    out.settings.push_back(
        fmt::format("run.seed={}", seed + 1 + static_cast<std::uint64_t>(world)));
    for (const UncertainInput& input : known_[design].inputs) {
        const double share = share_of(design, input, world);
        input.set(out, share);
        const auto found = std::ranges::find(worlds_.inputs, input.name());
        const auto i = static_cast<std::size_t>(found - worlds_.inputs.begin());
        if (found == worlds_.inputs.end()) {
            worlds_.inputs.push_back(input.name());
            worlds_.shares.emplace_back();
        }
        worlds_.shares[i].resize(static_cast<std::size_t>(q_.worlds), 0.5);
        worlds_.shares[i][static_cast<std::size_t>(world)] = share;
    }
    return out;
}

bool Answerer::replan(std::vector<ScenarioChanges>& variants,
                      std::vector<std::optional<Trial>>& found) {
    if (q_.plans == DesignQuestion::Plans::given) return true;
    std::vector<std::size_t> again;
    std::vector<ScenarioChanges> changed;
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (!found[i]) return false;
        if (found[i]->possible()) continue;
        const auto plan = reader_.replanned(variants[i]);
        if (!plan) continue;
        again.push_back(i);
        changed.push_back(variants[i]);
        changed.back().settings.insert(changed.back().settings.end(), plan->begin(), plan->end());
    }
    const auto better = run_trials(trials(1, "worlds with another plan"), changed);
    for (std::size_t k = 0; k < again.size(); ++k) found[again[k]] = better[k];
    return true;
}

bool Answerer::run_worlds() {
    std::vector<ScenarioChanges> variants;
    for (std::size_t d = 0; d < known_.size(); ++d) {
        for (std::int64_t w = 0; w < q_.worlds; ++w) variants.push_back(in_world(d, w));
    }
    auto found = run_trials(trials(1, "worlds"), variants);
    if (!replan(variants, found)) return false;
    const auto each = static_cast<std::size_t>(q_.worlds);
    worlds_.values.assign(known_.size(), std::vector<double>(each, NAN));
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (!found[i]) return false;
        if (!found[i]->possible()) continue;
        worlds_.values[i / each][i % each] =
            q_.objective.of(found[i]->summary(0).mean, searched(i / each).facts.utilisation);
    }
    for (std::size_t w = 0; w < each; ++w) {
        const bool whole = std::ranges::all_of(
            worlds_.values, [&](const auto& values) { return std::isfinite(values[w]); });
        out_.worlds += whole ? 1 : 0;
    }
    out_.inputs = worlds_.inputs.size();
    return true;
}

// Each world's figure with each of the errors that models make, as likely as they are.
void Answerer::predict_figures() {
    constexpr int errors = 32;
    for (std::size_t d = 0; d < known_.size(); ++d) {
        const Scenario& s = known_[d].scenario;
        const bool modelled = step_is_modelled(s);
        const ModelError error = modelled ? ModelError(s.step_error) : ModelError{};
        std::vector<double> all;
        for (const double value : worlds_.values[d]) {
            if (!std::isfinite(value)) continue;
            for (int k = 0; k < errors; ++k) {
                all.push_back(value * portable_exp(off_by(error, (k + 0.5) / errors)));
            }
        }
        if (all.empty()) continue;
        std::ranges::sort(all);
        AnsweredDesign& answered = out_.designs[d];
        answered.half = {sorted_quantile(all, 0.25), sorted_quantile(all, 0.75)};
        answered.nine_tenths = {sorted_quantile(all, 0.05), sorted_quantile(all, 0.95)};
        answered.model_error = error.nine_tenths;
    }
}

// What a year costs by line, at typical prices.
std::vector<CostStep> Answerer::lines_of(std::size_t design) const {
    const Known& known = known_[design];
    std::vector<CostStep> out;
    if (!known.scenario.cost) return out;
    const CostPlan& plan = known.scenario.cost->plan;
    const std::vector<double> prices = typical_prices(plan.prices);
    const Cents hardware = hardware_sum(plan, prices);
    const CampaignUse all = together(known.uses);
    for (const CostPhase& phase : plan.phases) {
        const Cents of_phase = hardware_bought(phase, prices);
        for (const BoughtLine& b : phase.bought) {
            out.push_back(
                {b.line.what, usd(line_sum(b.line, prices, of_phase)) * bought_a_year(plan, b)});
        }
        const Cents supported = supported_sum(phase.plan, prices);
        for (const CostLine& line : phase.plan.yearly) {
            out.push_back({line.what, usd(line_sum(line, prices, supported)) *
                                          share_of_years(plan, phase.from, phase.until)});
        }
    }
    for (const CostLine& line : plan.capital) {
        const double paid = usd(line_sum(line, prices, hardware));
        out.push_back({line.what, capital_a_year(plan, paid, line.resale)});
    }
    const Cents supported = supported_sum(plan, prices);
    for (const CostLine& line : plan.yearly) {
        out.push_back({line.what, usd(line_sum(line, prices, supported))});
    }
    for (std::size_t i = 0; i < plan.used.size(); ++i) {
        out.push_back(
            {plan.used[i].what, used_in_a_year(plan, i, all) * prices[plan.used[i].price]});
    }
    return out;
}

void Answerer::explain_next() {
    for (std::size_t d = 0; d + 1 < known_.size(); ++d) {
        NextDesign next;
        std::map<std::string, double> more;
        for (const CostStep& line : lines_of(d)) more[line.what] -= line.usd;
        for (const CostStep& line : lines_of(d + 1)) more[line.what] += line.usd;
        constexpr double cent = 0.005;
        for (const auto& [what, usd] : more) {
            next.cost_per_year += usd;
            if (std::abs(usd) > cent) next.lines.push_back({what, usd});
        }
        std::ranges::stable_sort(next.lines, [](const auto& a, const auto& b) {
            return std::abs(a.usd) > std::abs(b.usd);
        });
        next.work = known_[d + 1].work / known_[d].work;
        next.pairs = compare_designs(q_, searched(d), searched(d + 1));
        next.by_price = d == 0 && q_.price_decides() && as_good(q_, next.pairs) &&
                        !better_than(next.pairs.mean_a, next.pairs.mean_b, q_.objective.better) &&
                        searched(d).spent[0] < searched(d + 1).spent[0];
        out_.designs[d].next = std::move(next);
    }
}

// What the first one's metric counts times: it gives way only to what is better by more than nobody minds
// where it leads as the cheaper.
double Answerer::head_start() const {
    if (!out_.designs[0].next->by_price) return 1;
    const bool higher = better_of(q_.objective.metric) == Better::higher;
    return higher ? 1 + q_.indifference : 1 - q_.indifference;
}

// Where the two best change places, on the replicas that they were ranked by.
std::optional<std::string> Answerer::breakeven(const UncertainInput& input) {
    const auto replicas =
        static_cast<std::int64_t>(std::min(searched(0).values.size(), searched(1).values.size()));
    const KeyRange shares(input.name(), "0.0", "1.0", false, input.name());
    const auto difference = [&](double share) -> std::optional<PairedComparison> {
        std::vector<ScenarioChanges> both;
        for (std::size_t d = 0; d < 2; ++d) {
            ScenarioChanges changes;
            changes.settings = searched(d).facts.settings;
            changes.windows = options_.windows;
            const bool reads = std::ranges::any_of(
                known_[d].inputs, [&](const auto& own) { return own.name() == input.name(); });
            if (reads) input.set(changes, share);
            both.push_back(std::move(changes));
        }
        const auto found = run_trials(trials(replicas, "break-even"), both);
        if (!found[0] || !found[1]) return std::nullopt;
        if (!found[0]->possible() || !found[1]->possible()) return std::nullopt;
        std::vector<double> values[2];
        for (std::size_t d = 0; d < 2; ++d) {
            for (const double value : found[d]->values[0]) {
                values[d].push_back(q_.objective.in_calendar(value, searched(d).facts.utilisation) *
                                    (d == 0 ? head_start() : 1));
            }
        }
        return compare_paired(values[0], values[1], better_of(q_.objective.metric));
    };
    constexpr std::size_t scan = 3;
    const BreakevenResult found =
        find_breakeven(shares, scan, better_of(q_.objective.metric), difference);
    if (found.crossings.empty()) return std::nullopt;
    const double now = input.share_as_it_is();
    const auto nearest = std::ranges::min_element(
        found.crossings, {}, [&](const Crossing& crossing) { return std::abs(crossing.x - now); });
    return input.at(nearest->x);
}

void Answerer::find_turning() {
    if (known_.size() < 2) return;
    const auto& pairs = out_.designs[0].next->pairs;
    if (pairs.verdict == Verdict::equal) return;
    const double start = head_start();
    const auto judged = [&](std::size_t d) {
        return JudgedDesign{
            searched(d).label,
            q_.text,
            q_.file,
            {.settings = searched(d).facts.settings, .one_draw = true, .windows = options_.windows},
            q_.objective.in_calendar(1, searched(d).facts.utilisation) * (d == 0 ? start : 1)};
    };
    // In the metric's own terms, as its replicas have it at typical prices.
    const double scale = q_.objective.scale;
    const double of_first = q_.objective.inverse ? scale / pairs.mean_a : pairs.mean_a / scale;
    const double change = q_.objective.inverse ? scale / pairs.mean_b - scale / pairs.mean_a
                                               : pairs.difference / scale;
    const double difference = change - (start - 1) * of_first;
    const VerdictEstimates found =
        verdict_estimates(trials(0, "estimates"), judged(0), judged(1),
                          {q_.objective.metric, better_of(q_.objective.metric), difference,
                           pairs.verdict != Verdict::undecided});
    out_.interrupted |= found.interrupted;
    constexpr std::size_t with_breakeven = 3;
    for (const EstimateEnds& ends : found.moving) {
        if (!ends.turns(difference)) continue;
        Turning turning{
            ends.input.name(),          ends.input.value(), ends.input.at(0), ends.input.at(1), {},
            is_price(ends.input.name())};
        if (out_.turning.size() < with_breakeven) turning.breakeven = breakeven(ends.input);
        out_.turning.push_back(std::move(turning));
    }
}

DesignAnswer Answerer::answer() {
    const auto count = std::min(static_cast<std::size_t>(q_.shown), search_.best.size());
    for (std::size_t i = 0; i < count; ++i)
        out_.designs.push_back({search_.best[i], {}, {}, 0, {}, {}});
    if (!know_designs() || !run_worlds()) {
        out_.interrupted = true;
        return std::move(out_);
    }
    predict_figures();
    const std::vector<Regret> all = regrets(worlds_, q_.objective.better);
    for (std::size_t d = 0; d < all.size(); ++d) out_.designs[d].regret = all[d];
    out_.regret = regret_table(worlds_, q_.objective.better);
    out_.worth = worth_of_inputs(worlds_, q_.objective.better);
    explain_next();
    if (known_.size() > 1) {
        const auto& a = searched(0).values;
        const auto& b = searched(1).values;
        std::size_t wins = 0;
        const std::size_t pairs = std::min(a.size(), b.size());
        for (std::size_t i = 0; i < pairs; ++i) {
            wins += better_than(b[i], a[i], q_.objective.better) ? 1 : 0;
        }
        out_.luck_share = static_cast<double>(wins) / static_cast<double>(pairs);
    }
    find_turning();
    return std::move(out_);
}

}  // namespace

DesignAnswer answer_question(const DesignQuestion& question, const DesignSearch& search,
                             const SearchOptions& options) {
    return Answerer(question, search, options).answer();
}

}  // namespace railyard
