#pragma once
// Small networks whose figures have closed forms, as the models make them.

#include <cstdint>
#include <vector>

#include "models/fabric/fabric.h"
#include "tests/laws/oracles/ns3_runs.h"

namespace railyard {

struct TreeSize {
    std::int64_t nics = 0;
    std::int64_t switches = 0;
};
// The largest fat-tree of so many tiers, 2 or 3, that switches with k ports can be cabled into, without
// oversubscription.
TreeSize largest_tree(std::int64_t k, std::int64_t tiers);

// Flows from as many NICs on one leaf to as many on another, hashed onto equal links between them.
class HashedLinks {
  public:
    HashedLinks(std::int64_t flows, std::int64_t links);
    // By Monte Carlo, over connections drawn afresh:
    double most_over_mean();  // E[flows on the fullest link] / (flows / links)
    double links_used();      // E[share of links with a flow]
    // P(no two flows share a link), by splitting: a flow is added at a time to assignments without a
    // collision, and those that still have none go on; the product of the shares that do.
    double no_collision();

  private:
    std::size_t link_of(std::int64_t flow, std::uint64_t label);
    std::int64_t draws() const;
    template <class Of>
    double mean_over_draws(Of of);  // of(flows on each link)

    Topology topology_;
    Router router_;
    std::int64_t flows_;
    std::size_t links_;
    std::vector<std::size_t> link_number_;  // of each link between the leaves
    std::vector<Usage> path_;
};

// The packets of N flows of `bytes` that come out of one port of this rate, first to last.
Picoseconds incast_drain(int flows, std::int64_t bytes, std::int64_t payload_bytes,
                         std::int64_t wire_bytes, Bandwidth rate);

// The least headroom with which the worst traffic loses nothing: the pause waits behind a full packet, and
// reaches its sender just after that has begun another. Ends react at once, pause frames have no length.
std::int64_t headroom_needed(Bandwidth rate, Picoseconds propagation, std::int64_t mtu_bytes);

// How long a sender waits for one pause frame whose pauser is not heard again.
Picoseconds pause_of(std::int64_t quanta, Bandwidth rate);

// A flow over all links of a chain, and so many others on each: its share of the rate, max-min fair.
double parking_lot_share(std::int64_t hops, std::int64_t cross_flows);

}  // namespace railyard
