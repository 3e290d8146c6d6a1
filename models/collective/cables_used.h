#pragma once
// Which cables of a network routes pass.

#include <map>
#include <span>
#include <vector>

#include "models/fabric/fabric.h"

namespace railyard {

class CablesUsed {
  public:
    // `topology` must outlive this. Sprayed routes name one cable for all that carry as much: where packets
    // choose, all ways up to the height of a route are used.
    CablesUsed(const Topology& topology, Routing policy);

    void add(VertexId from, VertexId to, std::span<const Usage> route);
    void add(std::span<const Usage> links);  // these alone
    void add(const std::vector<bool>& cables);
    // By cable.
    std::vector<bool> take() const;

  private:
    const Topology& topology_;
    bool sprayed_;
    std::vector<bool> used_;
    std::map<VertexId, int> height_;  // of each NIC's highest route
};

}  // namespace railyard
