#pragma once
// What luck there is in a network, as draws: the seeds of its hashes, and which of the cluster's nodes the
// job has.
//
// Draw k is made of the streams (seed, k, "network.hash") and (seed, k, "network.nodes") and nothing else, so
// two designs have the same luck. Replica r has draw r modulo their number, to its end. models/README.md says
// why.

#include <cstdint>
#include <span>
#include <vector>

#include "models/training/training.h"

namespace railyard {

struct Scenario;

struct NetworkDraw : JobSteps {
    std::uint64_t hash_seed = 0;
    // The job's, in the order of its slots; none: the first of the cluster.
    std::vector<std::int64_t> nodes;
};

// True when steps depend on switches' hashes and the scenario gives no hash_seed.
bool hashes_are_drawn(const Scenario& scenario);

// As many as run.network_draws says; none where no step depends on any luck. Their steps are not set.
std::vector<NetworkDraw> draw_networks(const Scenario& scenario);

// Drops all draws when they come to the same: then the network has nothing random.
void drop_equal_draws(std::vector<NetworkDraw>& draws);

// The draw with the median step, for where one figure must stand for all; none without draws.
const NetworkDraw* usual_draw(const Scenario& scenario);

// The scenario's job with the steps of a replica's draw.
JobSpec job_of_replica(const Scenario& scenario, std::int64_t replica);

// Over the draws; the middle one is the lower of two.
struct DrawRange {
    std::size_t draws = 0;
    double median = 0;
    double low = 0;
    double high = 0;
};
DrawRange range_of_draws(std::span<const double> values);
std::size_t middle_of(std::span<const double> values);  // the median's index

}  // namespace railyard
