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
    forward,  // pauses are ignored: what finds no room behind them is lost
    alert,    // the storm is counted, nothing else
};

struct WatchdogSpec {
    Picoseconds poll{};
    Picoseconds detection{};
    Picoseconds restoration{};
    WatchdogAction action = WatchdogAction::none;
    // All switches at multiples of the poll time; else each at an offset of its own, drawn from the seed.
    // They are not started together: an estimate.
    bool polls_together = false;
    // The action drop also discards what arrives by the stormed port in that class, as some ASICs do.
    bool drops_arrivals = false;
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
    // Polls that can change nothing may be left out: of a queue that is not paused, or has nothing waiting,
    // once one has seen it so; of a stormed one while its pause lasts. `now` is the last of the first kind.
    bool wanted(bool paused, bool waiting) const {
        return stormed_ ? !paused : stuck_for_.count() > 0 || (paused && waiting);
    }
    void start(const Counters& now) {
        if (!stormed_) last_ = now;
        watching_ = true;
    }
    void stop() { watching_ = false; }
    bool watching() const { return watching_; }

  private:
    Counters last_;
    Picoseconds stuck_for_{};
    Picoseconds quiet_for_{};
    bool stormed_ = false;
    bool watching_ = false;
};

}  // namespace railyard
