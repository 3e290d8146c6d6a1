#pragma once
// Lays the switches and cables of a network, level by level.

#include <span>
#include <string>
#include <vector>

#include "models/fabric/topology.h"

namespace railyard {

// How groups of switches meet above: `links` up from each, spread evenly over `switches`; 0 of them when the
// ports of those above don't do.
struct FanOut {
    std::int64_t links = 0;
    std::int64_t switches = 0;
};
struct TreePlan;  // topology_tree.cpp

// What a cable takes of a switch's own ports: several where it is faster, a part of one that splits.
double ports_taken(const SwitchModel& model, Bandwidth cable);
constexpr double port_rounding = 1e-6;  // of sums of parts of ports

class TopologyBuilder : public Topology {
  public:
    void start(const TopologySpec& spec);
    VertexId add_switch(int level, const SwitchModel& model);
    void add_cable(VertexId low, VertexId high, Bandwidth bandwidth, Metres length);
    // A Clos tree over the NICs of each leaf, one port of this rate each; false, and why in `problem`, when
    // ports run out.
    bool add_tree(const TopologySpec& spec, const std::vector<std::vector<VertexId>>& leaves,
                  Bandwidth port, std::string& problem);
    void set_position(VertexId nic, std::uint32_t position) { wiring_->position[nic] = position; }
    void set_names(const std::vector<std::string>& switches) { wiring_->given_name = switches; }
    void finish();  // sorts the links by vertex

  private:
    void add_pods(const TopologySpec& spec, const TreePlan& plan, std::span<const VertexId> leaf_of,
                  Bandwidth port);
    std::vector<VertexId> add_above(int level, const SwitchModel& model, const FanOut& fan,
                                    std::span<const VertexId> below, Bandwidth port, Metres length);
    void add_site_cores(const TopologySpec& spec, const FanOut& fan, std::size_t group,
                        std::span<const VertexId> spines, Bandwidth port);
};

}  // namespace railyard
