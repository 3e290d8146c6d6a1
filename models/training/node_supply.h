#pragma once
// Where a running job gets its nodes from: the scheduler's side of the bargain.

#include "models/failure/failure.h"

namespace railyard {

class NodeSupply {
  public:
    virtual ~NodeSupply() = default;
    // How much more often than the best the node in this slot fails, relative to the worst: (0, 1].
    virtual double acceptance(std::int64_t slot) const = 0;
    // The struck node leaves the job and comes back as a spare after a reset or a repair.
    virtual void remove(const Strike& strike, const FailureCause& cause) = 0;
    // A spare takes the empty `slot`; false when there is none. When one appears later, the job
    // that was refused is told through node_available().
    virtual bool fill(std::int64_t slot) = 0;

    class Waiter {
      public:
        virtual ~Waiter() = default;
        virtual void node_available() = 0;
    };
};

}  // namespace railyard
