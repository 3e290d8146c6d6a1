#pragma once
// Reservations of nodes for maintenance: each begins when it is due, ends after its length, and comes again
// where it repeats.

#include "models/scheduler/world_books.h"
#include "models/scheduler/world_jobs.h"

namespace railyard {

class MaintenanceWindows {
  public:
    // References must outlive it.
    MaintenanceWindows(const WorldClock& clock, const std::vector<Reservation>& reservations,
                       WorldBooks& books)
        : clock_(clock), reservations_(reservations), books_(books) {}

    void start() {
        for (std::uint32_t i = 0; i < reservations_.size(); ++i) {
            clock_.schedule(reservations_[i].start, WorldClock::window_begins, i);
        }
    }
    void begin(std::uint32_t reservation) {
        const Reservation& window = reservations_[reservation];
        mark(window, true);
        clock_.schedule(clock_.now() + window.length, WorldClock::window_ends, reservation);
        const Instant next = clock_.now() + window.every;
        if (window.every == Duration{} || next > Instant(time_max)) return;
        clock_.schedule(next, WorldClock::window_begins, reservation);
    }
    void end(std::uint32_t reservation) { mark(reservations_[reservation], false); }

  private:
    void mark(const Reservation& window, bool begins) {
        for (std::int64_t i = 0; i < window.nodes; ++i) {
            books_.set_maintenance(static_cast<NodeIndex>(window.first_node + i), begins);
        }
    }

    const WorldClock& clock_;
    const std::vector<Reservation>& reservations_;
    WorldBooks& books_;
};

}  // namespace railyard
