#pragma once
// A race of designs on common random numbers: who still can be the best, and who needs more replicas.
//
// Replica i of all designs has the same luck, so two designs are compared in pairs. A design is dropped
// when a feasible one is better by Student's t at the level chance / ((designs - 1) x looks), where a look
// is a count of replicas at which designs may be dropped; when its bound, which its mean is proven not to
// pass, is worse than the best one's interval at that level; or when it keeps the limits so seldom that the
// binomial test at that level says so. By Bonferroni the best design is then dropped with a probability of
// `chance` at most, as far as means of that few differences are Student's. In place of a spread that is
// less than half of the field's median that half is taken: a few replicas in which nothing happened prove
// nothing. What a bound rules out is run all the same while it may be on the front of the other figures by
// more than a percent. The race is over when each that is left is shown, at that level, to be better than
// the best by no more than `indifference`.

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/comparison.h"

namespace railyard {

struct RaceRules {
    Better better = Better::higher;
    double chance = 0.05;
    std::int64_t first = 4;   // replicas before anybody is dropped
    std::int64_t most = 64;   // of those that stay
    double probability = 0;   // of keeping the limits; 0: there are none
    std::size_t draws = 0;    // of a network's luck, over which replicas are dealt out
    double indifference = 0;  // relative: designs that differ by less are one answer
    // So many with the best bounds start, then as many as have run, while any still can win. Bounds are held
    // against the best one's interval over `leader` replicas of it; 0: over those that it raced with.
    std::size_t wave = 32;
    std::int64_t leader = 0;

    // The counts of replicas at which designs may be dropped: first, twice as many ... most.
    std::vector<std::int64_t> looks() const;
    double level(std::size_t designs) const;
};

struct Racer {
    // The best that its figure can be, and what it needs at least of other figures (all lower is better)
    // that a front is made of. None: not known.
    std::optional<double> bound;
    std::vector<double> least;
    std::vector<double> values;       // the figure, by replica
    std::vector<double> long_values;  // likewise, RaceRules::leader of them; empty: it never led
    std::vector<bool> kept;           // whether the limits were, by replica
    std::vector<double> spent;        // means of the other figures; empty before there are replicas
    bool out = false;                 // it does not run to its end
};

enum class Fate : std::uint8_t { racing, waiting, dropped, bounded, misses, out };

struct RaceState {
    std::vector<Fate> fates;
    std::optional<std::size_t> leader;  // none: nobody keeps the limits so far
    std::int64_t replicas = 0;          // that `next` should have
    std::vector<std::size_t> next;      // empty: the race is over
    bool long_values = false;           // it is these that `next`, the leader, should have
    bool settled = false;               // all that are left are one answer
    std::int64_t racing = 0;            // that may still win
};

// What the replicas so far say. A pure function of them, so a race goes on where it was stopped.
RaceState judge_race(const RaceRules& rules, const std::vector<Racer>& racers);

// The probability that n trials with this chance each succeed at most k times.
double binomial_at_most(std::int64_t k, std::int64_t n, double chance);

// The front of several figures, all of which want to be low. A row is on it when no other row is at least as
// good in every figure and better in one. Returns the numbers of these rows, in order. Rows with a figure
// that is not a number are on none; where rows are equal in all figures, the first is.
std::vector<std::size_t> front_of(const std::vector<std::vector<double>>& rows);

}  // namespace railyard
