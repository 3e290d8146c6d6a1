#pragma once
// Results of packet windows, each run once for as long as somebody needs them.

#include <map>
#include <memory>
#include <mutex>

#include "models/fabric/packet_window.h"

namespace railyard {

class WindowCache {
  public:
    // `cancelled`, if there is one, ends whatever runs; it must outlive this.
    explicit WindowCache(const std::atomic<bool>* cancelled = nullptr) : cancelled_(cancelled) {}

    // What the window comes to. Of several that ask for equal windows one runs it and the others wait; those
    // with other windows don't. Throws Interrupted.
    std::shared_ptr<const WindowResult> run(Catalogue& catalogue, const Topology& topology,
                                            const PacketProfile& profile,
                                            const PacketWindow& window);

  private:
    struct Entry {
        std::mutex mutex;  // held while it runs
        std::shared_ptr<const WindowResult> result;
    };
    Entry& entry(std::uint64_t key);

    const std::atomic<bool>* cancelled_;
    std::mutex mutex_;
    std::map<std::uint64_t, Entry> entries_;  // by window_key()
};

}  // namespace railyard
