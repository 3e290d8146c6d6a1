#pragma once
// Finds the nodes that failed too often recently.

#include <deque>
#include <optional>
#include <vector>

#include "models/failure/clock.h"

namespace railyard {

struct QuarantineSpec {
    std::int64_t failures = 0;  // 0: nobody is ever put there
    Duration within{};
    std::optional<Duration> inspection;  // finds what is wrong; otherwise the node never comes back
};

class FailureHistory {
  public:
    FailureHistory(const QuarantineSpec& spec, std::int64_t nodes)
        : spec_(spec), failures_(spec.failures > 0 ? static_cast<std::size_t>(nodes) : 0) {}

    // True when this is the k-th within the window; the count then begins anew.
    bool too_many(std::int64_t node, Instant now) {
        if (spec_.failures == 0) return false;
        std::deque<Instant>& recent = failures_[node];
        recent.push_back(now);
        while (now - recent.front() > spec_.within) recent.pop_front();
        if (static_cast<std::int64_t>(recent.size()) < spec_.failures) return false;
        recent.clear();
        return true;
    }

  private:
    QuarantineSpec spec_;
    std::vector<std::deque<Instant>> failures_;  // by node
};

}  // namespace railyard
