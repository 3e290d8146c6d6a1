#pragma once
// How the answer to a question is told: as sections for the terminal and the page, and as JSON.

#include <nlohmann/json_fwd.hpp>

#include "tools/report/decision_page.h"
#include "tools/study/design_answer.h"

namespace railyard {

// A figure of the question's objective: "31.2 MUSD", "54.1 days".
std::string figure_text(const DesignObjective& objective, double value);
// "2.1 MUSD less", "3.2 days more".
std::string change_text(const DesignObjective& objective, double change);

Decision tell_decision(const DesignQuestion& question, const DesignSearch& search,
                       const DesignAnswer& answer, const std::vector<Scenario>& winners);
void print_decision(const Decision& decision);
nlohmann::ordered_json decision_json(const DesignQuestion& question, const DesignSearch& search,
                                     const DesignAnswer& answer,
                                     const std::vector<Scenario>& winners);

}  // namespace railyard
