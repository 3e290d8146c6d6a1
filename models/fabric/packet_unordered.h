#pragma once
// The senders' part in delivery in any order (Ultra Ethernet): what is under way, timed out, asked for or
// lost by its order; and the values that spread packets over hashed paths.

#include <cstdint>
#include <memory>
#include <vector>

#include "models/fabric/entropy.h"
#include "models/fabric/packet_links.h"

namespace railyard {

class PacketSenders;
struct QueuePair;

class UnorderedRecovery {
  public:
    UnorderedRecovery(PacketRun& run, PacketLinks& links, PacketSenders& senders,
                      Congestion& congestion);
    // The next queue pair.
    void add(PacketRouting routing);

    const UnorderedSender& sender(std::uint32_t flow) const { return senders_[flow]; }
    // The value that the flow's next packet carries.
    std::uint16_t next_entropy(std::uint32_t flow) { return entropy_->next(flow, run_.time()); }

    // A packet, the first time or again, is about to leave.
    void send(std::uint32_t id);
    // An acknowledgement or the report of a trimmed packet has come. The latter makes a packet lost.
    void hear(std::uint32_t id);
    // Nothing was heard for long of the packet that was sent first, or for a while of any.
    void time_out_oldest(std::uint32_t flow);
    void probe(std::uint32_t flow);

  private:
    struct Recovering {          // from loss by order
        std::uint32_t ends = 0;  // it is over when all before this has come; 0: none
        std::int64_t probe_at = 0;
        std::int64_t probe_event = PacketRun::unset;  // the flow_probe event that counts
        std::int64_t round_trip = 0;                  // the shortest seen
    };

    void request(std::uint32_t flow);
    void send_header(std::uint32_t flow, bool with_data);
    void tell_receiver(std::uint32_t id);
    std::int64_t backlog_of(std::uint32_t flow) const;
    std::int64_t turns_of(std::uint32_t flow) const;
    void tell_of_path(std::uint32_t id, Picoseconds round_trip);
    void await_oldest(std::uint32_t flow);
    void await_since(std::uint32_t flow, std::int64_t since, bool again);
    bool waits_for_news(std::uint32_t flow);
    void time_out_idle(std::uint32_t flow);
    void lose_by_order(std::uint32_t flow, const DeliveryReport& report, Picoseconds round_trip);
    void await_probe(std::uint32_t flow);

    PacketRun& run_;
    PacketLinks& links_;
    PacketSenders& pairs_;
    Congestion& congestion_;
    std::unique_ptr<EntropyChoice> entropy_;
    std::vector<UnorderedSender> senders_;    // by queue pair
    std::vector<std::int64_t> requested_at_;  // likewise
    std::vector<Recovering> recovering_;      // likewise; empty: nothing is lost by its order
};

}  // namespace railyard
