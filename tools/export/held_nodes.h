#pragma once
// Which nodes one job holds, of a replica's record.

#include <algorithm>
#include <vector>

#include "models/campaign/campaign.h"

namespace railyard {

// Asked from one time to a later one.
class HeldNodes {
  public:
    HeldNodes(const Scenario& s, const ReplicaTrace& record) : moves_(record.moves) {
        for (std::int64_t i = 0; i < s.job.nodes; ++i) slots_.push_back(i);
    }
    std::vector<std::int64_t> at(Instant now) {
        for (; next_ < moves_.size() && moves_[next_].at <= now; ++next_) {
            slots_[static_cast<std::size_t>(moves_[next_].slot)] = moves_[next_].node;
        }
        std::vector<std::int64_t> out;
        std::ranges::copy_if(slots_, std::back_inserter(out), [](auto node) { return node >= 0; });
        std::ranges::sort(out);
        return out;
    }

  private:
    const std::vector<NodeMove>& moves_;
    std::size_t next_ = 0;
    std::vector<std::int64_t> slots_;
};

}  // namespace railyard
