#include "tools/study/design_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "models/campaign/campaign.h"
#include "sim/comparison.h"
#include "sim/parallel.h"
#include "sim/text.h"
#include "tools/program/program.h"
#include "tools/study/design_limits.h"
#include "tools/study/design_race.h"

namespace railyard {

double SearchedDesign::kept_share() const {
    if (kept.empty()) return 1;
    return static_cast<double>(std::ranges::count(kept, true)) / static_cast<double>(kept.size());
}

namespace {

constexpr std::uint64_t tuning_seed =
    0x7475'6e65;  // luck of its own: what is tuned on it is not judged on it

// Points of one stage in the database, and their replicas.
class Stage {
  public:
    Stage(const DesignQuestion& question, const DesignReader& reader, const SearchOptions& options,
          ResultsDb& db, std::int64_t run)
        : q_(question),
          reader_(reader),
          options_(options),
          db_(db),
          run_(run),
          keys_(result_version()) {}

    // The point of a design with these settings.
    std::int64_t add(const std::vector<std::string>& settings, std::int64_t position,
                     const std::string& label) {
        const PointKey key = keys_.of(reader_.document(settings));
        const std::int64_t point =
            db_.point({q_.file, q_.text, settings, key, q_.title + ": " + label, result_version()});
        db_.attach(run_, position, point, label);
        known_[point] = {key.text, settings, label};
        return point;
    }

    // So many replicas of each; false: interrupted.
    bool run(const std::vector<std::int64_t>& points, std::int64_t replicas,
             const std::string& what) {
        std::vector<SweepPoint> to_do;
        for (const std::int64_t point : points) {
            const Known& known = known_.at(point);
            const StoredPoint stored = db_.stored_point(known.key, "");
            const bool over =
                stored.status == "impossible" || (stored.status == "stuck" && stored.replicas == 0);
            if (over || stored.replicas >= replicas) continue;
            to_do.push_back({point, known.key, known.settings, stored.described});
        }
        db_.commit();
        const auto total = static_cast<std::int64_t>(to_do.size());
        StoppingRule rule;
        rule.replicas_min = rule.replicas_max = replicas;
        SweepOptions sweep;
        sweep.scenario_text = q_.text;
        sweep.scenario_file = q_.file;
        sweep.rule = rule;
        sweep.threads = options_.threads;
        sweep.cancelled = options_.cancelled;
        sweep.progress = [&](std::int64_t done) {
            if (options_.progress) options_.progress(what, done, total);
        };
        sweep.deadlocked = [&](std::int64_t point, std::int64_t replica,
                               const std::string& report) {
            if (options_.deadlocked) options_.deadlocked({known_.at(point).label, replica, report});
        };
        if (total > 0 && options_.run) {
            options_.run(std::move(to_do), sweep);
        } else if (total > 0) {
            run_points(std::move(to_do), sweep, db_);
        }
        return options_.cancelled == nullptr || !*options_.cancelled;
    }

    // The first so many replicas of a point.
    std::vector<StoredReplica> read(std::int64_t point, std::int64_t replicas) {
        std::vector<StoredReplica> out;
        db_.each_replica(point, [&](StoredReplica replica) {
            const bool next = replica.index == static_cast<std::int64_t>(out.size());
            if (next && replica.index < replicas) out.push_back(std::move(replica));
        });
        return out;
    }

    std::string problem(std::int64_t point) {
        const std::vector<std::string> out = db_.database().texts(
            "SELECT status || ': ' || coalesce(problem, '') FROM points WHERE point = ? AND status "
            "NOT IN ('complete', 'open')",
            point);
        return out.empty() ? "" : out[0];
    }

  private:
    struct Known {
        std::string key;
        std::vector<std::string> settings;
        std::string label;
    };
    const DesignQuestion& q_;
    const DesignReader& reader_;
    const SearchOptions& options_;
    ResultsDb& db_;
    std::int64_t run_;
    PointKeys keys_;
    std::map<std::int64_t, Known> known_;
};

class Searcher {
  public:
    Searcher(const DesignQuestion& question, const SearchOptions& options, ResultsDb& db)
        : q_(question),
          options_(options),
          db_(db),
          space_(question.space),
          reader_(question.text, question.file, options.windows) {}

