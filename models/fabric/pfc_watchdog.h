#pragma once
// The PFC watchdog of one egress queue: what a switch does about a neighbour that pauses it for ever.
//
//                   stuck for detection_time
//                  ------------------------->
//     operational                              stormed
//                  <-------------------------
//                no pause for restoration_time
//
// It looks once per poll. Stuck in a poll: something waits, nothing was sent, and the queue was paused for
// more than 99 % of it. Source: SONiC's pfcwd; the profiles differ in the three times.

#include <cstdint>
#include <string>

#include "models/catalogue/catalogue.h"
#include "sim/units.h"

namespace railyard {

enum class WatchdogAction : std::uint8_t {
    none,     // there is no watchdog
    drop,     // what waits and what arrives is thrown away
    forward,  // pauses are ignored
    alert,    // the storm is counted, nothing else
};

struct WatchdogSpec {
    Picoseconds poll{};
    Picoseconds detection{};
    Picoseconds restoration{};
    WatchdogAction action = WatchdogAction::none;
};
// The catalogue's profile of this name, for a switch with so many ports (SONiC polls larger ones less often).
WatchdogSpec read_watchdog(Catalogue& catalogue, const std::string& name, std::int64_t ports);

class PfcWatchdog {
  public:
    // What a poll sees. The counters run from the beginning of time.
    struct Counters {
        bool waiting = false;
        std::int64_t packets_sent = 0;
        Picoseconds paused{};
    };
    enum class Change : std::uint8_t { none, detected, restored };

    Change poll(const WatchdogSpec& spec, const Counters& now);
    bool stormed() const { return stormed_; }

  private:
    Counters last_;
    Picoseconds stuck_for_{};
    Picoseconds quiet_for_{};
    bool stormed_ = false;
};

}  // namespace railyard
