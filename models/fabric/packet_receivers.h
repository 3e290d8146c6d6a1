#pragma once
// The receiving ends of queue pairs: what has come, and the acknowledgements and CNPs that say so.

#include <cstdint>
#include <vector>

#include "models/fabric/packet_links.h"
#include "models/fabric/selective_repeat.h"

namespace railyard {

class PacketSenders;

class PacketReceivers {
  public:
    PacketReceivers(PacketRun& run, PacketLinks& links, const PacketSenders& senders)
        : run_(run), links_(links), senders_(senders) {}
    void expect(std::size_t queue_pairs) { ends_.reserve(queue_pairs); }
    // The next queue pair.
    void add();

    // A data packet, or its header, has come.
    void receive(std::uint32_t id);
    // A data packet is turned round, with these flags.
    void acknowledge(std::uint32_t id, std::uint8_t flags);
    // A CNP of its own leaves, once the NIC has got round to it.
    void send_cnp(std::uint32_t id);
    std::int64_t received_bytes(std::uint32_t queue_pair) const {
        return ends_[queue_pair].received_bytes;
    }
    void fetch(std::uint32_t queue_pair) const { fetch_line(&ends_[queue_pair]); }

  private:
    struct alignas(64) End {
        std::uint32_t expected = 0;
        std::uint32_t unacknowledged = 0;  // received, since its last ACK
        std::int64_t cnp_at = 0;           // it may send another
        std::int64_t received_bytes = 0;
        bool nacked = false;  // it has asked for the packet that it expects
    };

    std::uint8_t answer_mark(std::uint32_t id);
    void receive_in_order(std::uint32_t id, std::uint8_t flags);
    void receive_in_any_order(std::uint32_t id, std::uint8_t flags);
    void receive_unordered(std::uint32_t id);
    bool may_wait(const End& end, const Packet& packet, std::uint8_t flags) const;
    std::uint32_t report(const Packet& packet, std::uint8_t flags);

    PacketRun& run_;
    PacketLinks& links_;
    const PacketSenders& senders_;
    std::vector<End> ends_;                     // by queue pair
    std::vector<SelectiveReceiver> selective_;  // likewise; empty: another recovery
    std::vector<UnorderedReceiver> unordered_;
};

}  // namespace railyard
