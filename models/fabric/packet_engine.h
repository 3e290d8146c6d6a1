#pragma once
// The packet scale: every data packet, acknowledgement and pause frame, on a picosecond clock.
//
// A NIC paces each of its queue pairs, takes them in turn, and stops when the switch above it says so. Flows
// that continue one another are messages of one queue pair: its pace outlives them, and they go in order. A
// switch queues packets at their way out, one queue per class, and books them in its buffer on their way in
// (switch_buffer.h); PFC, ECN, congestion control and the watchdog follow from there. Flows bring their own
// paths. What is modelled, what is left out, and what it was held against: README.md, "Packets".
//
// Same network, spec and flows: the same events in the same order, everywhere.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/fabric/cache_lines.h"
#include "models/fabric/congestion.h"
#include "models/fabric/entropy.h"
#include "models/fabric/link_credits.h"
#include "models/fabric/link_faults.h"
#include "models/fabric/link_retry.h"
#include "models/fabric/next_hops.h"
#include "models/fabric/packet_network.h"
#include "models/fabric/packet_pool.h"
#include "models/fabric/pfc_watchdog.h"
#include "models/fabric/selective_repeat.h"
#include "models/fabric/slow_receiver.h"
#include "models/fabric/switch_buffer.h"
#include "models/fabric/timing_wheel.h"
#include "models/fabric/turns.h"
#include "models/fabric/unordered_delivery.h"
#include "sim/fingerprint.h"
#include "sim/rng.h"

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

class PacketEngine {
  public:
    // No congestion control given: line rate.
    PacketEngine(const PacketNetwork& network, PacketSpec spec,
                 std::unique_ptr<Congestion> congestion = no_congestion_control());

    // Keeps from now on when a sender on a link is told to wait, or lacks credits, and when no more.
    void log_pauses(std::vector<PauseEdge>& log) { pause_log_ = &log; }
    // What flows that don't keep to one path choose from: of the network's own topology.
    // Again when they have changed.
    void choose_from(NextHops next_hops);
    // Room for so many flows, on as many queue pairs, so that adding them copies none.
    void expect(std::size_t flows);
    // Its index. Before the clock passes its start.
    std::size_t add(const PacketFlow& flow);
    // From now on the flow's queue pair takes this path, by the same first link. Packets under way keep
    // theirs.
    void reroute(std::size_t flow, const std::vector<LinkId>& path);
    // The NIC at the end of `link` pauses it for a class, or returns no credits, from `start` to `end`,
    // whatever its own state. Storms may overlap: it goes on when the last of them is over.
    void storm(LinkId link, int traffic_class, Picoseconds start, Picoseconds end);
    // The end of `link` can no longer reach its sender (the way back is down): it returns no credits, its
    // pauses are not renewed and run out. Or it can again, and says what it could not.
    void mute(LinkId link);
    void unmute(LinkId link);

    // The cable of `link` is down between these instants: it carries nothing in either direction. What is
    // on it is lost, and so is all that a switch holds for it or is to send by it; a NIC waits. Pauses
    // across it run out, and come again when it is up.
    void flap(LinkId link, Picoseconds down, Picoseconds up);
    // The NIC at the end of `link` takes packets at no more than this rate between these instants. Once for
    // each link.
    void slow_receiver(LinkId link, Bandwidth rate, Picoseconds from, Picoseconds until);

    // Handles every event up to `until`, and sets the clock there; or until all flows have ended or failed
    // (the clock stands at the last event), or so many events are handled. False: there is more to do.
    bool run(Picoseconds until, std::uint64_t events_max = UINT64_MAX);

    Picoseconds now() const { return Picoseconds(now_); }

    static constexpr Picoseconds never = Picoseconds::max();
    Picoseconds end(std::size_t flow) const { return record_[flow].end; }  // last ACK at the sender
    // It has started, and all before it on its queue pair has been sent.
    bool begun(std::size_t flow) const {
        const Record& r = record_[flow];
        return r.first != none && flows_[r.queue_pair].sent >= r.first;
    }
    bool failed(std::size_t flow) const { return record_[flow].failed_at != never; }
    // When it gave up; never: it did not.
    Picoseconds failed_at(std::size_t flow) const { return record_[flow].failed_at; }
    // On a queue pair, earlier flows are filled first, whatever came first.
    std::int64_t received_bytes(std::size_t flow) const;
    // Nothing will ever happen again: flows that have not ended never will.
    bool stuck() { return unfinished_ > 0 && wheel_.empty(); }

