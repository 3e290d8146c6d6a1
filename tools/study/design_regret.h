#pragma once
// What a choice may be regretted by: designs in many worlds, each a draw of all that nobody knows.

#include <string>
#include <vector>

#include "sim/comparison.h"

namespace railyard {

// values[design][world], and inputs[input][world]: what was drawn, as a share of its range.
struct Worlds {
    std::vector<std::vector<double>> values;
    std::vector<std::string> inputs;
    std::vector<std::vector<double>> shares;
};

struct Regret {
    double mean = 0;        // how much worse than the world's best design, over the worlds
    double high = 0;        // 95 % of the worlds have no more
    double best_share = 0;  // of the worlds in which the design is the best; ties go to the first
};
// By design; worlds in which a design has no value are left out for all.
std::vector<Regret> regrets(const Worlds& worlds, Better better);
// regret[chosen][world's best]: the mean regret over the worlds in which another is best, times the share of
// these worlds: a row sums to the mean regret of its design.
std::vector<std::vector<double>> regret_table(const Worlds& worlds, Better better);

// What knowing an input alone before choosing is worth: the mean of the best design at each of its values,
// less that of the best design without knowing, with each design a straight line in the input (least
// squares). Largest first; left out are those worth no more than the best of all inputs is by chance, in
// 95 % of shuffled worlds: lines through few worlds cross by luck alone.
struct InputWorth {
    std::string input;
    double worth = 0;
};
std::vector<InputWorth> worth_of_inputs(const Worlds& worlds, Better better);

}  // namespace railyard
