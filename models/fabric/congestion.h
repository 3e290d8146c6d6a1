#pragma once
// Congestion control: what a sender's NIC makes of the acknowledgements it gets.
//
// One object serves all flows and keeps their state in an array. The engine calls it when a flow starts,
// when an acknowledgement arrives and when the flow's timer was due; it answers by setting the flow's pace.
// A new one is a file with its class, its maker declared here, and a row in the table of congestion.cpp;
// parameters that have a source go to a kind of entries in the catalogue.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "models/fabric/network_kind.h"
#include "sim/fingerprint.h"
#include "sim/units.h"

namespace railyard {

// What the NIC obeys.
struct Pace {
    double bits_per_s = 0;  // on the wire
    // Under way, of payload, or with delivery in any order on the wire: no more is sent beyond; max: no
    // window.
    std::int64_t window_bytes = INT64_MAX;
    Picoseconds wake = Picoseconds::max();  // when the timer is due; max: never
    Picoseconds timeout{};                  // of retransmission; 0: the NIC's own
    std::uint32_t wake_other =
        UINT32_MAX;  // a flow whose timer is due now because of this one; max: none
};

struct FlowStart {
    double line_bits_per_s = 0;      // of its NIC
    std::int64_t payload_bytes = 0;  // of a full packet
    std::int64_t packet_bytes = 0;   // likewise, on the wire
    std::uint32_t destination = 0;   // vertex
    // Its path's, unloaded, with what a slow link adds to a batch that one acknowledgement covers.
    Picoseconds round_trip{};
};

// What one switch on the path wrote into a data packet as it left.
struct HopTelemetry {
    Picoseconds time{};
    std::int64_t sent_bytes = 0;   // by the port, ever, before this packet
    std::int64_t queue_bytes = 0;  // behind this packet
    double bits_per_s = 0;         // of the port
};

struct Acknowledgement {
    Picoseconds now{};
    bool congestion = false;    // the receiver saw a marked packet: this is (also) a CNP
    std::uint32_t next = 0;     // the packet that the receiver waits for
    std::uint32_t to_send = 0;  // the packet that the sender will send next
    std::int64_t bytes = 0;     // of payload, newly acknowledged
    Picoseconds round_trip{};   // since the packet that it answers was sent; 0 unless wanted
    std::span<const HopTelemetry> hops;  // of the data packet; empty unless wanted and on its path
    // Delivery in any order counts bytes on the wire: those that this report is the first to tell of, and
    // those that may still be on their way; and whether it reports a packet that a switch has trimmed.
    std::int64_t came_bytes = 0;
    std::int64_t under_way_bytes = 0;
    bool trimmed = false;
    bool last_hop = false;          // there
    std::int64_t sent_bytes = 0;    // ever, with what was sent again
    std::int64_t wanted_bytes = 0;  // what wanted() said when the packet that it answers left
};

struct Loss {
    Picoseconds now{};
    std::uint32_t next = 0;  // the packet that the receiver waits for
    std::uint32_t sent = 0;  // all before it have been sent
    std::int64_t bytes = 0;  // that are no longer under way; of flows that come in any order
};

class Congestion {
  public:
    virtual ~Congestion() = default;
    virtual bool wants_telemetry() const { return false; }
    // Adds all of its parameters: two with the same ones do the same.
    virtual void identify(Fingerprint& print) const = 0;
    virtual bool wants_round_trips() const { return false; }
    // A queue pair of this index begins; in all of this, "flow" is one.
    virtual void start(std::uint32_t flow, const FlowStart& given, Pace& pace) = 0;
    // It has something to send again, after it had nothing since `idle_since`. Its state is as it was, and
    // timers that were due meanwhile are called when the pace is next needed.
    virtual void resumed(std::uint32_t, Picoseconds /*idle_since*/, Picoseconds /*now*/, Pace&) {}
    // Whether packets say something to their receiver, which hears it as it acknowledges: with delivery in
    // any order.
    virtual bool tells_receivers() const { return false; }
    // The demand that a departing packet reports. Bytes on the wire: all that were sent, with this packet,
    // and those still to be sent; `turns`: how many flows of its NIC could send now, with this one.
    virtual std::int64_t wanted(std::uint32_t, std::int64_t /*sent*/, std::int64_t /*backlog*/,
                                std::int64_t /*turns*/) const {
        return 0;
    }
    // What the NIC at this vertex takes from now on: as much as its links carry, or its host. Of those that
    // tell receivers.
    virtual void receiver_takes(std::uint32_t /*vertex*/, double /*bits_per_s*/,
                                Picoseconds /*now*/) {}
    // Its packets take another path from now on.
    virtual void rerouted(std::uint32_t) {}
    virtual void acknowledged(std::uint32_t flow, const Acknowledgement& ack, Pace& pace) = 0;
    // Whether a timer moves nothing but the rate. Then it has no event: it is called when the pace is next
    // needed, for a packet or an acknowledgement, with the time at which it was due.
    virtual bool timers_can_wait() const { return false; }
    // Whether it reacts to marks, losses and timers only, and changes the rate only: neither window nor
    // timeout. Then it is told of no other acknowledgement.
    virtual bool follows_marks_alone() const { return false; }
    virtual void timer(std::uint32_t, Picoseconds /*now*/, Pace&) {}
    // After an acknowledgement that told of packets not known to be lost before.
    virtual void lost(std::uint32_t, const Loss&, Pace&) {}
    // The retransmission timeout has passed; the next one begins with the pace that this leaves.
    virtual void timed_out(std::uint32_t, const Loss&, Pace&) {}
    // All that it had to send is acknowledged, or it has failed.
    virtual void ended(std::uint32_t, Pace&) {}
};

// A queue pair's state, as new, among those of all.
template <class State>
State& fresh(std::vector<State>& all, std::uint32_t flow) {
    if (flow >= all.size()) all.resize(flow + 1);
    return all[flow] = {};
}

// Line rate, always.
std::unique_ptr<Congestion> no_congestion_control();

// DCQCN (Zhu et al., SIGCOMM 2015), in the paper's form and in that of NVIDIA's NICs.
struct DcqcnSpec {
    double g = 1.0 / 256;
    double initial_alpha = 1;
    Picoseconds alpha_timer{};
    Picoseconds reduce_period{};  // cuts at most once in it; 0: at once, on every CNP (paper)
    Picoseconds increase_timer{};
    std::int64_t byte_counter = 0;  // 0: there is none
    std::int64_t fast_recovery_steps = 1;
    double additive_bits_per_s = 0;
    double hyper_bits_per_s = 0;
    double min_bits_per_s = 0;
    // Whether a cut moves the target too when no increase has come since the cut before it.
    bool clamp_target = false;
};
std::unique_ptr<Congestion> dcqcn(const DcqcnSpec& spec);
// The catalogue's set of this name, for NICs of this line rate.
DcqcnSpec read_dcqcn(Catalogue& catalogue, const std::string& name, Bandwidth line);

// HPCC (Li et al., SIGCOMM 2019): window and rate from what the switches report of themselves.
struct HpccSpec {
    Picoseconds base_rtt{};       // the network's longest, unloaded
    double utilisation = 0.95;    // eta
    std::int64_t stages_max = 5;  // of additive increase in a row
    double additive_bits_per_s = 0;
    double min_bits_per_s = 0;
    // What a switch's clock and counters are rounded down to in a packet's header.
    Picoseconds time_unit{1000};
    std::int64_t sent_unit_bytes = 128;
    std::int64_t queue_unit_bytes = 80;
};
std::unique_ptr<Congestion> hpcc(const HpccSpec& spec);
HpccSpec read_hpcc(Catalogue& catalogue, Bandwidth line, Picoseconds base_rtt);

// TCP as sockets use it: NewReno with SACK. It wants selective repeat, with the duplicate acknowledgements of
// fast retransmit ([tcp], 3) for `reordering`, and classes that lose what finds no room.
struct TcpSpec {
    std::int64_t initial_segments = 10;
    double stream_bits_per_s = 0;  // what a kernel and a core push through one connection
    Picoseconds timeout_min{};     // added to the round trip, as Linux does
    Picoseconds timeout_max{};
    Picoseconds first_timeout{};  // before a round trip was measured
};
std::unique_ptr<Congestion> tcp(const TcpSpec& spec);
TcpSpec read_tcp(Catalogue& catalogue);

// Clear-to-send by the receiver.
struct ReceiverWindowSpec {
    std::int64_t grant_bytes = 0;  // what a sender may have under way, in whole packets
    std::int64_t grants = 1;       // what a receiver has out, over all of its senders
};
std::unique_ptr<Congestion> receiver_window(const ReceiverWindowSpec& spec);
ReceiverWindowSpec read_receiver_window(Catalogue& catalogue);

// NSCC, Ultra Ethernet's network-signal control: a window of the sender's from marks and delay. Of delivery
// in any order.
struct NsccSpec {
    Picoseconds base_rtt{};  // the network's longest, unloaded
    double line_bits_per_s = 0;
    double target_delay = 0;  // of queues, in base round trips
    double window_max = 0;    // and first, in bandwidth-delay products
    // How the window changes, in payloads of a packet for each window acknowledged, at the reference's
    // product: without delay, beyond the target, and once in a round trip whatever comes.
    double proportional = 0;
    double fair = 0;
    double steady = 0;
    double fast_share = 0;  // of what is acknowledged, after a window without delay
    Picoseconds fast_below{};
    double gamma = 0;    // of a cut
    double cut_max = 0;  // of the window
    double adapt_share =
        0;  // of the largest window: with less in a period the window is what has come
    double adapt_delay = 0;           // in targets: so much counts as a loss
    std::int64_t adjust_packets = 0;  // acknowledged before the window moves
    double delay_weight = 0;          // of a sample in the average
    std::int64_t reference_bdp = 0;
    Picoseconds reference_rtt{};
};
std::unique_ptr<Congestion> nscc(const NsccSpec& spec);

// InfiniBand's: switches at the root of a congestion mark (FECN), receivers say so (BECN), and each of these
// moves the sender on in a table of gaps between packets (CCT). A timer moves it back.
struct InfinibandCongestionSpec {
    Picoseconds timer{};        // per place back in the table
    std::int64_t limit = 127;   // the table's last place
    std::int64_t increase = 1;  // places for each BECN
    double gap = 0;             // that each place adds, in packets' own time
};
std::unique_ptr<Congestion> infiniband_congestion(const InfinibandCongestionSpec& spec);

// A window that holds the delay of queues at a target, as the round trip shows it.
struct DelayControlSpec {
    std::string name;        // of the fabric whose control it stands for
    Picoseconds base_rtt{};  // the network's longest, unloaded
    double line_bits_per_s = 0;
    double target_delay = 0;  // of queues, in base round trips
    double window_max = 0;    // and first, in bandwidth-delay products
    double increase = 0;      // packets for each window acknowledged
    double beta = 0;          // of a cut
    double cut_max = 0;       // of the window
};
std::unique_ptr<Congestion> delay_control(const DelayControlSpec& spec);

// What an RCCC receiver makes of a core that cannot carry what it gives credit for (oversubscribed_cc).
struct CoreSpec {
    bool followed = false;
    double round = 0;          // base round trips between two looks
    double round_spread = 0;   // by chance so much of it longer or shorter
    double marked_weight = 0;  // of a round in the mean share of marked packets
    double marked_share = 0;   // of that mean, which the core may have
    double cut = 0;            // for each share beyond it
    double increase =
        0;  // after one round without a cut, twice after two; and the least that is left
    std::uint64_t seed = 1;  // of the rounds
};

// RCCC, Ultra Ethernet's receiver credits.
struct RcccSpec {
    Picoseconds base_rtt{};  // the network's longest, unloaded
    double line_bits_per_s = 0;
    double window_max = 0;         // sent before any credit, and credit not used, in products
    std::int64_t grant_bytes = 0;  // of one credit packet
    std::int64_t unit_bytes = 0;   // in which credit is counted
    double share = 0;              // of the receiver's rate that credits are given for
    CoreSpec core;
};
// `window`: a control of the sender's that must permit what it sends too, where there is one.
std::unique_ptr<Congestion> receiver_credits(const RcccSpec& spec,
                                             std::unique_ptr<Congestion> window = nullptr);

// What a control is made for.
struct CongestionGiven {
    std::string set;  // the name of the catalogue's parameter set, where there are several
    Bandwidth line;
    Picoseconds base_rtt{};       // the network's longest, unloaded
    bool trims = false;           // its switches
    bool oversubscribed = false;  // it has less bandwidth up than down
    std::uint64_t seed = 1;
    // A scenario's own, of infiniband_cc.
    std::optional<Duration> cct_timer{};
    std::optional<std::int64_t> cct_limit{};
};
NsccSpec read_nscc(Catalogue& catalogue, const CongestionGiven& given);
InfinibandCongestionSpec read_infiniband_congestion(Catalogue& catalogue,
                                                    const CongestionGiven& given);
// The catalogue's set of this name.
DelayControlSpec read_delay_control(Catalogue& catalogue, const std::string& name,
                                    const CongestionGiven& given);
RcccSpec read_rccc(Catalogue& catalogue, const CongestionGiven& given);

struct CongestionKind {
    const char* name;
    const char* doc;
    struct Fits {
        std::vector<NetworkKind> networks;
        bool hears_marks;  // ECN changes its rate
    } fits;
    std::unique_ptr<Congestion> (*make)(Catalogue& catalogue, const CongestionGiven& given);
};
const std::vector<CongestionKind>& congestion_kinds();
const CongestionKind& congestion_kind(const std::string& name);

}  // namespace railyard
