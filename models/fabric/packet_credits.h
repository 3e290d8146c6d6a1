#pragma once
// InfiniBand's credits: of each link's virtual lanes, what their senders know of the room at the other end
// (link_credits.h), who waits for it and for how long.

#include <cstdint>
#include <string>
#include <vector>

#include "models/fabric/link_credits.h"
#include "models/fabric/packet_pauses.h"

namespace railyard {

// Only of classes that have credits.
class PacketCredits {
  public:
    PacketCredits(PacketRun& run, PacketPorts& ports, PacketPauses& pauses);

    bool affords(LinkId link, const Packet& packet);
    // A packet is sent, and has left the buffer at the end of `link`.
    void enter(LinkId link, const Packet& packet);
    void leave(LinkId link, const Packet& packet);
    // Whether the next packet lacks credits. Then its class is paused until they have come.
    bool starves(LinkId link, std::size_t traffic_class);
    // Those have come now that it waits for.
    bool come(std::size_t s) const { return credits_[s].wake_at == run_.now; }
    // False: it had not stopped.
    bool stop_starving(LinkId link, std::size_t traffic_class);
    // What leaves now has waited for credits: another switch's queue is the cause.
    bool is_victim(std::size_t s) const { return credits_[s].waited_until == run_.now; }

    // The receiver gives none back from now on, or those as well that it has kept.
    void withhold(LinkId link, std::size_t traffic_class, bool starts);
    void give_withheld(LinkId link, std::size_t traffic_class);

    // Whether the packet at the head has waited for its lifetime; if it waits still, it is asked for again.
    bool outlived(LinkId link, std::size_t traffic_class);
    // One more packet has: whether the lane stalls now. Until it goes on it throws away what it is to send.
    bool stalls(LinkId link, std::size_t traffic_class);
    void stall(LinkId link, std::size_t traffic_class);
    void end_stall(LinkId link, std::size_t traffic_class);
    bool stalled(std::size_t s) const { return credits_[s].stalled; }

    std::int64_t blocks(const Packet& packet) const {
        return run_.spec.credits.blocks(packet.bytes);
    }
    // Whether the next packet of a slot would have room beside so many blocks.
    bool has_room(std::size_t s, std::int64_t blocks) const {
        return credits_[s].total() - blocks >= blocks_needed(s);
    }
    // Empty when credits and buffers agree; else what is wrong.
    std::string audit() const;

  private:
    std::int64_t blocks_needed(std::size_t s) const;
    void give(LinkId link, std::size_t traffic_class, std::int64_t blocks);
    void await(LinkId link, std::size_t traffic_class);
    std::int64_t lifetime(LinkId link) const;
    // Acknowledgements that are no packets take none of a link.
    bool on_a_link(const Packet& packet) const {
        return (packet.flags & flag_ack) == 0 || run_.spec.ack_class >= 0;
    }

    PacketRun& run_;
    PacketPorts& ports_;
    PacketPauses& pauses_;
    std::vector<LinkCredits> credits_;  // by slot; empty: no class has any
};

}  // namespace railyard