    std::int64_t queue_bytes(LinkId link, int traffic_class) const {
        return queues_[slot(link, traffic_class)].bytes;
    }
    std::int64_t queue_bytes_max(LinkId link, int traffic_class) const {
        return queues_[slot(link, traffic_class)].bytes_max;
    }
    std::int64_t sent_bytes(LinkId link) const { return ports_[link].sent_bytes; }
    // Its sender has been told to wait, or lacks credits for its next packet.
    bool paused(LinkId link, int traffic_class) const {
        return (ports_[link].paused >> traffic_class & 1) != 0;
    }
    Picoseconds paused_time(LinkId link, int traffic_class) const;
    // How often: XOFF frames, renewals not counted; or times without enough credits.
    std::int64_t pauses(LinkId link, int traffic_class) const {
        return pauses_[slot(link, traffic_class)].count;
    }
    bool stormed(LinkId link, int traffic_class) const {
        return !watchdogs_.empty() && watchdogs_[slot(link, traffic_class)].stormed();
    }
    const IngressShare& ingress(LinkId link, int traffic_class) const {
        return ingress_[slot(link, traffic_class)];
    }

    struct Totals {
        std::uint64_t events = 0;
        std::uint64_t data_hops = 0;  // data packets sent on a link, NICs' included
        std::uint64_t ack_hops = 0;
        std::int64_t pause_frames = 0;   // XOFF and XON, renewals not counted
        std::int64_t lost_lossless = 0;  // packets of a lossless class for which there was no room
        std::int64_t lost_lossy = 0;     // of another class
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
    const Totals& totals() const { return totals_; }
    // Packets of a lossless class that found no room at the end of this link.
    std::int64_t overflows(LinkId link) const { return overflows_.empty() ? 0 : overflows_[link]; }
    std::string digest() const;  // of every flow's end and of the totals
    // Empty when each switch holds exactly the bytes that it has booked, no buffer is overdrawn, each paused
    // link has a pauser, credits and buffers agree and no packet is astray; else what is wrong. Takes time.
    std::string audit() const;

  private:
    friend class PacketWaits;  // reads the state of queues, pauses and credits

    static constexpr std::uint32_t none = UINT32_MAX;
    static constexpr std::int64_t unset = INT64_MAX;

    enum class What : std::uint8_t {
        arrival,       // of packet `id` at the end of its link
        port_free,     // link `id` can send again
        flow_start,    // flow `id`; all others are of queue pair `id`
        flow_ready,    // its pace allows another packet
        flow_timer,    // its congestion control's
        flow_timeout,  // nothing was acknowledged for long
        flow_probe,    // nothing was heard for a while
        xoff,          // a pause frame reaches the sender of link `id`
        xon,           // likewise, to go on
        pause_over,    // the pause of link `id` has run out, unless its pauser is back
        credits,       // link `id` has got those that it waits for
        hoq_lifetime,  // a packet may have waited too long for them
        cnp,           // packet `id`, a CNP, leaves
        link_down,
        link_up,
        host_took,  // a packet out of the slow NIC at the end of link `id`
        storm_start,
        storm_end,
        watchdog_poll,  // of switch `id`
        stall_over,     // of a lane of link `id`
        replay,         // the sender of link `id` hears of a packet that came with wrong bits
    };
    // An event's kind: what, and above it the class that it concerns.
    static constexpr int what_bits = 5;
    static What what_of(std::uint8_t kind) {
        return static_cast<What>(kind & ((1U << what_bits) - 1));
    }
    static constexpr std::uint8_t flag_ack = 1;
    static constexpr std::uint8_t flag_marked = 2;  // data: congestion experienced; ACK: CNP
    static constexpr std::uint8_t flag_nack = 4;
    static constexpr std::uint8_t flag_asks = 8;      // to be acknowledged at once
    static constexpr std::uint8_t flag_trimmed = 16;  // data: its header alone
    // On a trimmed packet, and the report of one: that was on the last link.
    static constexpr std::uint8_t flag_last_hop = flag_asks;
    // On a header that no switch has cut off: its sender asks what has come.
    static constexpr std::uint8_t flag_request = flag_nack;
    static constexpr int routing_shift = 5;  // above it a data packet's routing

