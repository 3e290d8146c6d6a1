#pragma once
// Where a running job gets its nodes from: the scheduler's side of the bargain.

#include <span>

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

    // A node with nothing wrong leaves instead of the struck one, which stays in the job, broken.
    virtual void misjudge(const Strike& /*strike*/, std::int64_t /*blamed*/,
                          const FailureCause& /*cause*/) {}
    // A healthy node that the job has no use for leaves as a spare.
    virtual void release(std::int64_t /*slot*/) {}
    virtual std::int64_t spares() const { return 0; }
    // The node in a slot, counted from 0; -1: none.
    virtual std::int64_t node_in(std::int64_t slot) const { return slot; }

    // Slots that a failure took at once.
    struct Struck {
        Strike strike;
        std::vector<std::int64_t> slots;
    };
    // What the job meets as soon as it runs: slots whose nodes are broken and still in it, told once, one
    // cause at a time. Empty: nothing.
    virtual Struck still_broken() { return {}; }

    class Waiter {
      public:
        virtual ~Waiter() = default;
        virtual void node_available() = 0;
        // The nodes in these slots fail now. False: the job does not run, and will meet them when it does.
        virtual bool nodes_failed(const Struck& /*struck*/) { return true; }
    };
};

}  // namespace railyard
