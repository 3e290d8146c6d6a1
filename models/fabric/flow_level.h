#pragma once
// Transfers that share links max-min fairly, from their start to their end.
//
// A flow takes no bandwidth for its path's latency, then its fair share until its last byte is out. Time is
// in picoseconds; between two events no rate changes. Ignores: queues, packets, slow start, and that real
// congestion control is fair only roughly.

#include <vector>

#include "models/fabric/max_min.h"
#include "sim/units.h"

namespace railyard {

struct Transfer {
    std::vector<Usage> usages;  // empty: nothing to wait for but the latency
    double bytes = 0;
    Picoseconds start{};
    Picoseconds latency{};
    // It starts when this transfer has ended, and the last byte of that one has left: its sender sends one
    // after another. -1: none.
    std::int64_t after = -1;
    std::int64_t behind = -1;
};

class FlowSimulation {
  public:
    // Capacities by link, in bytes/s; room for about so many transfers.
    explicit FlowSimulation(std::vector<double> capacities, std::size_t transfers = 0);

    // Its index, in order of adding. `after` and `behind` name earlier ones.
    std::size_t add(Transfer transfer);

    // Runs all to their end. Those that can never end, because a link of theirs is dead or they wait for one
    // that cannot, keep an end of `never`.
    void run();

    static constexpr Picoseconds never = Picoseconds::max();
    Picoseconds end(std::size_t transfer) const {
        return state_[transfer].phase == Phase::ended ? state_[transfer].next : never;
    }

  private:
    enum class Phase : std::uint8_t { waiting, moving, ended };
    struct State {
        double bytes_left = 0;
        double rate = 0;
        Picoseconds since{};       // when bytes_left was true
        Picoseconds next = never;  // when it begins to move, or ends, as things are; then its end
        std::uint32_t place = 0;   // in the heap; absent: not there
        FlowId flow = 0;
        Phase phase = Phase::waiting;
        std::uint8_t waits_for = 0;  // predecessors that have not ended
    };

    void schedule(std::uint32_t transfer, Picoseconds next);
    void unschedule(std::uint32_t transfer);
    void sift_up(std::size_t place);
    void sift_down(std::size_t place);
    bool sooner(std::uint32_t a, std::uint32_t b) const;
    void put(std::size_t place, std::uint32_t transfer);
    void begin(std::uint32_t transfer, Picoseconds now);
    void finish(std::uint32_t transfer, Picoseconds now);
    void update(std::uint32_t transfer, Picoseconds now);

    MaxMin shares_;
    std::vector<Transfer> transfers_;
    std::vector<State> state_;
    std::vector<std::uint32_t> transfer_of_;  // of a FlowId
    // Twice a transfer's index, and one more where the other is its second predecessor; or no_transfer.
    std::vector<std::uint32_t> first_follower_;  // of each transfer
    std::vector<std::uint32_t> next_follower_;   // of the same predecessor, by such a number
    // The next instant of each transfer that has one, the soonest first. A heap that knows its members'
    // places: rates change far more often than transfers end, and each change moves an end.
    std::vector<std::uint32_t> heap_;
};

}  // namespace railyard
