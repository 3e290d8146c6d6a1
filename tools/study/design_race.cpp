#include "tools/study/design_race.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "sim/rng.h"

namespace railyard {

std::vector<std::int64_t> RaceRules::looks() const {
    std::vector<std::int64_t> out;
    for (std::int64_t n = first; n < most; n *= 2) out.push_back(n);
    out.push_back(most);
    return out;
}

double RaceRules::level(std::size_t designs) const {
    const double pairs = std::max<double>(1, static_cast<double>(designs) - 1);
    const std::size_t counts = looks().size() + (leader > 0 ? 1 : 0);
    return chance / (pairs * static_cast<double>(counts));
}

double binomial_at_most(std::int64_t k, std::int64_t n, double chance) {
    if (chance >= 1) return k < n ? 0 : 1;
    double log_term = static_cast<double>(n) * portable_log(1 - chance);
    double sum = 0;
    for (std::int64_t i = 0; i <= k; ++i) {
        sum += portable_exp(log_term);
        if (chance <= 0 || i == k) break;
        log_term += portable_log(static_cast<double>(n - i) / static_cast<double>(i + 1)) +
                    portable_log(chance / (1 - chance));
    }
    return std::min(1.0, sum);
}

namespace {

// How much worse (positive: worse) b is than a, over the replicas that both have.
Summary worse_by(const RaceRules& rules, const Racer& a, const Racer& b) {
    const std::size_t n = std::min(a.values.size(), b.values.size());
    const auto first = [&](const Racer& r) { return std::span(r.values).first(n); };
    const std::vector<std::size_t> luck = dealt_over(n, rules.draws);
    return rules.better == Better::higher ? summarise_paired(first(a), first(b), luck)
                                          : summarise_paired(first(b), first(a), luck);
}

constexpr double front_share = 0.01;

class Judge {
  public:
    Judge(const RaceRules& rules, const std::vector<Racer>& racers)
        : rules_(rules), racers_(racers), level_(rules.level(racers.size())) {
        state_.fates.assign(racers.size(), Fate::waiting);
    }

    RaceState judge() {
        find_misses();
        find_leader();
        if (state_.leader) {
            drop_the_slow();
            drop_the_bounded();
        }
        call_next();
        return std::move(state_);
    }

  private:
    bool ran(std::size_t i) const {
        return static_cast<std::int64_t>(racers_[i].values.size()) >= rules_.first;
    }
    double mean(std::size_t i) const { return summarise(racers_[i].values).mean; }
    bool is_better(double a, double b) const { return better_than(a, b, rules_.better); }
    std::int64_t kept(std::size_t i) const { return std::ranges::count(racers_[i].kept, true); }
    // How far a mean may be off to one side at the race's level; of a spread that is at least so large.
    double reach(const Summary& s, double least_spread) const {
        return -student_t_quantile(level_, s.degrees) * std::max(s.spread, least_spread) /
               std::sqrt(static_cast<double>(s.count));
    }
    void find_misses();
    void find_leader();
    void drop_the_slow();
    void drop_the_bounded();
    bool may_be_on_the_front(std::size_t i, const std::vector<std::vector<double>>& front) const;
    void call_next();

