#pragma once
// How verbs print an interval of prediction, and how they bring one about for a scenario.

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/study/prediction.h"

namespace railyard {

using ShowNumber = std::function<std::string(double)>;

// A table: each answer with its intervals, and what each doubt leaves open; then the widest, and what would
// shrink it. `show` is by answer.
void print_prediction(const Prediction& prediction, const std::vector<ShowNumber>& show);

nlohmann::ordered_json prediction_json(const Prediction& prediction);

// How often a scenario's estimates are drawn where each draw reads the scenario again: fewer where that
// measures a network, never packet by packet.
std::size_t draws_of(const Scenario& scenario);

// Answers from scenarios that are read with changed numbers; `answer` gives those of one.
Answers read_again(const std::string& path, const ScenarioChanges& changes,
                   std::function<std::vector<double>(const Scenario&)> answer);

// ---- what verbs say of the luck in a network ----

// In a sentence: over how many draws the step is spread, or that it is one draw; empty where there is no
// luck.
std::string draws_text(const Scenario& scenario);

// "9.8 s to 10.2 s": the ends of a range in seconds.
std::string ends_text(const DrawRange& range);

// {"draws", "median", "low", "high"}.
nlohmann::ordered_json range_json(const DrawRange& range);

// That of the steps; of many jobs the number of draws alone.
nlohmann::ordered_json draws_json(const Scenario& scenario);

}  // namespace railyard