    DesignSearch run();

  private:
    std::vector<std::string> settings_of(const DesignSpace::Point& point, Fidelity fidelity) const;
    void begin_run();
    bool read_designs();
    bool tune(const std::vector<std::size_t>& all, Fidelity fidelity);
    bool tune_group(const std::vector<std::size_t>& group, Fidelity fidelity);
    // A design with free axes so.
    struct Tuning {
        std::size_t design = 0;
        DesignSpace::Point point;
        DesignFacts facts;
        std::int64_t stored = 0;
    };
    // Each design gets the best of these and what it had, whose figures `best` has.
    bool try_tunings(std::vector<Tuning> tried, Fidelity fidelity,
                     std::map<std::size_t, double>& best);
    DesignFacts facts_of(const SearchedDesign& design, const DesignSpace::Point& point,
                         Fidelity fidelity);
    bool race(const std::vector<std::size_t>& field, Stage& stage);
    // Races the best so many, whatever they were judged on before.
    bool race_on(Fidelity fidelity, std::int64_t most);
    Racer racer_of(const SearchedDesign& design) const;
    RaceRules rules_of(const std::vector<std::size_t>& field) const;
    void take(SearchedDesign& design, const std::vector<StoredReplica>& replicas);
    std::vector<double> figures_of(const std::vector<StoredReplica>& replicas,
                                   double utilisation) const;
    std::string race_text(const RaceState& state, const std::vector<std::size_t>& field) const;
    void rank(const std::vector<std::size_t>& field);
    void lead_with_the_cheapest();
    void find_cheaper();
    std::vector<std::size_t> able() const;
    bool go_on() const { return options_.cancelled == nullptr || !*options_.cancelled; }

    const DesignQuestion& q_;
    const SearchOptions& options_;
    ResultsDb& db_;
    DesignSpace space_;  // with the values of ranges that are tried
    DesignReader reader_;
    DesignSearch out_;
    std::set<std::string> had_;  // metrics of the replicas so far
    std::int64_t run_ = 0;
};

// What prices leave open is not raced on: one draw is enough of it there.
std::vector<std::string> Searcher::settings_of(const DesignSpace::Point& point,
                                               Fidelity fidelity) const {
    std::vector<std::string> out = q_.base_settings;
    const std::vector<std::string> own = space_.settings(point);
    out.insert(out.end(), own.begin(), own.end());
    if (q_.priced) out.emplace_back("cost.draws=1");
    if (fidelity != q_.fidelity) out.push_back("run.fidelity=" + word_of(fidelity_names, fidelity));
    return out;
}

void Searcher::begin_run() {
    RunSpec spec;
    spec.kind = "design";
    spec.key = digest_of(q_.text + settings_text(q_.base_settings) + result_version());
    spec.file = q_.file;
    spec.title = q_.title;
    spec.version = result_version();
    spec.points_wanted = static_cast<std::int64_t>(out_.designs.size());
    spec.replicas_wanted = q_.replicas_most;
    spec.study = q_.text;
    const auto found = db_.database().integer("SELECT run FROM runs WHERE key = ?", spec.key);
    run_ = found ? *found : db_.begin_run(spec);
    db_.decide(run_, q_.objective.metric, better_of(q_.objective.metric), q_.objective.name);
    db_.commit();
}

bool Searcher::read_designs() {
    for (DesignSpace::Point& point : space_.designs()) {
        SearchedDesign design;
        // Free axes have their first value until they are tuned.
        design.point = space_.tunings(point).front();
        design.label = space_.label(point);
        out_.designs.push_back(std::move(design));
    }
    const auto total = static_cast<std::int64_t>(out_.designs.size());
    std::atomic<std::int64_t> done{0};
    std::mutex mutex;
    parallel_for(out_.designs.size(), options_.threads, options_.cancelled, [&](std::size_t i) {
        SearchedDesign& design = out_.designs[i];
        design.facts = facts_of(design, design.point, Fidelity::analytic);
        design.limit = broken_limit(q_, design.facts);
        const std::lock_guard lock(mutex);
        if (options_.progress) options_.progress("designs read", ++done, total);
    });
    return go_on();
}

std::vector<std::size_t> Searcher::able() const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < out_.designs.size(); ++i) {
        const SearchedDesign& design = out_.designs[i];
        if (design.facts.problem.empty() && design.limit.empty()) out.push_back(i);
    }
    return out;
}

