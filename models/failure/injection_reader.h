#pragma once
// [[inject]]: failures at known times.

#include <optional>
#include <string>
#include <vector>

#include "models/failure/failure_spec.h"
#include "sim/config.h"

namespace railyard {

// An [[inject]] as it is written: a cause, or a part of the compute network.
struct InjectionSpec {
    Duration at{};
    std::string cause;
    std::int64_t unit = 0;  // node, or domain of the cause's kind
    std::optional<Duration> duration;
    // Instead of a cause: a switch, NIC or plane, or a cable by its ends.
    std::string part;
    std::string from;
    std::string to;
    double speed = 0;  // that such a part has left

    bool names_part() const { return !part.empty() || !from.empty() || !to.empty(); }
};
// `causes`: the names to choose from.
InjectionSpec read_injection(Section& section, const std::vector<std::string>& causes);

// Whether there is such a unit: a node, or one of the domains of the strike's cause. And whether the cause
// takes something out of service, if a duration is given.
void check_injection(Section& section, const InjectionSpec& spec, const FailureCause& cause,
                     std::int64_t units);

// Warns of a key whose time comes after the campaign's end; `campaign`: its length, zero for none.
void warn_if_over(Section& section, const char* key, Duration at, Duration campaign);

}  // namespace railyard
