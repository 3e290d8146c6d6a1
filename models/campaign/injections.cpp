#include "models/campaign/injections.h"

#include <algorithm>

#include "models/campaign/network_faults.h"

namespace railyard {

namespace {

// The cause of this name: the scenario's, or one of the catalogue's, which then strikes only when injected.
std::size_t cause_of(const std::string& name, Catalogue& catalogue, Scenario& s) {
    const auto known = std::ranges::find(s.causes, name, &FailureCause::name);
    const auto index = static_cast<std::size_t>(known - s.causes.begin());
    if (known == s.causes.end()) s.causes.push_back(read_failure_cause(catalogue, name));
    return index;
}

}  // namespace

void read_injections(Section& top, Catalogue& catalogue, Scenario& s) {
    std::vector<std::string> names;
    for (const FailureCause& cause : s.causes) names.push_back(cause.name);
    for (const std::string& name : Catalogue::names("failure_response")) {
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    if (top.describing()) names.clear();  // a scenario names its own
    for (Section& section : top.sections("inject", "A failure at a known time")) {
        const InjectionSpec spec = read_injection(section, names);
        if (section.describing() || !section.ok()) continue;
        warn_if_over(section, "at", spec.at, s.duration);
        if (spec.names_part()) {
            add_outage(section, spec, s);
            continue;
        }
        const std::size_t index = cause_of(spec.cause, catalogue, s);
        const FailureCause& cause = s.causes[index];
        const bool domain = cause.domain != DomainKind::node;
        check_injection(section, spec, cause,
                        domain ? s.nodes.domains[static_cast<std::size_t>(cause.domain)].count()
                               : s.nodes.nodes);
        s.nodes.injected.push_back({spec.at, index, spec.unit, spec.duration});
    }
}

}  // namespace railyard
