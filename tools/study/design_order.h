#pragma once
// What ordering a design takes: its bill of materials with prices, and its scenario, ready to run.

#include <optional>

#include "tools/study/design_question.h"
#include "tools/study/design_search.h"

namespace railyard {

struct OrderLine {
    std::string what;
    double quantity = 0;
    std::string per;            // what is counted
    std::optional<double> usd;  // in all, at typical prices; none: no [cost]
};
// What is there from a day on, of a cluster that changes.
struct PhaseLine {
    std::string from;
    std::string nodes;
    double bought = 0;  // USD, that day
    double a_year = 0;  // USD: what is paid every year from then on
};
std::vector<PhaseLine> phase_lines(const Scenario& scenario);

std::vector<OrderLine> order_of(const Scenario& scenario);

// The settings of a design without those that only the search needs.
std::vector<std::string> own_settings(const DesignQuestion& question, const SearchedDesign& design);
// The design as a scenario's text that runs from any folder but for the files that it names, which are
// where they are.
std::string scenario_text(const DesignQuestion& question, const SearchedDesign& design,
                          const std::string& title);

}  // namespace railyard
