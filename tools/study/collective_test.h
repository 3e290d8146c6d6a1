#pragma once
// What nccl-tests would measure: a collective over some of a scenario's GPUs, alone on its network.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/campaign/campaign.h"
#include "models/collective/collective.h"

namespace railyard {

// By message size.
struct CollectiveTime {
    std::int64_t size = 0;   // bytes, as nccl-tests counts them
    std::int64_t count = 0;  // elements
    Choice choice;
    CollectiveCost cost;
    double algbw = 0;  // bytes per second
    double busbw = 0;
    double analytic_s = 0;  // on an ideal network
    DrawRange over_draws;   // seconds
};

struct CollectiveQuestion {
    Collective collective{};
    Wish wish;
    std::optional<std::int64_t> nodes{};  // that the ranks are spread over; none: all
    std::optional<std::int64_t> gpus{};   // ranks; none: all of these nodes
};

// A size as nccl-tests takes it, binary: "64M". Throws ScenarioError, which names the option.
std::int64_t parse_size(const std::string& option, const std::string& text);

class CollectiveTest {
  public:
    // Throws ScenarioError when there are no such ranks, or what is wished for is not to be had.
    CollectiveTest(const Scenario& scenario, const CollectiveQuestion& question);

    CollectiveTime time(std::int64_t bytes) const;
    std::vector<double> times_on_draws(std::int64_t bytes) const;  // seconds
    Collective collective() const { return collective_; }
    // On the draw of the network's hashes in which `largest` bytes take their median.
    const Communicator& communicator(std::int64_t largest) const;
    const Communicator& ideal() const { return ideal_; }
    std::size_t draws() const { return draws_.size(); }

  private:
    double seconds_on(const Communicator& c, double bytes) const;

    Collective collective_;
    Wish wish_;
    Communicator ideal_;
    std::vector<Communicator> draws_;  // of the network's hashes; the ideal network without them
};

}  // namespace railyard
