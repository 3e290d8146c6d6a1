#include "models/storage/failing_store.h"

#include <algorithm>

namespace railyard {

StoreSupply supply_of(const StoreLimits& limits) {
    StoreSupply out;
    out.read = std::ranges::min(limits.read, {}, &Ceiling::bandwidth).bandwidth;
    out.write = std::ranges::min(limits.write, {}, &Ceiling::bandwidth).bandwidth;
    out.creates_per_s = limits.creates_per_s;
    out.opens_per_s = limits.opens_per_s;
    out.write_buffer = limits.write_buffer;
    out.drain = limits.drain;
    return out;
}

FailingStore::FailingStore(CampaignEngine& engine, StoreService& service, std::size_t store,
                           const StorageSystem& system, const StoreFailureSpec& spec,
                           DataOwner& owner, std::uint64_t seed, std::uint64_t replica)
    : service_(service),
      store_(store),
      system_(system),
      owner_(owner),
      protection_(system.protection()),
      failures_(engine, spec, protection_, *this, seed, replica) {}

void FailingStore::store_changed() {
    if (failures_.state() == known_) return;
    known_ = failures_.state();
    service_.change_supply(store_, supply_of(system_.limits(known_)));
}

bool FailingStore::stands_still(const StoreState& state) const {
    const StoreSupply left = supply_of(system_.limits(state));
    return left.read.bits_per_second() == 0 && left.write.bits_per_second() == 0;
}

}  // namespace railyard
