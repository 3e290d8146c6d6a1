#include "models/scheduler/world_ledger.h"

#include "sim/check.h"

namespace railyard {

void WorldLedger::add(const WorldLedger& other) {
    RY_CHECK(other.kinds_ == kinds_ && other.ledgers_.size() <= ledgers_.size());
    for (std::size_t i = 0; i < other.ledgers_.size(); ++i) ledgers_[i].add(other.ledgers_[i]);
}

Ledger WorldLedger::total() const {
    Ledger out;
    for (const Ledger& ledger : ledgers_) out.add(ledger);
    return out;
}

GpuNanoseconds WorldLedger::held() const {
    GpuNanoseconds sum = 0;
    for (std::size_t i = 0; i < ledgers_.size(); ++i) {
        if (i % (kinds_ + 1) != kinds_) sum += ledgers_[i].total();
    }
    return sum;
}

}  // namespace railyard
