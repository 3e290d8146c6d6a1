#pragma once
// What a job reads from stores before it goes on, all at once.

#include <optional>
#include <utility>
#include <vector>

#include "models/storage/storage.h"

namespace railyard {

class StoreReads {
  public:
    // All references must outlive it.
    StoreReads(StoreService& stores, std::size_t client, StoreService::Client& owner)
        : stores_(stores), client_(client), owner_(owner) {}

    bool under_way() const { return !reads_.empty(); }
    void begin(const TransferSpec& spec) {
        if (reads_.empty()) limit_.reset();
        reads_.push_back(stores_.start(client_, spec, owner_));
    }
    // False: it is none of them.
    bool done(StoreService::TransferId transfer) {
        if (std::erase(reads_, transfer) == 0) return false;
        share_limit();
        return true;
    }
    // They have one way: all together move no faster, from now on.
    void limit(Bandwidth cap, Wall wall) {
        limit_ = {cap, wall};
        share_limit();
    }
    // What they have waited for is added.
    void cancel(WallTimes& walls) {
        for (const StoreService::TransferId read : std::exchange(reads_, {})) {
            walls.add(stores_.cancel(read).walls);
        }
    }

  private:
    void share_limit() {
        if (!limit_ || reads_.empty()) return;
        const auto [cap, wall] = *limit_;
        const Bandwidth each = cap * (1.0 / real(reads_.size()));
        for (const StoreService::TransferId read : reads_) stores_.change_cap(read, each, wall);
    }

    StoreService& stores_;
    std::size_t client_;
    StoreService::Client& owner_;
    std::vector<StoreService::TransferId> reads_;
    std::optional<std::pair<Bandwidth, Wall>> limit_;
};

}  // namespace railyard
