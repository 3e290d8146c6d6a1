#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/rng.h"
#include "tools/study/design_race.h"
#include "tools/study/design_regret.h"
#include "tools/study/design_space.h"

using namespace railyard;

namespace {

// Designs whose figures are known: the cost of a day's work with checkpoints of C seconds every tau, on
// stores of several prices. Lower is better.
struct Toy {
    std::vector<double> means;
    double common = 0;  // deviation of the luck that all designs share
    double own = 0;     // and of each one's own

    static Toy stores(std::size_t stores, std::size_t intervals) {
        Toy out;
        for (std::size_t s = 0; s < stores; ++s) {
            for (std::size_t t = 0; t < intervals; ++t) {
                const double saving = 300.0 / (1 + static_cast<double>(s));
                const double tau = 60.0 * (1 + static_cast<double>(t));
                const double goodput = tau / (tau + saving) * (1 - tau / 2 / 30000);
                const double price = 100 + 0.9 * static_cast<double>(s);
                out.means.push_back(price / goodput);
            }
        }
        return out;
    }
    std::size_t best() const {
        return static_cast<std::size_t>(std::min_element(means.begin(), means.end()) -
                                        means.begin());
    }
    double value(std::size_t design, std::uint64_t seed, std::size_t replica) const {
        RandomStream shared(seed, replica, "toy");
        RandomStream alone(seed, replica, "toy/" + std::to_string(design));
        return means[design] + common * shared.normal() + own * alone.normal();
    }
};

struct Raced {
    std::size_t winner = 0;
    bool best_dropped = false;
    std::int64_t replicas = 0;
    std::vector<Racer> racers;
};

Raced race(const Toy& toy, const RaceRules& rules, std::uint64_t seed, std::vector<Racer> racers) {
    Raced out;
    for (;;) {
        const RaceState state = judge_race(rules, racers);
        if (state.next.empty()) {
            REQUIRE(state.leader);
            out.winner = *state.leader;
            const Fate fate = state.fates[toy.best()];
            out.best_dropped = fate == Fate::dropped || fate == Fate::bounded;
            break;
        }
        for (const std::size_t i : state.next) {
            std::vector<double>& values =
                state.long_values ? racers[i].long_values : racers[i].values;
            while (static_cast<std::int64_t>(values.size()) < state.replicas) {
                values.push_back(toy.value(i, seed, values.size()));
                ++out.replicas;
            }
            racers[i].kept.resize(racers[i].values.size(), true);
        }
    }
    out.racers = std::move(racers);
    return out;
}

Racer without_bound() {
    return {};
}

}  // namespace

TEST_CASE("the best of a toy space is found in 95 of 100 seeds with a tenth of all replicas") {
    Toy toy = Toy::stores(20, 50);
    toy.common = 5;
    toy.own = 0.3;
    RaceRules rules;
    rules.better = Better::lower;
    rules.chance = 0.05;
    rules.most = 256;
    int found = 0;
    std::int64_t replicas = 0;
    constexpr int seeds = 100;
    for (int seed = 0; seed < seeds; ++seed) {
        const Raced raced = race(toy, rules, static_cast<std::uint64_t>(seed),
                                 std::vector<Racer>(toy.means.size(), without_bound()));
        // Two designs that differ by less than a thousandth are one answer.
        const double off = toy.means[raced.winner] / toy.means[toy.best()] - 1;
        if (off < 1e-3) ++found;
        replicas += raced.replicas;
    }
    const double exhaustive = static_cast<double>(toy.means.size()) * rules.most * seeds;
    CHECK(found >= 95);
    CHECK(static_cast<double>(replicas) < 0.1 * exhaustive);
}

TEST_CASE("racing drops the best no more often than it says") {
    // Ten designs that are nearly alike, where a race errs most, at a chance of one in five.
    Toy toy;
    for (int i = 0; i < 10; ++i) toy.means.push_back(100 + 0.1 * i);
    toy.common = 1;
    toy.own = 1;
    RaceRules rules;
    rules.better = Better::lower;
    rules.chance = 0.2;
    rules.most = 64;
    int dropped = 0;
    constexpr int seeds = 1000;
    for (int seed = 0; seed < seeds; ++seed) {
        if (race(toy, rules, static_cast<std::uint64_t>(seed),
                 std::vector<Racer>(toy.means.size(), without_bound()))
                .best_dropped) {
            ++dropped;
        }
    }
    // Within four standard errors of what is said.
    CHECK(dropped <= 0.2 * seeds + 4 * std::sqrt(0.2 * 0.8 * seeds));
}