    const RaceRules& rules_;
    const std::vector<Racer>& racers_;
    double level_;
    RaceState state_;
};

void Judge::find_misses() {
    for (std::size_t i = 0; i < racers_.size(); ++i) {
        if (racers_[i].out) state_.fates[i] = Fate::out;
        if (racers_[i].out || !ran(i)) continue;
        state_.fates[i] = Fate::racing;
        const auto n = static_cast<std::int64_t>(racers_[i].kept.size());
        if (rules_.probability > 0 && binomial_at_most(kept(i), n, rules_.probability) < level_) {
            state_.fates[i] = Fate::misses;
        }
    }
}

void Judge::find_leader() {
    double best = 0;
    for (std::size_t i = 0; i < racers_.size(); ++i) {
        if (state_.fates[i] != Fate::racing) continue;
        const double share =
            static_cast<double>(kept(i)) / static_cast<double>(racers_[i].kept.size());
        if (rules_.probability > 0 && share < rules_.probability) continue;
        const double value = mean(i);
        if (!std::isfinite(value) || (state_.leader && !is_better(value, best))) continue;
        state_.leader = i;
        best = value;
    }
}

void Judge::drop_the_slow() {
    const Racer& leader = racers_[*state_.leader];
    std::vector<Summary> behind(racers_.size());
    std::vector<double> spreads;
    for (std::size_t i = 0; i < racers_.size(); ++i) {
        if (state_.fates[i] != Fate::racing || i == *state_.leader) continue;
        behind[i] = worse_by(rules_, leader, racers_[i]);
        spreads.push_back(behind[i].spread);
    }
    if (spreads.empty()) return;
    const auto middle = spreads.begin() + static_cast<std::ptrdiff_t>(spreads.size() / 2);
    std::nth_element(spreads.begin(), middle, spreads.end());
    const double least_spread = *middle / 2;
    const double same = rules_.indifference * std::abs(mean(*state_.leader));
    state_.settled = true;
    for (std::size_t i = 0; i < racers_.size(); ++i) {
        if (state_.fates[i] != Fate::racing || i == *state_.leader) continue;
        const double width = reach(behind[i], least_spread);
        if (behind[i].mean > width) {
            state_.fates[i] = Fate::dropped;
        } else {
            state_.settled &= behind[i].mean - width > -same;
        }
    }
}

// Whether no design that has run needs as little as this one does at least, of everything, but for a percent:
// a few replicas would not tell them apart.
bool Judge::may_be_on_the_front(std::size_t i,
                                const std::vector<std::vector<double>>& front) const {
    const std::vector<double>& least = racers_[i].least;
    return !least.empty() && std::ranges::none_of(front, [&](const std::vector<double>& spent) {
        return std::ranges::equal(spent, least,
                                  [](double x, double y) { return x <= y * (1 + front_share); });
    });
}

void Judge::drop_the_bounded() {
    const Racer& leader = racers_[*state_.leader];
    const std::vector<double>& of_leader =
        leader.long_values.empty() ? leader.values : leader.long_values;
    const Summary s = summarise(of_leader, dealt_over(of_leader.size(), rules_.draws));
    const double width = reach(s, 0);
    const double worst = rules_.better == Better::higher ? s.mean - width : s.mean + width;
    std::vector<std::vector<double>> spent;
    for (std::size_t i = 0; i < racers_.size(); ++i) {
        if (ran(i) && state_.fates[i] != Fate::misses) spent.push_back(racers_[i].spent);
    }
    std::vector<std::vector<double>> front;
    for (const std::size_t i : front_of(spent)) front.push_back(spent[i]);
    for (std::size_t i = 0; i < racers_.size(); ++i) {
        const bool open = state_.fates[i] == Fate::waiting || state_.fates[i] == Fate::racing;
        if (!open || i == *state_.leader || !racers_[i].bound) continue;
        if (is_better(*racers_[i].bound, worst)) continue;
        if (ran(i) || !may_be_on_the_front(i, front)) state_.fates[i] = Fate::bounded;
    }
}

// First those with the best bounds, in waves that grow, less those that the leader's interval leaves out;
// then more replicas of who has the fewest of those that still race.
void Judge::call_next() {
    std::vector<std::size_t> waiting;
    std::int64_t fewest = rules_.most;
    for (std::size_t i = 0; i < racers_.size(); ++i) {
        if (state_.fates[i] == Fate::waiting) waiting.push_back(i);
        if (state_.fates[i] != Fate::racing) continue;
        ++state_.racing;
        fewest = std::min(fewest, static_cast<std::int64_t>(racers_[i].values.size()));
    }
    if (!waiting.empty()) {
        const auto before = [&](std::size_t a, std::size_t b) {
            const auto& x = racers_[a].bound;
            const auto& y = racers_[b].bound;
            return x && y ? is_better(*x, *y) : x.has_value() && !y.has_value();
        };
        std::ranges::stable_sort(waiting, before);
        state_.racing += static_cast<std::int64_t>(waiting.size());
        const bool bounds = racers_[waiting[0]].bound.has_value();
        if (bounds && state_.leader && rules_.leader > 0 &&
            racers_[*state_.leader].long_values.empty()) {
            state_.long_values = true;
            state_.replicas = rules_.leader;
            state_.next = {*state_.leader};
            return;
        }
        const std::size_t wave = std::max(rules_.wave, racers_.size() - waiting.size());
        if (bounds && waiting.size() > wave) waiting.resize(wave);
        std::ranges::sort(waiting);
        state_.replicas = rules_.first;
        state_.next = std::move(waiting);
        return;
    }
    if (state_.racing < 2 || fewest >= rules_.most || state_.settled) return;
    const std::vector<std::int64_t> looks = rules_.looks();
    state_.replicas = *std::upper_bound(looks.begin(), looks.end(), fewest);
    for (std::size_t i = 0; i < racers_.size(); ++i) {
        if (state_.fates[i] == Fate::racing &&
            static_cast<std::int64_t>(racers_[i].values.size()) < state_.replicas) {
            state_.next.push_back(i);
        }
    }
}

}  // namespace

RaceState judge_race(const RaceRules& rules, const std::vector<Racer>& racers) {
    return Judge(rules, racers).judge();
}

std::vector<std::size_t> front_of(const std::vector<std::vector<double>>& rows) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const bool numbers =
            std::ranges::all_of(rows[i], [](double x) { return std::isfinite(x); });
        if (numbers && !rows[i].empty()) order.push_back(i);
    }
    // In this order only what comes before a row can be as good as it in everything.
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return rows[a] < rows[b]; });
    std::vector<std::size_t> front;
    for (const std::size_t i : order) {
        const bool beaten = std::ranges::any_of(front, [&](std::size_t other) {
            return std::ranges::equal(rows[other], rows[i],
                                      [](double x, double y) { return x <= y; });
        });
        if (!beaten) front.push_back(i);
    }
    std::ranges::sort(front);
    return front;
}

}  // namespace railyard
