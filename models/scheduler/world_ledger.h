#pragma once
// The GPU time of many jobs' nodes, each of it booked once: by group of nodes, and by the kind of jobs that
// held it.

#include <vector>

#include "models/training/training.h"

namespace railyard {

class WorldLedger {
  public:
    WorldLedger() = default;
    WorldLedger(std::size_t groups, std::size_t kinds)
        : kinds_(kinds), ledgers_(groups * (kinds + 1)) {}

    std::size_t kinds() const { return kinds_; }
    std::size_t no_kind() const { return kinds_; }  // of GPUs that no job holds
    void book(std::size_t group, std::size_t kind, Category category, std::int64_t parts,
              Duration time) {
        ledgers_[index(group, kind)].book(category, parts, time);
    }
    const Ledger& of(std::size_t group, std::size_t kind) const {
        return ledgers_[index(group, kind)];
    }
    // That of another time, which has no more groups and the same kinds.
    void add(const WorldLedger& other);
    Ledger total() const;
    GpuNanoseconds held() const;  // of all that, by jobs

  private:
    std::size_t index(std::size_t group, std::size_t kind) const {
        return group * (kinds_ + 1) + kind;
    }

    std::size_t kinds_ = 0;
    std::vector<Ledger> ledgers_;
};

}  // namespace railyard
