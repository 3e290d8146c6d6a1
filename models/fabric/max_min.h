#pragma once
// Max-min fair sharing of links, kept up to date while flows come and go.
//
// An allocation is max-min fair when every flow has a bottleneck: a full link on which no other flow is
// faster. A flow uses `share` of each of its links per byte of its own progress: 1 on a plain path, 1/4 where
// a quarter of its bytes pass; a whole pipelined ring, all of whose hops move at one pace, is one flow.

#include <cstdint>
#include <span>
#include <vector>

#include "models/fabric/routing.h"

namespace railyard {

using FlowId = std::uint32_t;

class MaxMin {
  public:
    // Capacities by link, in bytes/s.
    explicit MaxMin(std::vector<double> capacities);

    // A flow with at least one usage, each link once. Its rate is there after solve().
    FlowId add(std::span<const Usage> usages);
    // The id may be given to another flow afterwards.
    void remove(FlowId flow);
    // Brings the rates up to date: only those that the changes since the last call touch are computed
    // again, and found to be the same as if all were.
    void solve();

    double rate(FlowId flow) const { return flows_[flow].rate; }  // bytes/s; 0 over a dead link
    LinkId bottleneck(FlowId flow) const { return flows_[flow].bottleneck; }
    // Flows whose rate the last solve() computed again.
    std::span<const FlowId> resolved() const { return released_; }

  private:
    struct Crossing {  // one flow on one link, as the flow sees it
        LinkId link = 0;
        std::uint32_t place = 0;  // in the link's list
        float share = 0;
    };
    struct Sharer {  // and as the link does
        FlowId flow = 0;
        float share = 0;
        std::uint32_t crossing = 0;
    };
    struct Flow {
        double rate = 0;
        std::uint32_t first = 0;  // crossing
        std::uint32_t count = 0;  // 0: no flow
        LinkId bottleneck = 0;
        bool released = false;  // this solve() computes its rate again
        bool frozen = false;    // and has done so, in this pass
    };
    struct LinkState {
        double capacity = 0;
        double free_bytes_per_s = 0;  // not taken by fixed and frozen flows
        double rising_shares = 0;     // of released flows that are not frozen yet
        std::uint32_t rising = 0;     // how many they are
        std::uint32_t touched_in = 0;
        bool left = false;  // by a flow since the last solve
        std::vector<Sharer> sharers;
    };
    struct Level {
        double rate;
        LinkId link;
    };

    std::span<Crossing> crossings_of(FlowId flow) {
        return {crossings_.data() + flows_[flow].first, flows_[flow].count};
    }
    double level(const LinkState& link) const;
    void push_level(LinkId link);
    void release(FlowId flow);
    void touch(LinkId link);
    void fill();
    bool release_faster(LinkId link, double than);
    void freeze(FlowId flow, double rate, LinkId bottleneck);
    bool release_unsettled();

    std::vector<Flow> flows_;
    std::vector<Crossing> crossings_;
    std::vector<LinkState> links_;
    std::vector<FlowId> free_flows_;
    std::vector<std::vector<std::uint32_t>> free_crossings_;  // by count: first of a free run
    std::vector<FlowId> added_;
    std::vector<LinkId> left_;  // links that a flow has left since the last solve
    std::vector<FlowId> released_;
    std::vector<LinkId> touched_;
    std::vector<Level> levels_;  // a heap, lowest first; entries may be out of date
    std::uint32_t pass_ = 0;
    std::size_t flow_count_ = 0;
};

}  // namespace railyard
