#pragma once
// What a report shows of single points beside the database's sums: they are simulated again, which gives the
// same bytes. `windows` remembers the packet windows that they need.

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "models/campaign/campaign.h"
#include "tools/report/results.h"

namespace railyard {

// Replica 0 from its first to its last moment: phases, events, nodes away, what the stores move; of many
// jobs: GPUs held by jobs of each size, jobs that run and wait, events; of a cluster that changes: what is
// there from which day on. `same`: its outcome is the database's. Or { point, problem } when it can't be
// simulated here.
nlohmann::ordered_json report_timeline(const FeaturedPoint& point,
                                       const std::shared_ptr<WindowCache>& windows);

// The point's networks as drawings, each link's load by its colour: what its packet window's traffic (without
// one: a ring over the job's nodes) asks of it, by the paths that the routing gives.
nlohmann::ordered_json report_topologies(const FeaturedPoint& point,
                                         const std::shared_ptr<WindowCache>& windows);

// The estimates that its answer hangs on, most first.
nlohmann::ordered_json report_estimates(const FeaturedPoint& point,
                                        const std::shared_ptr<WindowCache>& windows,
                                        unsigned threads);

}  // namespace railyard