TEST_CASE("a design whose best case loses is never run") {
    Toy toy = Toy::stores(20, 50);
    RaceRules rules;
    rules.better = Better::lower;
    std::vector<Racer> racers(toy.means.size());
    for (std::size_t i = 0; i < racers.size(); ++i) racers[i].bound = 0.98 * toy.means[i];
    const Raced raced = race(toy, rules, 1, racers);
    CHECK(raced.winner == toy.best());
    std::size_t ran = 0;
    for (std::size_t i = 0; i < raced.racers.size(); ++i) {
        if (raced.racers[i].values.empty()) {
            CHECK(0.98 * toy.means[i] >= toy.means[toy.best()]);
        } else {
            ++ran;
        }
    }
    CHECK(ran < racers.size() / 2);
}

TEST_CASE(
    "a race with bounds finds the best of 2,000 designs in 95 of 100 seeds, and runs few of them") {
    Toy toy = Toy::stores(40, 50);
    toy.common = 5;
    toy.own = 0.3;
    RaceRules rules;
    rules.better = Better::lower;
    rules.most = 64;
    rules.indifference = 0.001;
    rules.leader = 250;
    int found = 0;
    std::size_t ran = 0;
    constexpr int seeds = 100;
    for (int seed = 0; seed < seeds; ++seed) {
        std::vector<Racer> racers(toy.means.size());
        for (std::size_t i = 0; i < racers.size(); ++i) racers[i].bound = 0.99 * toy.means[i];
        const Raced raced = race(toy, rules, static_cast<std::uint64_t>(seed), std::move(racers));
        const double off = toy.means[raced.winner] / toy.means[toy.best()] - 1;
        if (off < 2 * rules.indifference && !raced.best_dropped) ++found;
        for (const Racer& racer : raced.racers) ran += racer.values.empty() ? 0 : 1;
    }
    CHECK(found >= 95);
    CHECK(ran < toy.means.size() * seeds / 5);
}

TEST_CASE("designs that differ by less than anybody minds are one answer, and take few replicas") {
    Toy toy;
    for (int i = 0; i < 10; ++i) toy.means.push_back(100 + 0.001 * i);
    toy.common = 5;
    toy.own = 0.05;
    RaceRules rules;
    rules.better = Better::lower;
    rules.most = 1024;
    rules.indifference = 0.002;
    const Raced one_answer = race(toy, rules, 1, std::vector<Racer>(toy.means.size()));
    rules.indifference = 0;
    const Raced to_the_end = race(toy, rules, 1, std::vector<Racer>(toy.means.size()));
    CHECK(one_answer.replicas <= 10 * 32);
    CHECK(to_the_end.replicas > 10 * one_answer.replicas);
}

TEST_CASE("a design that keeps its limits too seldom leads nobody") {
    RaceRules rules;
    rules.better = Better::lower;
    rules.probability = 0.9;
    rules.first = rules.most = 64;
    std::vector<Racer> racers(2);
    for (int r = 0; r < 64; ++r) {
        racers[0].values.push_back(1 + 0.01 * (r % 3));
        racers[0].kept.push_back(r % 2 == 0);
        racers[1].values.push_back(2 + 0.01 * (r % 5));
        racers[1].kept.push_back(true);
    }
    const RaceState state = judge_race(rules, racers);
    REQUIRE(state.leader);
    CHECK(*state.leader == 1);
    CHECK(state.fates[0] == Fate::misses);
    CHECK(binomial_at_most(32, 64, 0.9) < 1e-12);
    CHECK(binomial_at_most(1, 2, 0.5) == doctest::Approx(0.75));
    CHECK(binomial_at_most(64, 64, 0.9) == doctest::Approx(1));
}

TEST_CASE("a few replicas in which nothing happened prove nothing") {
    // Two of the field never differ from the leader by luck; the others do, and no shortcut is taken.
    RaceRules rules;
    rules.better = Better::lower;
    rules.first = 4;
    std::vector<Racer> racers(5);
    for (std::size_t i = 0; i < racers.size(); ++i) {
        for (int r = 0; r < 4; ++r) {
            const double luck = i < 2 ? 0 : ((r + static_cast<int>(i)) % 2 == 0 ? 5 : -5);
            racers[i].values.push_back(100 + static_cast<double>(i) * 0.1 + luck);
            racers[i].kept.push_back(true);
        }
    }
    CHECK(judge_race(rules, racers).fates[1] == Fate::racing);
}

