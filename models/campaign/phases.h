#pragma once
// [[phase]]: a cluster that is another one from a day on: it grows, shrinks, or its nodes are replaced. Each
// phase is a campaign of its own on all that is there by then; what they have done is added up, and what
// differs between two is bought or sold on the day between them. Each is read as the whole campaign would be
// and then cut to its days.

#include <string>
#include <vector>

#include "models/campaign/campaign.h"

namespace railyard {

struct PhaseSpec {
    std::string name;  // its day
    Duration from{};   // after run.start
    Duration until{};
    Duration stop{};
    std::string day;  // as the file has it
    Value set;
    Diagnostic at;  // where it says its day, for errors
};

std::vector<Section> phase_sections(Section& top);
PhaseSpec read_phase(Section& phase);
struct PhaseDays {
    std::string start;
    std::string ready;
};
// Read from [run]. Given without phases, run.start is an error.
PhaseDays read_phase_days(Section& run, bool phased);

// Reads the phases and takes their keys out of the document. Empty: the cluster stays as it is. The first is
// the document's own. `allowed`: else it is said that there are some.
std::vector<PhaseSpec> take_phases(Document& document, ValueReader& values, bool allowed);
// The scenario of all of them. Throws ScenarioError with the day of the phase that is wrong.
Scenario load_phases(const Document& document, std::vector<PhaseSpec> phases,
                     ScenarioChanges changes);

// What phase k, from 0, has done: "phase_2_energy".
std::string phase_metric(std::size_t k, std::string_view name);
// A replica of each phase, one after the other.
ReplicaResult run_phases(const Scenario& scenario, std::int64_t index, bool log_events,
                         const TakeJob& jobs);

}  // namespace railyard
