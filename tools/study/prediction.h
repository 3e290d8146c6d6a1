#pragma once
// What an answer may turn out to be. Three things leave it open: luck, which no measurement takes away;
// estimates, drawn together within their ranges on the same random numbers; and what the models get wrong of
// published figures. README.md, "Intervals of prediction", says how they are put together.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/campaign/campaign.h"
#include "sim/statistics.h"

namespace railyard {

enum class Doubt : std::uint8_t { luck, estimates, model };
constexpr std::size_t doubts = 3;

// A figure that is asked for.
struct Question {
    std::string name;
    double value = 0;          // the answer as it is printed
    std::vector<double> luck;  // what luck alone makes of it; fewer than two: nothing
    ModelError error;          // of figures of this kind
    std::string measure;       // what would take the place of the model
    bool share = false;        // of a whole: no more than 1
};

struct Predicted {
    std::string name;
    double value = 0;
    Interval half;         // holds half of such answers
    Interval nine_tenths;  // and nine in ten
    // Half the width of the interval of nine in ten that each doubt alone leaves, over the value.
    std::array<double, doubts> width{};
    Doubt widest = Doubt::luck;
    std::string measure;  // what would make the widest narrower
};

struct Prediction {
    std::vector<Predicted> answers;
    std::size_t estimates = 0;  // that were drawn
    std::size_t tried = 0;      // draws of them together
    std::size_t draws = 0;      // of these, how many make a possible design
};

// The values of all questions with numbers scaled so, on the same luck for all; empty where there is no such
// design. The first variant scales nothing. Fewer than asked for when they were interrupted.
using Answers = std::function<std::vector<std::vector<double>>(const std::vector<Perturbations>&)>;

// Draws the estimates together `draws` times; those that were fitted on published figures are in the models'
// error.
Prediction predict(const std::vector<Question>& questions, const std::vector<Estimate>& estimates,
                   std::size_t draws, std::uint64_t seed, const Answers& answers);

// The logarithm by which an answer is off where a share of all such answers is further down: 0 at 1/2.
double off_by(const ModelError& error, double share);

}  // namespace railyard