    static constexpr std::int64_t never_up = INT64_MAX / 2;

    // The sending end of a link.
    struct alignas(64) Port {
        std::int64_t busy_until = 0;
        std::int64_t latency = 0;
        std::uint64_t ps_per_byte = 0;  // in 2^-20 ps
        std::int64_t sent_bytes = 0;
        VertexId from = 0;
        std::uint32_t faults = none;  // its place among them
        std::int64_t kmin_bytes = 0;  // its queues' packets may be marked beyond
        bool pending = false;         // an event for it is scheduled
        bool at_nic = false;          // sent by a NIC
        std::uint8_t waiting = 0;     // classes that have something to send
        std::uint8_t paused = 0;      // classes that must not
        std::uint8_t unpausable = 0;  // classes whose pauses the switch or its watchdog ignores
        std::uint8_t discarding = 0;  // classes that it throws away
        bool cut = false;             // because its cable is down
        std::uint8_t last_class = 0;
    };
    struct alignas(32) Queue {
        std::uint32_t head = none;
        std::uint32_t tail = none;
        std::int64_t bytes = 0;
        std::int64_t bytes_max = 0;
        std::int64_t taken = 0;  // packets that have left it, ever
    };
    struct Pause {
        std::int64_t sent = 0;  // its first frame
        std::int64_t until =
            unset;  // XON arrives, or the last frame runs out; unset: it is renewed
        std::int64_t since = 0;
        std::int64_t total = 0;  // of pauses that are over
        std::int64_t count = 0;
        std::int32_t reasons = 0;  // why a NIC pauses it: storms, and a receive buffer that is full
        bool muted = false;        // its pauser
    };
    enum class Phase : std::uint8_t { waiting, moving, ended, failed };
    // A queue pair: its flows, or the only one, as one row of packets. A cache line that acknowledgements and
    // packets sent need, one that only the latter do, and one of the receiver's.
    struct alignas(64) Flow {
        std::uint32_t first = 0;           // of its path
        std::uint32_t packets = 0;         // of all flows that have started
        std::uint32_t last_begins = 0;     // the last of these flows, by its first packet
        std::uint32_t oldest_ends = none;  // after the last packet of `oldest`
        std::uint32_t to_send = 0;         // next
        std::uint32_t sent = 0;            // all before this one, once at least
        std::uint32_t acknowledged = 0;    // all before this one
        std::uint16_t last_payload = 0;    // of the last packet
        std::uint8_t hops = 0;
        std::uint8_t traffic_class = 0;
        Phase phase = Phase::waiting;
        PacketRouting routing = PacketRouting::path;
        std::uint8_t queued = 0;  // it has its turn, bit by bit at each of its ports
        std::uint8_t retries = 0;
        std::uint32_t oldest = none;   // flow that has started and not ended
        std::int64_t ready_at = 0;     // its pace allows the next packet
        std::int64_t wake_at = unset;  // the flow_ready event that counts
        std::int64_t timeout_at = unset;

        alignas(64) Pace pace;
        std::uint64_t ps_per_byte = 0;       // of its pace, in 2^-20 ps
        std::int64_t timer_at = unset;       // the flow_timer event that counts
        std::int64_t timeout_event = unset;  // the flow_timeout event that counts