// On a network of links a design keeps the plan that it has, unless one is searched there.
DesignFacts Searcher::facts_of(const SearchedDesign& design, const DesignSpace::Point& point,
                               Fidelity fidelity) {
    std::vector<std::string> settings = settings_of(point, fidelity);
    using Plans = DesignQuestion::Plans;
    if (q_.plans == Plans::given) return reader_.facts_of(std::move(settings));
    const bool flow = fidelity == Fidelity::flow && q_.plans == Plans::flow;
    if (flow || fidelity == Fidelity::analytic) return reader_.read_planned(settings, flow);
    for (const std::string& setting : design.facts.settings) {
        const std::string key = key_of_setting(setting);
        const bool planned = decided_by_plan(key) || key == "job.parallel.global_batch";
        if (planned) settings.push_back(setting);
    }
    return reader_.facts_of(std::move(settings));
}

// Each design gets the free settings with the best mean of a few replicas on luck of their own.
bool Searcher::tune(const std::vector<std::size_t>& all, Fidelity fidelity) {
    constexpr std::size_t together = 512;
    const bool any = std::ranges::any_of(space_.axes, &DesignAxis::free);
    if (!any) return true;
    for (std::size_t from = 0; from < all.size(); from += together) {
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(from);
        const auto last =
            all.begin() + static_cast<std::ptrdiff_t>(std::min(from + together, all.size()));
        if (!tune_group({first, last}, fidelity)) return false;
    }
    return true;
}

// First all combinations, of ranges five values; then closer and closer to the best of a range.
bool Searcher::tune_group(const std::vector<std::size_t>& group, Fidelity fidelity) {
    std::vector<Tuning> tried;
    for (const std::size_t i : group) {
        for (DesignSpace::Point& point : space_.tunings(out_.designs[i].point)) {
            tried.push_back({i, std::move(point), {}});
        }
    }
    std::map<std::size_t, double> best;
    if (!try_tunings(std::move(tried), fidelity, best)) return false;
    for (double step = 0.125; step >= 0.03; step /= 2) {
        tried.clear();
        for (const std::size_t i : group) {
            if (!best.contains(i)) continue;
            for (DesignSpace::Point& point : space_.beside(out_.designs[i].point, step)) {
                tried.push_back({i, std::move(point), {}});
            }
        }
        if (tried.empty()) break;
        if (!try_tunings(std::move(tried), fidelity, best)) return false;
    }
    return true;
}

bool Searcher::try_tunings(std::vector<Tuning> tried, Fidelity fidelity,
                           std::map<std::size_t, double>& best) {
    parallel_for(tried.size(), options_.threads, options_.cancelled, [&](std::size_t i) {
        tried[i].facts = facts_of(out_.designs[tried[i].design], tried[i].point, fidelity);
    });
    if (!go_on()) return false;
    Stage stage(q_, reader_, options_, db_, run_);
    std::vector<std::int64_t> points;
    const auto designs = static_cast<std::int64_t>(out_.designs.size());
    for (Tuning& each : tried) {
        if (!each.facts.problem.empty()) continue;
        std::vector<std::string> settings = each.facts.settings;
        settings.push_back(fmt::format("run.seed={}", tuning_seed));
        each.stored = stage.add(settings, designs + static_cast<std::int64_t>(out_.tuned++),
                                "tuning: " + space_.label(each.point));
        points.push_back(each.stored);
    }
    if (!stage.run(points, q_.replicas_first, "free settings tuned")) return false;
    for (const Tuning& each : tried) {
        if (each.stored == 0) continue;
        SearchedDesign with;
        with.facts = each.facts;
        take(with, stage.read(each.stored, q_.replicas_first));
        if (!with.ran()) continue;
        const double figure = with.mean();
        const auto [found, first] = best.emplace(each.design, figure);
        const bool better = better_than(figure, found->second, q_.objective.better);
        if (!first && !better) continue;
        found->second = figure;
        SearchedDesign& design = out_.designs[each.design];
        design.point = each.point;
        design.facts = each.facts;
        design.label = space_.label(each.point);
    }
    return true;
}

