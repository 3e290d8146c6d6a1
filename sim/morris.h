#pragma once
// Which of many inputs matter, from few runs: Morris (1991), with the mean of absolute effects of Campolongo
// (2007).
//
// A trajectory begins at a random point of a grid in the unit cube and moves each input once, by a fixed
// step. What a move changes, over the step, is an elementary effect. Their mean absolute value (mu*) says how
// much an input does, their deviation (sigma) how much that depends on where the others, or itself, stand.

#include <span>
#include <vector>

#include "sim/rng.h"

namespace railyard {

struct MorrisDesign {
    std::size_t inputs = 0;
    std::vector<std::vector<double>> points;  // inputs + 1 for each trajectory, one after another
    std::vector<std::size_t> moved;  // by point: the input that has moved since the one before it
};

MorrisDesign morris_design(std::size_t inputs, std::size_t trajectories, RandomStream& random);

struct ElementaryEffects {
    std::size_t count = 0;
    double mean = 0;            // mu
    double mean_absolute = 0;   // mu*
    double deviation = 0;       // sigma; 0 with one effect
    double standard_error = 0;  // of mu*
};

// `results` of the design's points. A move from or to a point without a number does not count.
std::vector<ElementaryEffects> elementary_effects(const MorrisDesign& design,
                                                  std::span<const double> results);

}  // namespace railyard
