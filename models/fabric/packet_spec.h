#pragma once
// What the packet scale is given: how switches, links and NICs work, and flows.

#include <cstdint>
#include <vector>

#include "models/fabric/entropy.h"
#include "models/fabric/link_credits.h"
#include "models/fabric/link_retry.h"
#include "models/fabric/pfc_watchdog.h"
#include "models/fabric/slow_receiver.h"
#include "models/fabric/switch_buffer.h"
#include "models/fabric/topology.h"
#include "sim/units.h"

namespace railyard {

// What keeps a sender from overrunning the buffer at the other end of its link.
enum class FlowControl : std::uint8_t {
    none,     // nothing: what finds no room is lost
    pfc,      // pause frames
    credits,  // it sends what it has been told there is room for (InfiniBand)
};

// A traffic class (priority; InfiniBand's virtual lane).
struct PacketClass {
    FlowControl flow_control = FlowControl::pfc;
    bool ecn = true;  // data packets may be marked
    // Its turn, in full packets, among those that share a link by deficit round robin. 0: it goes before
    // all of these, and before strict ones of higher number.
    std::int64_t weight = 1;

    bool lossless() const { return flow_control != FlowControl::none; }
};

// InfiniBand's Local ACK Timeout, and RoCE's: 14 is 67 ms, 18 is 1.07 s, 20 (NCCL's) is 4.29 s.
constexpr Picoseconds local_ack_timeout(int exponent) {
    return Picoseconds(std::int64_t{4'096'000} << exponent);
}

enum class Recovery : std::uint8_t {
    go_back_n,
    selective_repeat,
    unordered,  // Ultra Ethernet's: see unordered_delivery.h
};

// What a switch does with a data packet of a lossy class that finds no room: it cuts the payload off, and the
// header goes on as an acknowledgement would, so that the receiver hears of the loss at once. Of a full queue
// it is as likely the last packet in it that is cut.
struct TrimmingSpec {
    bool enabled = false;
    std::int64_t bytes = 64;  // on the wire, of what is left
};

// How a flow's packets are routed.
enum class PacketRouting : std::uint8_t {
    path,   // the flow's own, all of them
    spray,  // at each switch the equal-cost outputs in turn, a turn for each destination leaf
    random_spray,  // at each switch one of them by chance
    adaptive,      // at each switch the equal-cost output that would send it first
    flowlet,       // likewise, but only after a gap; else where the flow's last packet went
    entropy,       // by a hash of the flow and of a value that its sender gives each packet
};

// Packets that are lost because later ones have come, with unordered recovery: SLEEK, as the consortium's
// public simulator has it. When more packets than some windows hold have come out of order, a recovery
// begins: all that was sent before and lies within a window of the one waited for is sent again, once, until
// all of it has come. A sender that hears nothing for a while sends a probe with its data; a prompt answer,
// which no queue has held up, begins a recovery too.
struct OrderLossSpec {
    bool enabled = false;
    double windows = 1.5;
    std::int64_t packets_least = 5;
    std::int64_t window_max_bytes = INT64_MAX;  // of `windows`
    Picoseconds round_trip{};                   // a flow's first guess, until it sees a shorter one
    Picoseconds target{};                       // a prompt answer took so much longer at most
    // When a probe leaves after the last news, in the flow's round trips: with something left to send (with
    // nothing: one and the target), and the next one.
    double probe_busy = 3;
    double probe_again = 5;
};

struct PacketSpec {
    std::int64_t payload_bytes = 4096;  // of a full packet
    std::int64_t header_bytes =
        58;  // on the wire around it: RoCEv2 over Ethernet, without preamble
    std::int64_t ack_bytes = 64;
    std::int64_t ack_every =
        1;  // packets in order; the last one and a CNP are acknowledged at once
    // ACKs as packets of this class; -1: they take their path's time unloaded, and nothing of its bandwidth.
    int ack_class = 0;
    std::vector<PacketClass> classes = {{FlowControl::none, false, 0}, {FlowControl::pfc, true, 1}};
    // Switches begin to forward when a packet's header is there and the way out is no faster than the way
    // in; else when all of it is.
    bool cut_through = false;
    BufferSpec buffer;
    // In a switch's output queue of a lossy class, at most: drop-tail, besides the shared buffer.
    std::int64_t lossy_queue_bytes = INT64_MAX;
    TrimmingSpec trimming;              // with unordered recovery
    std::int64_t pause_quanta = 65535;  // in an XOFF frame; it is renewed at half that time
    std::int64_t pause_frame_bytes = 64;
    Picoseconds pause_reaction{};  // from the frame's arrival to the last byte sent
    Picoseconds cnp_interval{};    // between CNPs of one flow, at least
    Picoseconds cnp_delay{};  // from a marked packet's arrival; 0: its acknowledgement is the CNP
    Recovery recovery = Recovery::go_back_n;
    // For selective repeat: packets open at once, a power of two, at least 64; and how many places later than
    // a packet another must have been sent, when it comes first, for the former to be lost. In a network
    // that keeps the order: 1.
    std::uint32_t recovery_window = 1024;
    std::uint32_t reordering = 1;
    // Bytes on the wire that one acknowledgement covers, with unordered recovery.
    std::int64_t ack_bytes_due = 16384;
    EntropySpec entropy;  // of flows that are routed by it
    // A value whose packet took longer, there and its acknowledgement back, counts as marked; 0: none does.
    Picoseconds late_round_trip{};
    Picoseconds retransmission_timeout{};  // 0: there is none
    std::int64_t retries = 7;              // timeouts without progress before the flow fails
    // With unordered recovery: how many times as long as the one before each further timeout of a packet
    // takes; and the least time between two requests for news by a sender that must not send again (0: none).
    std::int64_t timeout_growth = 2;
    Picoseconds request_gap{};
    OrderLossSpec order_loss;
    WatchdogSpec watchdog;
    Picoseconds flowlet_gap{};  // between a flow's packets at a switch: then it may change its way
    // How finely switches know their queues when packets choose among them: in steps of so many bytes; of
    // those of the same step any, by chance. 0: to the byte, and of equals the one whose turn it is.
    std::int64_t queue_step_bytes = 0;
    LinkRetrySpec link_retry;
    CreditSpec credits;
    ReceiveBuffer receive_buffer;  // of a NIC that is made slow
    std::uint64_t seed = 1;        // of marking and bit errors
};

struct PacketFlow {
    std::vector<LinkId> path;  // from a NIC to a NIC; acknowledgements take it backwards
    std::int64_t bytes = 0;    // of payload, > 0
    Picoseconds start{};
    std::int64_t after = -1;  // starts when this earlier flow has ended, if that is later; -1: none
    // Likewise when all earlier flows have ended that join this, a number of the caller's; -1: none. One of
    // `after` and this.
    std::int64_t after_joint = -1;
    std::int64_t joins = -1;
    // An earlier flow of the same queue pair, whose path, class and routing this one has too: it goes
    // behind all that started before it there, at the pace that those have left. -1: a fresh queue pair, at
    // line rate.
    std::int64_t continues = -1;
    int traffic_class = 1;
    std::uint64_t queue_pair = 0;  // Router::queue_pair: for whoever finds it another path
    // Other than `path`: of `path` the two ends count, and its first link; an acknowledgement goes back as
    // its packet came. Not with a congestion control that wants telemetry, which compares hop with hop.
    PacketRouting routing = PacketRouting::path;
    // Links of the NIC that its packets may leave by, path.front() among them: each by the one that is free
    // first. Empty: by path.front() alone. Only with a routing other than `path`.
    std::vector<LinkId> ports;
};

// A class of a link begins to wait, or goes on.
struct PauseEdge {
    Picoseconds at{};
    LinkId link = 0;
    int traffic_class = 0;
    bool waits = false;
};

// Ports of a NIC that the packets of one flow may leave by, at most.
constexpr std::size_t planes_max = 8;

// What an engine counts.
struct PacketTotals {
    std::uint64_t events = 0;
    std::uint64_t data_hops = 0;  // data packets sent on a link, NICs' included
    std::uint64_t ack_hops = 0;
    std::int64_t pause_frames = 0;      // XOFF and XON, renewals not counted
    std::int64_t lost_lossless = 0;     // packets of a lossless class for which there was no room
    std::int64_t lost_lossy = 0;        // of another class
    std::int64_t lost_to_watchdog = 0;  // it threw them away, or sent them past a pause
    // At the head of a queue that got no credits, and what a stalled lane threw away.
    std::int64_t lost_to_lifetime = 0;
    std::int64_t lost_on_links = 0;     // to bit errors and links that went down
    std::int64_t replayed = 0;          // packets that a link sent again
    std::int64_t trimmed = 0;           // to their headers
    std::int64_t trimmed_last_hop = 0;  // of these, on the last link
    std::int64_t retransmitted = 0;     // packets
    std::int64_t timeouts = 0;
    std::int64_t storms_detected = 0;
};

}  // namespace railyard