// Whether at its first look only a difference of many spreads drops a design: in a large space a look at
// so few replicas costs the reading of all scenarios once more.
bool drops_nobody(const RaceRules& rules, std::size_t designs) {
    constexpr double spreads_most = 10;
    const auto replicas = static_cast<double>(rules.first);
    const double t = -student_t_quantile(rules.level(designs), replicas - 1);
    return t > spreads_most * std::sqrt(replicas);
}

RaceRules Searcher::rules_of(const std::vector<std::size_t>& field) const {
    RaceRules rules;
    rules.better = q_.objective.better;
    rules.chance = q_.chance;
    rules.first = q_.replicas_first;
    rules.most = q_.replicas_most;
    if (q_.limits.open()) rules.probability = q_.limits.probability;
    for (const std::size_t i : field) {
        const std::size_t draws = out_.designs[i].facts.draws;
        rules.draws =
            rules.draws == 0 ? draws : std::min(rules.draws, std::max<std::size_t>(1, draws));
    }
    rules.indifference = q_.indifference;
    constexpr std::size_t leader_most = 1024;
    if (field.size() > rules.wave) {  // some bounds may spare a run
        const auto worth = std::min(leader_most, field.size() / 8);
        rules.leader = std::max(rules.most, static_cast<std::int64_t>(worth));
    }
    while (2 * rules.first <= rules.most && drops_nobody(rules, field.size())) rules.first *= 2;
    return rules;
}

Racer Searcher::racer_of(const SearchedDesign& design) const {
    Racer out;
    const DesignFacts& facts = design.facts;
    const std::string& metric = q_.objective.metric;
    if (metric == "tokens_per_day" && facts.tokens_per_day_mean_most > 0) {
        out.bound = q_.objective.of(facts.tokens_per_day_mean_most, facts.utilisation);
    } else if (metric == "cost_per_1e12_tokens" && facts.cost_per_1e12_mean_least) {
        out.bound = q_.objective.of(*facts.cost_per_1e12_mean_least, facts.utilisation);
    }
    out.least = least_figures(q_, facts);
    out.values = design.values;
    out.kept = design.kept;
    out.spent = design.spent;
    out.out = !design.problem.empty();
    return out;
}

namespace {

// Money over what a replica gets done.
bool per_work(std::string_view metric) {
    const CostMetric* money = cost_metric(metric);
    return money != nullptr && metric != "cost_capital" && metric != "cost_per_year";
}

}  // namespace

std::vector<double> Searcher::figures_of(const std::vector<StoredReplica>& replicas,
                                         double utilisation) const {
    std::vector<double> out;
    std::vector<double> costs;
    std::vector<double> work;
    for (const StoredReplica& replica : replicas) {
        const double value = named_value(replica.metrics, q_.objective.metric);
        out.push_back(q_.objective.of(value, utilisation));
        if (!per_work(q_.objective.metric)) continue;
        costs.push_back(named_value(replica.metrics, "cost_per_year") *
                        static_cast<double>(replica.simulated_ns));
        work.push_back(std::isfinite(out.back()) ? costs.back() / out.back() : 0);
    }
    // As of all replicas together, those without any work too.
    const bool any = std::ranges::any_of(work, [](double w) { return w > 0; });
    return any ? ratio_values(costs, work) : out;
}

void Searcher::take(SearchedDesign& design, const std::vector<StoredReplica>& replicas) {
    design.values = figures_of(replicas, design.facts.utilisation);
    design.kept.clear();
    std::vector<double> sums;
    if (!replicas.empty()) {
        for (const Metric& metric : replicas[0].metrics) had_.insert(metric.name);
    }
    for (const StoredReplica& replica : replicas) {
        design.kept.push_back(keeps_limits(q_, design.facts, replica.metrics));
        const std::vector<double> figures = figures_of_replica(q_, design.facts, replica.metrics);
        sums.resize(figures.size(), 0);
        for (std::size_t k = 0; k < figures.size(); ++k) sums[k] += figures[k];
    }
    for (double& sum : sums) sum /= static_cast<double>(replicas.size());
    design.spent = std::move(sums);
}

