#pragma once
// The credits of one virtual lane of a link, as InfiniBand counts them: blocks of room in the buffer at its
// end that the sender may still fill.
//
// The sender takes blocks as a packet's transmission begins. The receiver gives them back as the packet
// leaves its buffer, and they count when that update has travelled back. Updates under way stand in a queue
// that is read when somebody wants to send: they cost no event of their own unless the sender waits.

#include <cstdint>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "sim/check.h"

namespace railyard {

struct CreditSpec {
    std::int64_t block_bytes = 64;
    // A packet that has waited so long for credits at the head of a switch's queue is dropped (the HOQ
    // lifetime); 0: never. The second is that of ports that lead to NICs.
    Picoseconds lifetime{};
    Picoseconds leaf_lifetime{};
    // After so many in a row a lane stalls: for stall_lifetimes it throws away all that it is to send.
    // 0: never.
    std::int64_t stall_count = 0;
    std::int64_t leaf_stall_count = 0;
    static constexpr int stall_lifetimes = 8;  // InfiniBand specification, volume 1

    std::int64_t blocks(std::int64_t bytes) const {
        return (bytes + block_bytes - 1) / block_bytes;
    }
};
// The catalogue's [infiniband].
CreditSpec read_credits(Catalogue& catalogue);

class LinkCredits {
  public:
    static constexpr std::int64_t never = INT64_MAX;

    void open(std::int64_t blocks) { total_ = free_ = blocks; }
    std::int64_t total() const { return total_; }

    std::int64_t available(std::int64_t now) {
        for (; next_ < updates_.size() && updates_[next_].arrives <= now; ++next_) {
            free_ += updates_[next_].blocks;
        }
        return free_;
    }
    void take(std::int64_t blocks) {
        RY_CHECK(blocks <= free_);
        free_ -= blocks;
        outlived = 0;
    }
    // Updates arrive in the order given.
    void give(std::int64_t blocks, std::int64_t arrives) {
        if (next_ > updates_.size() / 2) {
            updates_.erase(updates_.begin(), updates_.begin() + next_);
            next_ = 0;
        }
        updates_.push_back({arrives, blocks});
    }
    // When so many are available, as far as updates are under way.
    std::int64_t when(std::int64_t blocks) const {
        std::int64_t sum = free_;
        for (std::size_t i = next_; i < updates_.size(); ++i) {
            sum += updates_[i].blocks;
            if (sum >= blocks) return updates_[i].arrives;
        }
        return never;
    }
    // Free, or about to be.
    std::int64_t returned() const {
        std::int64_t sum = free_;
        for (std::size_t i = next_; i < updates_.size(); ++i) sum += updates_[i].blocks;
        return sum;
    }

    std::int64_t withheld = 0;       // blocks that the receiver could give back and does not
    std::int64_t wake_at = never;    // the sender waits for an update that arrives then
    std::int64_t waits_since = 0;    // if it waits: the packet at the head
    std::int64_t waited_until = -1;  // the last time that it did
    bool lifetime_pending = false;   // an event will look how long
    bool stalled = false;            // it throws away what it is to send
    std::int64_t outlived = 0;       // packets in a row that waited for a lifetime

  private:
    struct Update {
        std::int64_t arrives;
        std::int64_t blocks;
    };
    std::int64_t total_ = 0;
    std::int64_t free_ = 0;
    std::vector<Update> updates_;
    std::size_t next_ = 0;
};

}  // namespace railyard
