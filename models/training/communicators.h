#pragma once
// The communicators of a parallel plan: groups of `ranks` ranks that are `stride` apart, all groups of a kind
// talking at once.

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "models/collective/collective.h"

namespace railyard {

// A collective that a step asks for, `count` times one after another.
enum class CallPurpose : std::uint8_t { tensor, context, expert, gradients, weights };
struct CollectiveCall {
    CallPurpose purpose = CallPurpose::tensor;
    Collective collective = Collective::all_reduce;
    std::int64_t stride = 1;
    std::int64_t ranks = 1;
    double bytes = 0;  // as collective_cost() counts them
    double count = 1;
};

class Communicators {
  public:
    // On an ideal network: each group has its GPUs' share of the nodes' NICs, and nobody else's traffic
    // is in the way. `sharp`: the switches reduce.
    Communicators(const CollectiveConstants& constants, const Node& node, bool sharp = false)
        : constants_(constants), node_(node), sharp_(sharp) {}

    // On these nodes of this network instead, whose GPUs are the ranks in their order. Each kind of group is
    // measured when it is first asked for.
    void run_on(GpuNetwork network, std::vector<std::int64_t> nodes);

    const Node& node() const { return node_; }

    // `nics` of each node are used, all when 0. Computed once, then remembered. Throws NoPath when
    // the network has no path left between two of a group's ranks.
    const Communicator& of(Collective collective, std::int64_t stride, std::int64_t ranks,
                           std::int64_t nics = 0);

    // Calls that a step makes are added to `calls` from now on; null: no longer.
    void note_calls(std::vector<CollectiveCall>* calls) { calls_ = calls; }
    void note(const CollectiveCall& call) {
        if (calls_ != nullptr) calls_->push_back(call);
    }

    // Those that have been asked for and whose traffic passes between switches. To be slowed down.
    std::vector<Communicator*> between_switches();

  private:
    GpuGroups::List groups(std::int64_t stride, std::int64_t ranks) const;

    CollectiveConstants constants_;
    Node node_;
    bool sharp_;
    std::optional<GpuNetwork> network_;
    std::vector<std::int64_t> nodes_;
    Fingerprint place_;  // of the nodes
    std::map<std::tuple<Traffic, std::int64_t, std::int64_t, std::int64_t>, Communicator> known_;
    std::vector<CollectiveCall>* calls_ = nullptr;
};

}  // namespace railyard
