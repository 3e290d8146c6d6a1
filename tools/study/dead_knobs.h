#pragma once
// Keys of a scenario's file that change nothing, whatever they are set to.

#include <string>
#include <vector>

#include "tools/study/trials.h"

namespace railyard {

struct Knob {
    std::string key;
    std::string value;  // as the file has it
    std::vector<std::string>
        tried;          // other values that make a design; none: nothing could be tried
    bool dead = false;  // with each of them every metric of every replica is the same
};

// Each key with a number, a quantity, a truth value or a word of a closed list is set to others. Left out are
// title and how often and how long to simulate. Those that Ctrl-C left are missing.
std::vector<Knob> turn_knobs(const TrialOptions& options, const ScenarioChanges& changes);

}  // namespace railyard
