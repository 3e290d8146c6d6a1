#pragma once
// [[failures.storm]]: NICs that pause the compute network now and then.

#include <cstdint>
#include <optional>
#include <string>

#include "models/catalogue/catalogue.h"
#include "models/failure/failure_spec.h"
#include "sim/config.h"

namespace railyard {

// A storm as it is written. What it does to the network follows from a packet window.
struct StormSpec {
    FailureCause cause;
    std::string nic = "node-0.nic-0";  // of the window, which stands for all
    std::optional<Duration> duration;  // none: for ever
    Duration found_after{};            // until somebody finds the NIC that no watchdog has named
};

struct StormContext {
    std::int64_t nics_per_node = 1;
    std::int64_t job_nodes = 1;
    bool many_jobs = false;
};
StormSpec read_storm(Section& section, Catalogue& catalogue, const StormContext& context);

}  // namespace railyard