TEST_CASE("the front of 2,000 designs is that of a comparison of all pairs") {
    std::vector<std::vector<double>> rows;
    RandomStream random(7, 0, "front");
    for (int i = 0; i < 2000; ++i) {
        // Coarse, so that there are ties.
        rows.push_back({std::floor(40 * random.uniform()), std::floor(40 * random.uniform()),
                        std::floor(10 * random.uniform())});
    }
    rows[17][1] = NAN;
    std::vector<std::size_t> exhaustive;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        bool on = i != 17;
        for (std::size_t j = 0; on && j < rows.size(); ++j) {
            if (j == 17 || j == i) continue;
            const bool as_good =
                rows[j][0] <= rows[i][0] && rows[j][1] <= rows[i][1] && rows[j][2] <= rows[i][2];
            on = !(as_good && (rows[j] != rows[i] || j < i));
        }
        if (on) exhaustive.push_back(i);
    }
    CHECK(front_of(rows) == exhaustive);
}

TEST_CASE(
    "a regret table sums up to the mean regrets, and the best of each world regrets nothing") {
    Worlds worlds;
    RandomStream random(3, 0, "worlds");
    worlds.values.assign(4, {});
    worlds.inputs = {"decides", "does nothing"};
    worlds.shares.assign(2, {});
    for (int w = 0; w < 400; ++w) {
        const double x = random.uniform();
        worlds.shares[0].push_back(x);
        worlds.shares[1].push_back(random.uniform());
        worlds.values[0].push_back(10 + 4 * x);  // better below a half
        worlds.values[1].push_back(14 - 4 * x);
        worlds.values[2].push_back(13);
        worlds.values[3].push_back(20);
    }
    const auto table = regret_table(worlds, Better::lower);
    const auto each = regrets(worlds, Better::lower);
    double shares = 0;
    for (std::size_t d = 0; d < 4; ++d) {
        double sum = 0;
        for (const double part : table[d]) sum += part;
        CHECK(sum == doctest::Approx(each[d].mean));
        CHECK(table[d][d] == 0);
        shares += each[d].best_share;
    }
    CHECK(shares == doctest::Approx(1));
    // E|4 - 8x| over the worse half: a regret of up to 4, 1 in the mean.
    CHECK(each[0].mean == doctest::Approx(1).epsilon(0.15));
    const auto worth = worth_of_inputs(worlds, Better::lower);
    REQUIRE(worth.size() ==
            1);  // what does nothing is worth nothing, though its line is not quite flat
    CHECK(worth[0].input == "decides");
    // Knowing it one has 11 in the mean in place of 12.
    CHECK(worth[0].worth == doctest::Approx(1).epsilon(0.15));
}

TEST_CASE("a range is searched closer and closer, and never beyond its ends") {
    Diagnostics diagnostics;
    Document document =
        parse_document("[[design.axis]]\nkey = \"i\"\nfrom = 0\nto = 80\n", "test", diagnostics);
    const std::vector<AxisBounds> bounds = AxisBounds::taken_from(document, "design");
    REQUIRE(bounds.size() == 1);
    ValueReader values(diagnostics, "test");
    const Value& table = document.root.find("design")->find("axis")->items[0];
    Section section(values, &table, "design.axis", {});
    DesignAxis axis;
    axis.name = "i";
    axis.free = true;
    axis.range = Axis::read(section, bounds[0], true);
    REQUIRE(axis.range);
    DesignSpace space;
    space.axes = {axis};
    const auto i_of = [&](const DesignSpace::Point& point) { return space.settings(point).at(0); };
    const DesignSpace::Point end = {space.axes[0].value_at(0.0)};
    REQUIRE(space.beside(end, 0.125).size() == 1);
    CHECK(i_of(space.beside(end, 0.125)[0]) == i_of({space.axes[0].value_at(0.125)}));
    const std::size_t known = space.axes[0].values.size();
    CHECK(space.beside({space.axes[0].value_at(0.125)}, 0.125).size() == 2);
    CHECK(space.axes[0].values.size() == known + 1);
}

TEST_CASE("an axis is there only beside the values of others that it belongs to") {
    DesignSpace space;
    space.axes = {
        {"store", false, {}, {{"weka", {"storage.system=weka"}}, {"nfs", {"storage.system=nfs"}}}},
        {"servers",
         false,
         {{0, {0}}},
         {{"8", {"storage.servers=8"}}, {"16", {"storage.servers=16"}}}},
        {"interval", true, {}, {{"10 min", {"i=10"}}, {"1 h", {"i=60"}}, {"2 h", {"i=120"}}}}};
    const auto designs = space.designs();
    REQUIRE(designs.size() == 3);
    CHECK(space.label(designs[0]) == "store = weka, servers = 8");
    CHECK(space.label(designs[2]) == "store = nfs");
    CHECK(space.tunings(designs[2]).size() == 3);
    CHECK(space.settings(space.tunings(designs[0])[1]) ==
          std::vector<std::string>{"storage.system=weka", "storage.servers=8", "i=60"});
}
