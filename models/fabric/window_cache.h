#pragma once
// Results of packet windows, each run once for as long as somebody needs them.

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "models/fabric/packet_window.h"

namespace railyard {

class WindowCache {
  public:
    // The observer hears of every window that runs, from the threads that run them.
    explicit WindowCache(WindowObserver observer = {}) : observer_(std::move(observer)) {}

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

    WindowObserver observer_;
    std::mutex mutex_;
    std::map<std::uint64_t, Entry> entries_;  // by window_key()
};

}  // namespace railyard
