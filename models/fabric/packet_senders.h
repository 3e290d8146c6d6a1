#pragma once
// The sending ends of queue pairs: which packet is next, and when it may leave. Window and pace by congestion
// control, turns at the NIC's ports, timeouts; go-back-N and selective repeat. Delivery in any order has a
// part of its own (packet_unordered.h).

#include <cstdint>
#include <utility>
#include <vector>

#include "models/fabric/packet_flows.h"
#include "models/fabric/packet_unordered.h"
#include "models/fabric/selective_repeat.h"

namespace railyard {

// Its flows, or the only one, as one row of packets. A cache line that acknowledgements and packets sent
// need, and one that only the latter do.
struct alignas(64) QueuePair {
    enum class Phase : std::uint8_t { waiting, moving, ended, failed };

    std::uint32_t first = 0;                      // of its path
    std::uint32_t packets = 0;                    // of all flows that have started
    std::uint32_t last_begins = 0;                // the last of these flows, by its first packet
    std::uint32_t oldest_ends = PacketRun::none;  // after the last packet of `oldest`
    std::uint32_t to_send = 0;                    // next
    std::uint32_t sent = 0;                       // all before this one, once at least
    std::uint32_t acknowledged = 0;               // all before this one
    std::uint16_t last_payload = 0;               // of the last packet
    std::uint8_t hops = 0;
    std::uint8_t traffic_class = 0;
    Phase phase : 7 = Phase::waiting;
    bool asked : 1 = false;  // for an ACK, by its last packet, where not all have one
    PacketRouting routing = PacketRouting::path;
    std::uint8_t queued = 0;  // it has its turn, bit by bit at each of its ports
    std::uint8_t retries = 0;
    std::uint32_t oldest = PacketRun::none;   // flow that has started and not ended
    std::int64_t ready_at = 0;                // its pace allows the next packet
    std::int64_t wake_at = PacketRun::unset;  // the flow_ready event that counts
    std::int64_t timeout_at = PacketRun::unset;

    alignas(64) Pace pace;
    std::uint64_t ps_per_byte = 0;                  // of its pace, in 2^-20 ps
    std::int64_t timer_at = PacketRun::unset;       // the flow_timer event that counts
    std::int64_t timeout_event = PacketRun::unset;  // the flow_timeout event that counts
};

class PacketSenders {
  public:
    PacketSenders(PacketRun& run, PacketLinks& links, PacketFlows& flows, Congestion& congestion);
    void expect(std::size_t queue_pairs);

    // A queue pair for this flow; whether another flow fits one.
    std::uint32_t add(const PacketFlow& given);
    bool fits(std::uint32_t flow, const PacketFlow& given) const;
    // From now on it takes this path.
    void reroute(std::uint32_t flow, const std::vector<LinkId>& path);
    // A flow starts on its queue pair.
    void start(std::uint32_t index);

    QueuePair& pair(std::uint32_t flow) { return pairs_[flow]; }
    const QueuePair& pair(std::uint32_t flow) const { return pairs_[flow]; }
    // Where the way of acknowledgements that are no packets ends, and how long they take.
    struct WayBack {
        std::uint32_t end;
        std::int64_t latency;
    };
    WayBack way_back(std::uint32_t flow) const {
        return {pairs_[flow].first + 2U * pairs_[flow].hops, rarely_[flow].ack_latency};
    }

    // One packet of the queue pair whose turn it is at a port; false when none may send.
    bool send_in_turn(LinkId link, std::size_t traffic_class);
    // An acknowledgement has come.
    void hear(std::uint32_t id);
    // Its pace allows another packet, a timer or a timeout may be due.
    void wake(std::uint32_t flow);
    void tick(std::uint32_t flow);
    void time_out(std::uint32_t flow);
    UnorderedRecovery& unordered() { return unordered_; }

    // For whoever recovers what is lost. The payload of a packet that is not acknowledged, and whether it is
    // the last of its flow:
    std::pair<std::int64_t, bool> payload_of(const QueuePair& f, std::uint32_t number) const;
    // A packet of its flow that leaves now by `link`.
    std::uint32_t new_packet(LinkId link, const Packet& packet);
    bool window_is_full(std::uint32_t flow) const;
    // Its NIC can't send it: the cable is down, or the class must wait.
    bool is_held_up(std::uint32_t flow) const;
    // What was lost comes first, then what was never sent.
    void aim(std::uint32_t flow);
    // Puts the flow into its NIC's turn if it may send by the time the NIC can, else sets its alarm.
    void offer(std::uint32_t flow);
    void follow_pace(std::uint32_t flow, double rate_before);
    void await_timeout(std::uint32_t flow);
    // Something more is acknowledged: flows that end, and what may be sent now.
    void move_on(std::uint32_t flow);
    // It gives up.
    void fail(std::uint32_t flow);
    bool follows_marks_alone() const { return follows_marks_alone_; }

  private:
    using Phase = QueuePair::Phase;
    struct Rarely {                    // what is looked at rarely of a queue pair
        std::int64_t ack_latency = 0;  // of acknowledgements that are no packets
        std::int64_t bytes = 0;        // of all flows that have started
        std::int64_t idle_since = 0;
        std::uint32_t newest = PacketRun::none;  // flow that has started
        std::uint32_t first_port = 0;            // of its ports
        std::uint32_t ports = 1;                 // that its packets may leave by
    };

    void set_path(std::uint32_t flow, const std::vector<LinkId>& path);
    void end_flows(std::uint32_t flow);
    bool must_wait(std::uint32_t flow) const;
    VertexId target_of(const QueuePair& f) const;
    bool has_ports(std::uint32_t flow) const {
        return !flow_ports_.empty() && rarely_[flow].ports > 1;
    }
    void offer_to_ports(std::uint32_t flow);
    void await_pace(std::uint32_t flow);
    std::uint8_t port_bit(std::uint32_t flow, LinkId link) const;
    void send_data(LinkId link, std::uint32_t flow);
    void go_back(QueuePair& f, std::uint32_t number);
    void tell_congestion(std::uint32_t id, std::uint32_t fresh, bool lost);
    void wake_other(Pace& pace);
    void catch_up(std::uint32_t flow);
    void restart_timeout(std::uint32_t flow);

    PacketRun& run_;
    PacketLinks& links_;
    PacketFlows& flows_;
    Congestion& congestion_;
    bool timers_can_wait_;
    bool follows_marks_alone_;
    bool round_trips_wanted_;
    std::vector<QueuePair> pairs_;
    std::vector<Rarely> rarely_;              // likewise
    std::vector<LinkId> flow_ports_;          // of flows that have several, one after the other
    std::vector<SelectiveSender> selective_;  // by queue pair; empty: another recovery
    UnorderedRecovery unordered_;
};

}  // namespace railyard