        alignas(64) std::uint32_t expected = 0;  // by the receiver
        std::uint32_t unacknowledged = 0;        // received, since its last ACK
        std::int64_t cnp_at = 0;                 // the receiver may send another
        std::int64_t received_bytes = 0;
        bool nacked = false;  // the receiver has asked for the packet that it expects
        bool asked = false;   // the sender for an ACK, by its last packet, where not all have one
    };
    struct Record {  // a flow as it was given
        Picoseconds start{};
        Picoseconds end = never;
        Picoseconds failed_at = never;
        std::int64_t bytes = 0;
        std::int64_t first_byte = 0;  // of its queue pair's
        std::uint32_t queue_pair = 0;
        std::uint32_t first = none;  // packet, of its queue pair's; none: it has not started
        std::uint32_t packets = 0;
        std::uint32_t next = none;  // to have started on its queue pair
        std::uint32_t first_follower = none;
        std::uint32_t next_follower = none;
        std::uint32_t joins = none;
    };
    struct Joint {
        std::uint32_t missing = 0;  // flows that join it and have not ended
        std::uint32_t first_follower = none;
    };
    struct Rarely {                    // what is looked at rarely of a queue pair
        std::int64_t ack_latency = 0;  // of acknowledgements that are no packets
        std::int64_t bytes = 0;        // of all flows that have started
        std::int64_t idle_since = 0;
        std::int64_t requested_at = INT64_MIN / 2;
        std::uint32_t newest = none;      // flow that has started
        std::uint32_t first_flowlet = 0;  // one for each hop
        std::uint32_t first_port = 0;     // of its ports
        std::uint32_t ports = 1;          // that its packets may leave by
    };
    struct Flowlet {
        LinkId link = none;
        std::int64_t last = 0;  // packet
    };

    std::size_t slot(LinkId link, int traffic_class) const {
        return link * class_count_ + static_cast<std::size_t>(traffic_class);
    }
    static std::int64_t transfer_ps(std::int64_t bytes, std::uint64_t ps_per_byte) {
        return static_cast<std::int64_t>(
            (static_cast<std::uint64_t>(bytes) * ps_per_byte + 0xfffff) >> 20);
    }
    void schedule(std::int64_t at, What what, std::uint32_t id, std::size_t traffic_class = 0) {
        wheel_.push(
            at, id,
            static_cast<std::uint8_t>(static_cast<std::size_t>(what) | traffic_class << what_bits));
    }
    static std::uint64_t ps_per_byte_of(Bandwidth rate);
    static TimingWheel fitting_wheel(const PacketNetwork& network, const PacketSpec& spec);

    std::int64_t set_apart(LinkId link, std::size_t traffic_class);
    void fetch_ahead() const;
    void handle(const TimingWheel::Event& event);
    std::uint32_t take_packet();
    void free_packet(std::uint32_t id);

    // Links and switches.
    void arrive(std::uint32_t id);
    void receive(LinkId in, std::uint32_t id);
    void forward(LinkId in, std::uint32_t id);
    // False where a switch that sends on `link` has no PFC for a class that has it elsewhere.
    bool heeds_pauses(LinkId link, std::size_t traffic_class) const {
        return spec_.classes[traffic_class].flow_control != FlowControl::pfc ||
               (links_[reverse_link(link)].pausing >> traffic_class & 1) != 0;
    }
    bool takes_nothing(LinkId in, std::size_t traffic_class) const;
    void lose(std::uint32_t id, std::int64_t& counter);
    void overflow(LinkId in, std::uint32_t id);
    bool trims(const Packet& packet) const {
        return spec_.trimming.enabled && (packet.flags & (flag_ack | flag_trimmed)) == 0;
    }
    void trim_one(LinkId in, LinkId out, std::uint32_t id);
    bool put_in_place_of_last(LinkId in, LinkId out, std::uint32_t id);
    void trim(LinkId out, std::uint32_t id);
    // Acknowledgements that are no packets take none of a link.
    bool on_a_link(const Packet& packet) const {
        return (packet.flags & flag_ack) == 0 || spec_.ack_class >= 0;
    }
    bool send_at_once(LinkId link, std::uint32_t id);
    void enqueue(LinkId link, std::uint32_t id);
    std::uint32_t dequeue(LinkId link, std::size_t traffic_class);
    void leave_switch(LinkId link, std::uint32_t id);
    void write_telemetry(LinkId link, std::uint32_t id, std::int64_t queue_bytes);
    void transmit(LinkId link, std::uint32_t id);
    // From a packet's first bit sent until the other end can go on with it.
    std::int64_t until_there(LinkId link, const Packet& packet) const {
        const Port& port = ports_[link];
        std::int64_t bytes = packet.bytes;
        if (spec_.cut_through && to_nic_[link] == 0 &&
            ports_[next_link(packet)].ps_per_byte >= port.ps_per_byte) {
            bytes = bytes < spec_.header_bytes ? bytes : spec_.header_bytes;
        }
        return transfer_ps(bytes, port.ps_per_byte) + port.latency;
    }
    void send_from_queue(LinkId link, std::size_t traffic_class);
    void serve(LinkId link);
    void kick(LinkId link);
    std::size_t next_class(LinkId link, unsigned sendable);
    static unsigned sendable(const Port& port) {
        return port.waiting & ~(unsigned{port.paused} & ~unsigned{port.unpausable});
    }

