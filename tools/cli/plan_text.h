#pragma once
// What `railyard plan` says of a scenario's plan and of others for its model.

#include <optional>

#include "tools/program/json_text.h"
#include "tools/study/best_plans.h"
#include "tools/study/prediction.h"

namespace railyard {

// What is known of a scenario's plan, of others for its model, and how far each may be off.
struct PlanAnswer {
    const Scenario& given;
    const Scenario& modelled;  // as given, or with its step modelled
    CriticalPath path{};
    std::optional<Duration> measured;
    BestPlans best{};
    bool cut_short = false;
    Prediction prediction{};
    std::optional<StackRange> stacks{};
};

void print_plans(const PlanAnswer& answer);
Json plans_json(const PlanAnswer& answer);

}  // namespace railyard