std::string Searcher::race_text(const RaceState& state,
                                const std::vector<std::size_t>& field) const {
    std::string out = fmt::format("{} designs in the race", state.racing);
    if (state.leader) {
        const SearchedDesign& best = out_.designs[field[*state.leader]];
        out += fmt::format(", best {} ({})", options_.figure_text(best.mean()), best.label);
    }
    return out;
}

bool Searcher::race(const std::vector<std::size_t>& field, Stage& stage) {
    const RaceRules rules = rules_of(field);
    out_.looks = static_cast<std::int64_t>(rules.looks().size());
    out_.level = rules.level(field.size());
    for (const std::size_t i : field) {
        out_.designs[i].values.clear();
        out_.designs[i].kept.clear();
        out_.designs[i].spent.clear();
        out_.designs[i].stored = 0;
    }
    std::vector<Racer> racers;
    for (const std::size_t i : field) racers.push_back(racer_of(out_.designs[i]));
    while (true) {
        const RaceState state = judge_race(rules, racers);
        for (std::size_t r = 0; r < field.size(); ++r) out_.designs[field[r]].fate = state.fates[r];
        if (state.next.empty()) break;
        std::vector<std::int64_t> points;
        for (const std::size_t r : state.next) {
            SearchedDesign& design = out_.designs[field[r]];
            if (design.stored == 0) {
                design.stored = stage.add(design.facts.settings,
                                          static_cast<std::int64_t>(field[r]), design.label);
            }
            points.push_back(design.stored);
        }
        if (!stage.run(points, state.replicas, race_text(state, field))) return false;
        for (const std::size_t r : state.next) {
            SearchedDesign& design = out_.designs[field[r]];
            if (state.long_values) {
                racers[r].long_values =
                    figures_of(stage.read(design.stored, state.replicas), design.facts.utilisation);
                continue;
            }
            take(design, stage.read(design.stored, state.replicas));
            if (static_cast<std::int64_t>(design.values.size()) < state.replicas) {
                design.problem = stage.problem(design.stored);
                if (design.problem.empty()) design.problem = "failed: its replicas are missing";
            }
            std::vector<double> long_values = std::move(racers[r].long_values);
            racers[r] = racer_of(design);
            racers[r].long_values = std::move(long_values);
        }
        check_metrics(q_, had_);
    }
    return true;
}

// The best of those that may win, then of the others.
void Searcher::rank(const std::vector<std::size_t>& field) {
    std::vector<std::vector<double>> rows;
    out_.best.clear();
    for (const std::size_t i : field) {
        const SearchedDesign& design = out_.designs[i];
        const bool feasible =
            design.ran() && design.fate != Fate::misses && design.fate != Fate::out &&
            (q_.limits.open() ? design.kept_share() >= q_.limits.probability : true);
        rows.push_back(feasible ? design.spent : std::vector<double>{});
        if (feasible && std::isfinite(design.mean())) out_.best.push_back(i);
    }
    out_.front.clear();
    for (const std::size_t row : front_of(rows)) out_.front.push_back(field[row]);
    const auto before = [&](std::size_t a, std::size_t b) {
        const SearchedDesign& x = out_.designs[a];
        const SearchedDesign& y = out_.designs[b];
        const bool x_races = x.fate == Fate::racing;
        if (x_races != (y.fate == Fate::racing)) return x_races;
        return better_than(x.mean(), y.mean(), q_.objective.better);
    };
    std::ranges::stable_sort(out_.best, before);
    out_.cheaper.reset();
    if (!q_.price_decides() || out_.best.empty()) return;
    lead_with_the_cheapest();
    find_cheaper();
}

// None that is not as good as the best one leads.
void Searcher::lead_with_the_cheapest() {
    auto cheapest = out_.best.begin();
    for (auto it = out_.best.begin(); it != out_.best.end(); ++it) {
        const SearchedDesign& design = out_.designs[*it];
        if (design.fate != Fate::racing) break;  // they come last
        if (design.spent[0] >= out_.designs[*cheapest].spent[0]) continue;
        if (as_good(q_, compare_designs(q_, out_.designs[out_.best[0]], design))) cheapest = it;
    }
    std::rotate(out_.best.begin(), cheapest, cheapest + 1);
}