    // Ways (packet_routing.cpp).
    void start_way(std::uint32_t id, LinkId first);
    bool choose_link(std::uint32_t id);
    LinkId hashed(const NextHops::Choice& choice, const ChoosingPacket& packet) const;
    void fetch_ways() const;
    void fetch_switch(const Packet& packet) const;
    void fetch_output(const Packet& packet) const;
    LinkId likely_output(const ChoosingPacket& packet) const;
    template <class Visit>
    void each_head(LinkId link, const Visit& visit) const {
        for (std::size_t c = 0; c < class_count_; ++c) {
            const std::uint32_t head = queues_[link * class_count_ + c].head;
            if (head != none) visit(head);
        }
    }
    LinkId soonest(const NextHops::Choice& choice, std::size_t traffic_class);
    std::int64_t wait_at(LinkId link, std::size_t traffic_class) const;
    void turn_way(std::uint32_t id);
    // Where the next link is that a packet of the pool takes; before it the last one that it took.
    const LinkId* place_of(const Packet& packet) const {
        if ((packet.place & PacketPool::own_way) == 0) return &paths_[packet.place];
        const auto& choosing = reinterpret_cast<const ChoosingPacket&>(packet);
        return &choosing.way[packet.place - PacketPool::own_way];
    }
    LinkId next_link(const Packet& packet) const { return *place_of(packet); }
    LinkId last_link(const Packet& packet) const { return *(place_of(packet) - 1); }

    // PFC.
    void send_pause(LinkId link, std::size_t traffic_class, bool stop);
    std::int64_t pause_length(LinkId link) const;
    void log_pause(LinkId link, std::size_t traffic_class, bool waits);
    void on_xoff(LinkId link, std::size_t traffic_class);
    void on_xon(LinkId link, std::size_t traffic_class);
    void on_pause_over(LinkId link, std::size_t traffic_class);
    void hold(LinkId link, std::size_t traffic_class, bool starts);
    bool watched(std::size_t s) const;
    void watch(std::size_t s);
    void on_watchdog_poll(VertexId v);
    void poll_watchdog(std::size_t s);
    void flush(LinkId link, std::size_t traffic_class, std::int64_t& counter);

    // Credits.
    bool has_credits(std::size_t traffic_class) const {
        return credit_classes_ != 0 && (credit_classes_ >> traffic_class & 1) != 0;
    }
    bool affords(LinkId link, const Packet& packet);
    void enter_lane(LinkId link, const Packet& packet);
    void leave_lane(LinkId link, const Packet& packet);
    std::int64_t blocks_needed(std::size_t s) const;
    bool starves(LinkId link, std::size_t traffic_class);
    void wake_for_credits(LinkId link, std::size_t traffic_class);
    void on_credits(LinkId link, std::size_t traffic_class);
    void stop_starving(LinkId link, std::size_t traffic_class);
    void return_credits(LinkId link, std::size_t traffic_class, std::int64_t blocks);
    void withhold_credits(LinkId link, std::size_t traffic_class, bool starts);
    void return_withheld(LinkId link, std::size_t traffic_class);
    std::int64_t hoq_lifetime(LinkId link) const;
    void stall(LinkId link, std::size_t traffic_class);
    void on_stall_over(LinkId link, std::size_t traffic_class);
    std::int64_t& discarded(const Port& port, std::size_t traffic_class);
    // What leaves now has waited for credits: another switch's queue is the cause.
    bool is_victim(LinkId link, std::size_t traffic_class) const {
        return has_credits(traffic_class) &&
               credits_[link * class_count_ + traffic_class].waited_until == now_;
    }
    void on_hoq_lifetime(LinkId link, std::size_t traffic_class);
    std::string audit_credits() const;

