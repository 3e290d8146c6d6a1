#pragma once
// What goes wrong on one direction of a cable: flipped bits, and times when it is down.

#include <cstdint>
#include <vector>

#include "sim/rng.h"

namespace railyard {

class LinkFaults {
  public:
    // The rate is per bit, after error correction; 0: there are none. A stream of its own for each link.
    LinkFaults(double bit_error_rate, RandomStream random);

    void add_outage(std::int64_t down, std::int64_t up) { outages_.push_back({down, up}); }
    // When the outage of this instant is over.
    std::int64_t up_after(std::int64_t now) const;
    // Whether an outage falls between these instants.
    bool cut(std::int64_t sent, std::int64_t there) const;
    // Whether a packet of so many bytes has wrong bits. One is enough: 1 - (1 - rate)^bits. To be asked
    // once each time that a packet is sent.
    bool flips(std::int64_t bytes);

  private:
    struct Outage {
        std::int64_t down;
        std::int64_t up;
    };
    double rate_;  // of errors per bit, as an exponential's: -log(1 - bit error rate)
    RandomStream random_;
    std::int64_t good_bits_ = 0;  // until the next wrong one
    std::vector<Outage> outages_;
};

}  // namespace railyard
