#include "models/scheduler/fleet_ledger.h"

namespace railyard {

Ledger FleetLedger::total() const {
    Ledger out;
    for (const Ledger& ledger : ledgers_) {
        for (std::size_t i = 0; i < category_count; ++i) {
            const auto category = static_cast<Category>(i);
            out.book(category, ledger.booked(category));
        }
    }
    return out;
}

GpuNanoseconds FleetLedger::held() const {
    GpuNanoseconds sum = 0;
    for (std::size_t i = 0; i < ledgers_.size(); ++i) {
        if (i % (kinds_ + 1) != kinds_) sum += ledgers_[i].total();
    }
    return sum;
}

}  // namespace railyard
