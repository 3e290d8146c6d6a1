#pragma once
// The estimates that a verdict hangs on, as people and programs read them.

#include <nlohmann/json_fwd.hpp>

#include "tools/study/verdict_estimates.h"

namespace railyard {

// The three that move the difference most, all that turn it, and whether the verdict survives.
void print_verdict_estimates(const VerdictEstimates& found, const std::string& first,
                             const std::string& second);
nlohmann::ordered_json verdict_estimates_json(const VerdictEstimates& found,
                                              const std::string& first, const std::string& second);
// Prints the estimates that one design's answer hangs on.
void print_answer_estimates(const VerdictEstimates& found);
// Said once by each verb that tries estimates, where some have no range of their own.
void print_default_range();

}  // namespace railyard