void Searcher::find_cheaper() {
    const SearchedDesign& first = out_.designs[out_.best[0]];
    double least = first.spent[0];
    for (const std::size_t i : out_.best) {
        const SearchedDesign& design = out_.designs[i];
        if (design.fate != Fate::racing) break;
        if (design.spent[0] >= least) continue;
        if (compare_designs(q_, first, design).verdict != Verdict::undecided) continue;
        least = design.spent[0];
        out_.cheaper = i;
    }
}

bool Searcher::race_on(Fidelity fidelity, std::int64_t most) {
    std::vector<std::size_t> field(
        out_.best.begin(),
        out_.best.begin() + std::min(std::ssize(out_.best), static_cast<std::ptrdiff_t>(most)));
    std::ranges::sort(field);
    parallel_for(field.size(), options_.threads, options_.cancelled, [&](std::size_t i) {
        SearchedDesign& design = out_.designs[field[i]];
        design.facts = facts_of(design, design.point, fidelity);
    });
    if (!go_on()) return false;
    std::erase_if(field, [&](std::size_t i) { return !out_.designs[i].facts.problem.empty(); });
    if (!tune(field, fidelity)) return false;
    (fidelity == Fidelity::flow ? out_.finalists : out_.on_packets) = field.size();
    Stage stage(q_, reader_, options_, db_, run_);
    if (!race(field, stage)) return false;
    rank(field);
    return true;
}

DesignSearch Searcher::run() {
    out_.figures = figure_names(q_);
    const auto stop = [&] {
        out_.interrupted = true;
        return std::move(out_);
    };
    if (!read_designs()) return stop();
    begin_run();
    check_limits(q_, out_.designs);
    const std::vector<std::size_t> field = able();
    if (!tune(field, Fidelity::analytic)) return stop();
    bool over = false;
    {
        Stage stage(q_, reader_, options_, db_, run_);
        over = race(field, stage);
    }
    rank(field);
    const auto count = [&] {
        std::int64_t most = 0;
        std::int64_t ran = 0;
        for (const std::size_t i : field) {
            const auto n = static_cast<std::int64_t>(out_.designs[i].values.size());
            most = std::max(most, n);
            ran += n;
        }
        out_.replicas += ran;
        out_.exhaustive += most * static_cast<std::int64_t>(field.size());
    };
    count();
    out_.plans_tried = reader_.plans_tried();
    if (!over) return stop();
    check_outcome(q_, out_.designs, field);
    const bool flows = q_.fidelity != Fidelity::analytic;
    if (flows && !race_on(Fidelity::flow, q_.finalists)) return stop();
    const bool packets = q_.fidelity == Fidelity::packet;
    if (packets && !race_on(Fidelity::packet, q_.shown)) return stop();
    db_.finish_run(run_, "complete", "", "");
    db_.commit();
    for (const std::size_t i : out_.best) {
        out_.designs[i].own = space_.settings(out_.designs[i].point);
    }
    return std::move(out_);
}

}  // namespace

PairedComparison compare_designs(const DesignQuestion& question, const SearchedDesign& a,
                                 const SearchedDesign& b) {
    const std::size_t pairs = std::min(a.values.size(), b.values.size());
    const std::size_t draws = draws_of_pairs(a.facts.draws, b.facts.draws);
    return compare_paired(std::span(a.values).first(pairs), std::span(b.values).first(pairs),
                          question.objective.better, 0.95, dealt_over(pairs, draws));
}

bool as_good(const DesignQuestion& question, const PairedComparison& pairs) {
    const double margin = question.indifference * std::abs(pairs.mean_a);
    return pairs.verdict == Verdict::equal ||
           (pairs.interval.low >= -margin && pairs.interval.high <= margin);
}

DesignSearch search_designs(const DesignQuestion& question, const SearchOptions& options,
                            ResultsDb& db) {
    return Searcher(question, options, db).run();
}

}  // namespace railyard
