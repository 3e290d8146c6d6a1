#pragma once
// A question's limits on its designs: which of them breaks which, and what to say when none keeps all.

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/campaign/campaign.h"
#include "tools/study/design_question.h"

namespace railyard {

constexpr double seconds_per_day = 86400;
// A replica's metric by its name; not a number where it has none.
double named_value(std::span<const Metric> metrics, std::string_view name);

struct DesignFacts;
struct SearchedDesign;

// The first limit that a design breaks whatever happens: "capital"; empty: none.
std::string broken_limit(const DesignQuestion& question, const DesignFacts& facts);
// Whether a replica kept the deadline and what may be spent.
bool keeps_limits(const DesignQuestion& question, const DesignFacts& facts,
                  std::span<const Metric> metrics);

// What a front is of: cost, days or the objective, and power.
std::vector<std::string> figure_names(const DesignQuestion& question);
std::vector<double> figures_of_replica(const DesignQuestion& question, const DesignFacts& facts,
                                       std::span<const Metric> metrics);
// What they are at least. Empty: not known.
std::vector<double> least_figures(const DesignQuestion& question, const DesignFacts& facts);

// Throws ScenarioError when no design is possible and keeps what is known before anything runs.
void check_limits(const DesignQuestion& question, const std::vector<SearchedDesign>& designs);
// Throws ScenarioError when a limit, or the objective, is of a metric that no replica has had so far.
void check_metrics(const DesignQuestion& question, const std::set<std::string>& had);
// Throws ScenarioError when none of those that ran keeps the limits, or all have the same figure.
void check_outcome(const DesignQuestion& question, const std::vector<SearchedDesign>& designs,
                   const std::vector<std::size_t>& field);

}  // namespace railyard
