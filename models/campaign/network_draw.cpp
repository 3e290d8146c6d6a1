#include "models/campaign/network_draw.h"

#include <algorithm>
#include <numeric>

#include "models/campaign/scenario.h"
#include "models/campaign/world.h"
#include "sim/check.h"

namespace railyard {

namespace {

bool by_network(const Scenario& s) {
    return s.fidelity != Fidelity::analytic && !s.networks[0].hash_given;
}

// The job's nodes, when any node of the cluster may be a spare. The first, which slow parts are tried on, is
// always one of them; nodes with a fault are where the scenario says.
std::vector<std::int64_t> draw_nodes(const Scenario& s, RandomStream& stream) {
    std::vector<std::uint8_t> fixed(static_cast<std::size_t>(s.nodes.nodes));
    fixed[0] = 1;
    for (const PartFault& fault : s.faults) fixed[static_cast<std::size_t>(fault.node)] = 1;
    std::uint64_t movable = 0;
    auto wanted = static_cast<std::uint64_t>(s.job.nodes);
    for (std::int64_t n = 0; n < s.nodes.nodes; ++n) {
        if (fixed[static_cast<std::size_t>(n)] == 0) {
            ++movable;
        } else if (n < s.job.nodes) {
            --wanted;
        }
    }
    std::vector<std::int64_t> nodes;
    for (std::int64_t n = 0; n < s.nodes.nodes; ++n) {
        if (fixed[static_cast<std::size_t>(n)] != 0) {
            if (n < s.job.nodes) nodes.push_back(n);
            continue;
        }
        if (stream.below(movable) < wanted) {
            nodes.push_back(n);
            --wanted;
        }
        --movable;
    }
    RY_CHECK(static_cast<std::int64_t>(nodes.size()) == s.job.nodes);
    return nodes;
}

}  // namespace

bool hashes_are_drawn(const Scenario& s) {
    return by_network(s) && hashes(s.networks[0].flow_routing().policy);
}

std::vector<NetworkDraw> draw_networks(const Scenario& s) {
    if (s.world && std::ranges::none_of(s.world->spec.kinds,
                                        [](const WorldJobKind& kind) { return bool{kind.step}; })) {
        return {};  // no step is computed
    }
    const bool spares = !s.world && s.nodes.nodes > s.job.nodes;
    if (s.network_draws < 2 || !by_network(s) || (!hashes_are_drawn(s) && !spares)) return {};
    std::vector<NetworkDraw> draws(static_cast<std::size_t>(s.network_draws));
    for (std::size_t k = 0; k < draws.size(); ++k) {
        draws[k].hash_seed = RandomStream(s.seed, k, "network.hash").next_u64();
        if (!spares) continue;
        RandomStream stream(s.seed, k, "network.nodes");
        draws[k].nodes = draw_nodes(s, stream);
    }
    return draws;
}

void drop_equal_draws(std::vector<NetworkDraw>& draws) {
    const bool equal = std::ranges::all_of(draws, [&](const NetworkDraw& draw) {
        return draw.step.duration() == draws[0].step.duration() &&
               draw.step.exposed_communication == draws[0].step.exposed_communication;
    });
    if (equal) draws.clear();
}

JobSpec job_of_replica(const Scenario& s, std::int64_t replica) {
    JobSpec job = s.job;
    if (s.draws.empty()) return job;
    const NetworkDraw& draw = s.draws[static_cast<std::size_t>(replica) % s.draws.size()];
    static_cast<JobSteps&>(job) = draw;
    job.step.data_wait = wait_for_batch(s.job.step.late(job.step.beside_data()));
    return job;
}

const NetworkDraw* usual_draw(const Scenario& s) {
    std::vector<double> lengths;
    for (const NetworkDraw& draw : s.draws) lengths.push_back(seconds(draw.step.duration()));
    return lengths.empty() ? nullptr : &s.draws[middle_of(lengths)];
}

std::size_t middle_of(std::span<const double> values) {
    RY_CHECK(!values.empty());
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    return order[(order.size() - 1) / 2];
}

DrawRange range_of_draws(std::span<const double> values) {
    if (values.empty()) return {};
    const auto ends = std::minmax_element(values.begin(), values.end());
    return {values.size(), values[middle_of(values)], *ends.first, *ends.second};
}

}  // namespace railyard
