#pragma once
// What goes wrong on links, and what they do about it: outages, bit errors, and frames that are sent again
// (link_faults.h, link_retry.h). Only of links that have had any.

#include <cstdint>
#include <string>
#include <vector>

#include "models/fabric/link_faults.h"
#include "models/fabric/link_retry.h"
#include "models/fabric/packet_ports.h"

namespace railyard {

class PacketFaults {
  public:
    PacketFaults(PacketRun& run, PacketPorts& ports);

    // The cable of `link` is down between these instants.
    void flap(LinkId link, Picoseconds down, Picoseconds up);
    std::int64_t up_after(LinkId link) const {
        return faults_[ports_.port(link).faults].up_after(run_.now);
    }
    bool is_down(LinkId link) const {
        return ports_.port(link).faults != PacketRun::none && up_after(link) > run_.now;
    }
    // What becomes of a packet that leaves at `sent` and would be there at `there`: it is lost, or kept to be
    // sent again, as it has been so many times.
    enum class Fate : std::uint8_t { crosses, lost, kept };
    Fate cross(LinkId link, std::uint32_t id, std::int64_t sent, std::int64_t there,
               std::int64_t tries);
    // What such a link keeps.
    LinkRetry& retry(LinkId link) { return retries_[ports_.port(link).faults]; }
    // Empty when no link keeps more than it needs; else what is wrong.
    std::string audit() const;

  private:
    LinkFaults& of(LinkId link);

    PacketRun& run_;
    PacketPorts& ports_;
    std::vector<LinkFaults> faults_;
    std::vector<LinkRetry> retries_;  // of the same links
};

}  // namespace railyard
