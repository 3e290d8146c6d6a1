#include "models/fabric/window_cache.h"

#include "sim/error.h"

namespace railyard {

WindowCache::Entry& WindowCache::entry(std::uint64_t key) {
    const std::lock_guard lock(mutex_);
    return entries_[key];
}

std::shared_ptr<const WindowResult> WindowCache::run(Catalogue& catalogue, const Topology& topology,
                                                     const PacketProfile& profile,
                                                     const PacketWindow& window) {
    Entry& known = entry(window_key(catalogue, topology, profile, window));
    const std::lock_guard lock(known.mutex);
    if (!known.result) {
        auto result = std::make_shared<const WindowResult>(
            run_window(catalogue, topology, profile, window, observer_));
        if (result->ending == WindowEnding::cancelled) throw Interrupted();
        known.result = std::move(result);
    }
    return known.result;
}

}  // namespace railyard