    // Faults.
    void set_up_port(const PacketNetwork& network, LinkId link);
    void set_up_watchdogs(std::size_t vertices);
    LinkFaults& faults_of(LinkId link);
    void on_link_down(LinkId link);
    void on_link_up(LinkId link);
    bool crosses(LinkId link, std::uint32_t id, std::int64_t sent, std::int64_t tries);
    void on_replay(LinkId link);
    void give_up_replay(LinkId link);
    std::string audit_retries() const;
    void receive_slowly(LinkId link, std::uint32_t id);
    void on_host_took(LinkId link);

    // NICs.
    std::uint32_t add_queue_pair(const PacketFlow& given);
    void set_path(std::uint32_t flow, const std::vector<LinkId>& path);
    void widen_telemetry(std::size_t hops);
    void start_flow(std::uint32_t index);
    const Record& flow_of(const Flow& f, std::uint32_t number) const;
    void end_flows(std::uint32_t flow);
    void start_all(std::uint32_t first_follower);
    void fail_queue_pair(std::uint32_t flow);
    void fail_flow(std::uint32_t index);
    bool selective() const { return spec_.recovery == Recovery::selective_repeat; }
    bool unordered() const { return spec_.recovery == Recovery::unordered; }
    bool window_is_full(std::uint32_t flow) const;
    bool must_wait(std::uint32_t flow) const;
    void count_sent(std::uint32_t flow);
    void go_back(Flow& f, std::uint32_t number);
    void aim(std::uint32_t flow);
    void fetch_sender(std::uint32_t flow) const;
    void add_ports(std::uint32_t flow, const PacketFlow& given);
    void offer(std::uint32_t flow);
    void offer_to_ports(std::uint32_t flow);
    void await_pace(std::uint32_t flow);
    void take_turn(std::uint32_t flow, LinkId link, std::uint8_t bit);
    std::uint8_t port_bit(std::uint32_t flow, LinkId link) const;
    bool send_in_turn(LinkId link, std::size_t traffic_class);
    std::uint32_t new_packet(LinkId link, const Packet& packet);
    void send_data(LinkId link, std::uint32_t flow);
    void receive_data(std::uint32_t id);
    void receive_in_any_order(std::uint32_t id, std::uint8_t flags);
    void prepare_cnp(std::uint32_t id);
    void send_cnp(std::uint32_t id);
    std::pair<std::int64_t, bool> payload_of(const Flow& f, std::uint32_t number) const;
    // Delivery in any order (packet_unordered.cpp).
    void send_unordered(std::uint32_t id);
    void request(std::uint32_t flow);
    void send_header(std::uint32_t flow, bool with_data);
    void tell_receiver(std::uint32_t id);
    std::uint32_t take_report();
    void lose_by_order(std::uint32_t flow, const DeliveryReport& report, Picoseconds round_trip);
    void await_probe(std::uint32_t flow);
    void on_probe(std::uint32_t flow);
    std::int64_t backlog_of(std::uint32_t flow) const;
    std::int64_t turns_of(std::uint32_t flow) const;
    void receive_unordered(std::uint32_t id);
    void receive_report(std::uint32_t id);
    void tell_of_path(std::uint32_t id, Picoseconds round_trip);
    void await_oldest(std::uint32_t flow);
    void time_out_oldest(std::uint32_t flow);
    void acknowledge(std::uint32_t id, std::uint8_t flags);
    void receive_ack(std::uint32_t id);
    void tell_congestion(std::uint32_t id, std::uint32_t fresh, bool lost);
    void follow_pace(std::uint32_t flow, double rate_before);
    void wake_other(Pace& pace);
    void on_timer(std::uint32_t flow);
    void catch_up(std::uint32_t flow);
    void restart_timeout(std::uint32_t flow);
    void await_timeout(std::uint32_t flow);
    void on_timeout(std::uint32_t flow);

