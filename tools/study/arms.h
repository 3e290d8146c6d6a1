#pragma once
// The arms of a study: one scenario under several settings.

#include <string>
#include <vector>

namespace railyard {

struct Arm {
    std::string name;
    std::vector<std::string> settings;  // as --set takes them
};

// `varied`: "KEY=V1,V2", split at commas outside of quotes and brackets; every combination of all of them.
// `named`: "NAME: KEY=V; KEY=V", each of them with every combination. Neither: no arms.
// Throws ScenarioError.
std::vector<Arm> arms_of(const std::vector<std::string>& varied,
                         const std::vector<std::string>& named);

}  // namespace railyard
