// RCCC, Ultra Ethernet's receiver credits (specification 1.0, 3.6.14), as in the consortium's public
// simulator, from EQDS (Olteanu et al., NSDI 2022).
//
// A sender begins with credit for some bandwidth-delay products. What of it is left when the first word
// comes back is void: from then on it sends what its receiver gives. The receiver gives credit, so many
// bytes at a time, to those of its senders in turn that want any, at a pace a little below its own rate. A
// sender wants what it has to send, but never more than those products ahead, divided by the flows of its
// NIC.
//
// One clock for both ends: packets carry what the sender wants, so an acknowledgement comes as soon as the
// first credit would, and a credit is there when it is given. Left out: credit in advance to senders that
// want none, and the credit packets' own bandwidth (64 B for each 16 KiB).

#include <algorithm>
#include <deque>

#include "models/fabric/congestion.h"

namespace railyard {

namespace {

class ReceiverCredits final : public Congestion {
  public:
    explicit ReceiverCredits(const RcccSpec& spec)
        : spec_(spec),
          ahead_(static_cast<std::int64_t>(spec.window_max *
                                           static_cast<double>(spec.base_rtt.count()) * 1e-12 *
                                           spec.line_bits_per_s / 8)) {}

    void identify(Fingerprint& print) const override {
        print.add_all("rccc", spec_.base_rtt, spec_.line_bits_per_s, spec_.window_max,
                      spec_.grant_bytes, spec_.share);
    }

    void start(std::uint32_t flow, const FlowStart& given, Pace& pace) override {
        if (flow >= flows_.size()) flows_.resize(flow + 1);
        const std::size_t ends = std::max(given.destination, given.source) + std::size_t{1};
        if (ends > receivers_.size()) {
            receivers_.resize(ends);
            sending_.resize(ends);
        }
        State& s = flows_[flow];
        s = {};
        s.destination = given.destination;
        s.source = given.source;
        s.packet = given.packet_bytes;
        pace.bits_per_s = given.line_bits_per_s;
        speculate(s, pace);
    }

    void resumed(std::uint32_t flow, Picoseconds, Picoseconds, Pace& pace) override {
        speculate(flows_[flow], pace);
    }

    void acknowledged(std::uint32_t flow, const Acknowledgement& ack, Pace& pace) override {
        State& s = flows_[flow];
        s.sent = ack.sent_bytes;
        s.under_way = ack.under_way_bytes;
        s.wanted = s.sent + ack.backlog_bytes;
        if (s.speculates) s.credit = s.sent;
        s.speculates = false;
        ask(flow, ack.now, pace);
        set(s, pace);
    }

    // Its credit has come: it gets it, and the next in turn is called when the pace allows.
    void timer(std::uint32_t flow, Picoseconds now, Pace& pace) override {
        State& s = flows_[flow];
        Receiver& r = receivers_[s.destination];
        pace.wake = Picoseconds::max();
        if (r.turn != flow) return set(s, pace);
        if (now < r.free_at) {
            pace.wake = r.free_at;
            return;
        }
        r.turn = none;
        const std::int64_t grant = std::min(spec_.grant_bytes, wish(s));
        if (grant > 0) {
            s.credit += grant;
            r.free_at = now + time_of(grant);
        }
        s.waits = false;
        ask(flow, now, pace);
        set(s, pace);
    }

    // Its one packet goes again without credit: nobody else knows of it.
    void timed_out(std::uint32_t flow, const Loss&, Pace&) override {
        flows_[flow].credit += flows_[flow].packet;
    }

    void ended(std::uint32_t flow, Pace& pace) override {
        State& s = flows_[flow];
        s.wanted = 0;
        --sending_[s.source];
        Receiver& r = receivers_[s.destination];
        if (r.turn != flow) return;
        r.turn = none;
        s.waits = false;
        next_turn(flow, r.free_at, pace);
    }

  private:
    static constexpr std::uint32_t none = UINT32_MAX;
    struct State {
        std::int64_t packet = 0;
        std::int64_t credit = 0;  // bytes that it may ever have sent
        std::int64_t sent = 0;    // as of the last acknowledgement
        std::int64_t under_way = 0;
        std::int64_t wanted = 0;  // bytes that it will have sent
        std::uint32_t destination = 0;
        std::uint32_t source = 0;
        bool speculates = false;
        bool waits = false;  // for its turn
    };
    struct Receiver {
        std::deque<std::uint32_t> waiting;
        std::uint32_t turn = none;  // whose timer will be called
        Picoseconds free_at{};
    };

    void speculate(State& s, Pace& pace) {
        ++sending_[s.source];
        s.speculates = true;
        s.sent = s.credit;
        s.under_way = 0;
        s.credit += ahead_;
        set(s, pace);
    }
    Picoseconds time_of(std::int64_t bytes) const {
        return Picoseconds(static_cast<std::int64_t>(static_cast<double>(bytes) * 8e12 /
                                                     (spec_.share * spec_.line_bits_per_s)));
    }
    std::int64_t wish(const State& s) const {
        const std::int64_t flows = std::max<std::int64_t>(1, sending_[s.source]);
        const std::int64_t most = s.sent + std::max(ahead_ / flows, spec_.grant_bytes);
        return std::min(s.wanted, most) - s.credit;
    }
    void ask(std::uint32_t flow, Picoseconds now, Pace& pace) {
        State& s = flows_[flow];
        Receiver& r = receivers_[s.destination];
        if (!s.waits && wish(s) > 0) {
            s.waits = true;
            r.waiting.push_back(flow);
        }
        if (r.turn == none) next_turn(flow, now, pace);
    }
    // The first that waits and still wants credit. If that is another than `flow`, whose pace this is, the
    // engine calls it.
    void next_turn(std::uint32_t flow, Picoseconds now, Pace& pace) {
        Receiver& r = receivers_[flows_[flow].destination];
        while (!r.waiting.empty() && wish(flows_[r.waiting.front()]) <= 0) {
            flows_[r.waiting.front()].waits = false;
            r.waiting.pop_front();
        }
        if (r.waiting.empty()) return;
        r.turn = r.waiting.front();
        r.waiting.pop_front();
        if (r.turn != flow) {
            pace.wake_other = r.turn;
        } else {
            pace.wake = std::max(now, r.free_at);
        }
    }
    void set(const State& s, Pace& pace) const {
        pace.window_bytes = s.under_way + s.credit - s.sent;
    }

    RcccSpec spec_;
    std::int64_t ahead_;
    std::vector<State> flows_;
    std::vector<Receiver> receivers_;    // by vertex
    std::vector<std::int64_t> sending_;  // flows, by vertex
};

}  // namespace

std::unique_ptr<Congestion> receiver_credits(const RcccSpec& spec) {
    return std::make_unique<ReceiverCredits>(spec);
}

RcccSpec read_rccc(Catalogue& catalogue, const CongestionGiven& given) {
    RcccSpec spec;
    spec.base_rtt = given.base_rtt;
    spec.line_bits_per_s = static_cast<double>(given.line.bits_per_second());
    spec.window_max = catalogue.number("nscc", "", "window_max");
    spec.grant_bytes = catalogue.data("rccc", "", "grant").count();
    spec.share = catalogue.number("rccc", "", "share");
    return spec;
}

}  // namespace railyard