    PacketSpec spec_;
    std::unique_ptr<Congestion> congestion_;
    bool telemetry_wanted_;
    bool timers_can_wait_;
    bool follows_marks_alone_;
    bool round_trips_wanted_;
    std::size_t class_count_;
    unsigned credit_classes_ = 0;
    unsigned strict_classes_ = 0;
    std::vector<PacketLink> links_;
    TimingWheel wheel_;
    std::int64_t now_ = 0;
    PacketPool packets_;
    std::uint32_t free_packets_ = none;    // the first of a list of them
    std::vector<HopTelemetry> telemetry_;  // of each packet, telemetry_hops_ places
    std::size_t telemetry_hops_ = 0;
    std::vector<LinkId> paths_;
    NextHops next_hops_;
    std::vector<Flowlet> flowlets_;
    std::vector<LinkId> flow_ports_;  // of flows that have several, one after the other; else empty
    static constexpr std::uint8_t to_nic = 1;
    static constexpr std::uint8_t to_slow_nic = 2;
    std::vector<std::uint8_t> to_nic_;    // of each link: one of these, or 0
    std::vector<Port> ports_;             // by link
    CacheLines<Queue> queues_;            // by slot: link and class
    std::vector<std::int64_t> deficits_;  // bytes left of a class's turn; empty: none share
    std::vector<Turns> turns_;            // by slot, of NICs
    std::vector<Pause> pauses_;
    std::vector<PauseEdge>* pause_log_ = nullptr;
    CacheLines<IngressShare> ingress_;  // of the link's receiving end
    std::vector<LinkCredits> credits_;  // empty: no class has any
    std::vector<LinkFaults> faults_;
    std::vector<LinkRetry> retries_;       // of the same links
    std::vector<std::int64_t> overflows_;  // by link; empty: there was none
    std::vector<SlowReceiver> slow_receivers_;
    std::vector<std::uint32_t> slow_receiver_of_;  // by link; empty: there is none
    std::vector<PfcWatchdog> watchdogs_;           // empty: there is none
    // The queues of a switch that its watchdog looks at, and when: at offset + n polls.
    struct PollRound {
        std::int64_t offset = 0;
        std::vector<std::size_t> slots;
        bool pending = false;
    };
    std::vector<PollRound> rounds_;      // by vertex
    int discarding_arrivals_ = 0;        // ports that do
    int ignored_pauses_ = 0;             // queues whose pauses are ignored
    std::vector<SwitchBuffer> buffers_;  // by vertex
    std::vector<Flow> flows_;            // by queue pair
    std::vector<Rarely> rarely_;         // likewise
    std::vector<Record> record_;         // by flow
    std::vector<Joint> joints_;
    std::vector<SelectiveSender> senders_;  // by queue pair; empty: go-back-N
    std::vector<SelectiveReceiver> receivers_;
    std::vector<UnorderedSender> unordered_senders_;  // likewise; empty: another recovery
    std::vector<UnorderedReceiver> unordered_receivers_;
    std::vector<DeliveryReport> reports_;  // with unordered recovery: of acknowledgements
    std::vector<std::uint32_t> free_reports_;
    std::vector<std::int64_t> wanted_;  // said by each packet, if its receiver is told
    struct Recovering {                 // from loss by order
        std::uint32_t ends = 0;         // it is over when all before this has come; 0: none
        std::int64_t probe_at = 0;
        std::int64_t probe_event = unset;  // the flow_probe event that counts
        std::int64_t round_trip = 0;       // the shortest seen
    };
    std::vector<Recovering> recovering_;  // by queue pair; empty: nothing is lost by its order
    std::unique_ptr<EntropyChoice> entropy_;
    std::size_t unfinished_ = 0;
    std::uint64_t on_links_ = 0;  // packets
    RandomStream spraying_;
    RandomStream marking_;
    RandomStream trimming_;
    Totals totals_;
};

}  // namespace railyard
