#pragma once
// What a cable is made of, by kind of optics: how often it flaps, becomes dirty and dies, and what its errors
// leave of a link.
//
// Bits come wrong at a rate before error correction. A codeword of Reed-Solomon (544,514) has 544 symbols of
// ten bits. It is mended when up to 15 of them are wrong; else it is lost, and every frame in it:
//
//     s = 1 - (1 - rate)^10        P = sum over i > 15 of C(544, i) s^i (1 - s)^(544 - i)
//
// A frame of b bits touches b / 5440 codewords. At 2.4e-4, the limit for receivers, that is a rate of some
// 1e-15 after correction; a sound cable at 1e-8 loses nothing in a lifetime, one at 1e-3 a frame in some
// thousand.
//
// Left out: errors that come in bursts (a receiver's decisions feed on each other), which make P larger, and
// the interleaving against them.

#include <string>

#include "models/fabric/packet_engine.h"

namespace railyard {

// One cable with both its ends.
struct Optics {
    std::string name;                 // its catalogue entry
    double dirty_bit_error_rate = 0;  // before correction
    Rate dirty_rate;                  // how often a sound one becomes so
    Duration dirty_time{};            // until it is found and cleaned
    Rate flap_rate;
    Duration flap_time{};  // it carries nothing
    Rate failure_rate;
    Duration repair_time{};
};
Optics read_optics(Catalogue& catalogue, const std::string& name);

// Lost codewords, as a rate of wrong bits: a frame of b bits is lost with 1 - (1 - rate)^b.
double rate_after_correction(double bit_error_rate);

// What is left of a link's rate for payload, with errors at this rate after correction. With link-level retry
// what was sent in a round trip of the link is sent again with each frame; without it, what go-back-N sent
// in a round trip of the network, or the frame alone.
double share_left(const PacketSpec& packets, double rate, Bandwidth line,
                  Picoseconds link_round_trip, Picoseconds network_round_trip);

}  // namespace railyard
