// RCCC, Ultra Ethernet's receiver credits (specification 1.0, 3.6.14), as in the consortium's public
// simulator, from EQDS (Olteanu et al., NSDI 2022).
//
// A sender begins with credit for some bandwidth-delay products. What of it is left when the first word
// comes back is void: from then on it sends while it has credit, and may overdraw it by a part of a packet.
// Each packet says how much credit its sender wants: for what it has to send, those products at most, divided
// by the flows of its NIC that could send now, less the credit that it has. The receiver gives credit in
// portions, at a pace a little below the rate at which its links work and its host takes packets: in turn to
// its senders that want any, and first to one that it has not heard of before. While none wants any, the
// others get it in turn, in advance, up to those products beyond what they want. Senders that have ended
// get it too: a receiver can't know that they have.
//
// With a window beside it (NSCC) both must permit a packet, and a sender wants no more than its window. What
// the last link trims does not move that window.
//
// Where the network's core is oversubscribed a receiver follows it too (CoreSpec): once in some round trips
// it gives up the share of its packets that were trimmed before the last link, and more where many were
// marked; else it goes up again, each time by twice as much.
//
// One clock for both ends: what a packet says is heard when its acknowledgement comes, and a credit is there
// when it is given. Left out: the credit packets' own bandwidth (64 B for each 16 KiB).

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "models/fabric/congestion.h"
#include "sim/rng.h"

namespace railyard {

namespace {

// The share of its rate that a receiver gives credit for.
class CoreShare {
  public:
    double share() const { return share_; }
    // News of so many packets, trimmed ones among them. `round`: how long until the next look. Where
    // nothing has come there is nothing to look at.
    void heard(const CoreSpec& spec, const Acknowledgement& ack, double packets,
               Picoseconds round) {
        if (packets_ > 0 && ack.now >= look_at_) {
            look(spec);
            look_at_ = ack.now + round;
        }
        packets_ += packets;
        trimmed_ += ack.trimmed && !ack.last_hop ? 1 : 0;
        marked_ += ack.congestion ? 1 : 0;
    }

  private:
    void look(const CoreSpec& spec) {
        if (trimmed_ > 0) clean_ = 0;
        share_ -= trimmed_ / packets_;
        marked_mean_ += spec.marked_weight * (marked_ / packets_ - marked_mean_);
        if (marked_mean_ > spec.marked_share) {
            share_ *= 1 - spec.cut * (marked_mean_ - spec.marked_share);
            clean_ = 0;
        } else {
            share_ += std::ldexp(spec.increase, clean_++);
        }
        share_ = std::clamp(share_, spec.increase, 1.0);
        packets_ = trimmed_ = marked_ = 0;
    }

    double share_ = 1;
    double marked_mean_ = 0;
    int clean_ = 0;  // rounds in a row
    Picoseconds look_at_{};
    // Since the last look.
    double packets_ = 0;
    double trimmed_ = 0;
    double marked_ = 0;
};

class ReceiverCredits final : public Congestion {
  public:
    ReceiverCredits(const RcccSpec& spec, std::unique_ptr<Congestion> window)
        : spec_(spec),
          window_(std::move(window)),
          rounds_(spec.core.seed, 0, "rccc/rounds"),
          ahead_(static_cast<std::int64_t>(spec.window_max * real(spec.base_rtt.count()) * 1e-12 *
                                           spec.line_bits_per_s / 8)) {}

    void identify(Fingerprint& print) const override {
        print.add_all("rccc", spec_.base_rtt, spec_.line_bits_per_s, spec_.window_max,
                      spec_.grant_bytes, spec_.share, spec_.unit_bytes, spec_.core.followed);
        if (window_) window_->identify(print);
    }

    bool wants_round_trips() const override { return window_ != nullptr; }

    void start(std::uint32_t flow, const FlowStart& given, Pace& pace) override {
        State& s = fresh(flows_, flow);
        receiver(given.destination);
        s.destination = given.destination;
        s.packet = given.packet_bytes;
        pace.bits_per_s = given.line_bits_per_s;
        if (window_) {
            if (flow >= windows_.size()) windows_.resize(flow + 1);
            window_->start(flow, given, windows_[flow]);
        }
        begin(flow, pace);
    }

    // Credit that it was given in advance is as good as its first.
    void resumed(std::uint32_t flow, Picoseconds, Picoseconds now, Pace& pace) override {
        State& s = flows_[flow];
        catch_up(receivers_[s.destination], now);
        begin(flow, pace);
    }

    bool tells_receivers() const override { return true; }
    void receiver_takes(std::uint32_t vertex, double bits_per_s, Picoseconds now) override {
        Receiver& r = receiver(vertex);
        catch_up(r, now);
        r.bits_per_s = bits_per_s;
    }
    std::int64_t wanted(std::uint32_t flow, std::int64_t sent, std::int64_t backlog,
                        std::int64_t turns) const override {
        const State& s = flows_[flow];
        const std::int64_t unit = spec_.unit_bytes;
        std::int64_t most = std::min(backlog, ahead_);
        if (window_) most = std::min(most, windows_[flow].window_bytes + s.packet);
        const std::int64_t more = most / turns - (s.credit - sent);
        return s.given + (more > 0 ? (more + unit - 1) / unit * unit : more);
    }

    void acknowledged(std::uint32_t flow, const Acknowledgement& ack, Pace& pace) override {
        State& s = flows_[flow];
        s.sent = ack.sent_bytes;
        s.under_way = ack.under_way_bytes;
        s.wanted = s.heard ? std::max(s.wanted, ack.wanted_bytes) : ack.wanted_bytes;
        if (s.speculates) s.credit = std::min(s.credit, s.sent + s.given - s.given_before);
        s.speculates = false;
        // What the last link trims the receiver knows of.
        if (window_ && !(ack.trimmed && ack.last_hop)) {
            window_->acknowledged(flow, ack, windows_[flow]);
        }
        Receiver& r = receivers_[s.destination];
        catch_up(r, ack.now);
        if (spec_.core.followed) {
            const double packets = real(ack.came_bytes) / real(s.packet);
            r.core.heard(spec_.core, ack, packets + (ack.trimmed ? 1 : 0), next_round());
        }
        queue(r, flow);
        if (r.clock == none) {
            r.clock = flow;
            pace.wake = std::max(ack.now, r.free_at);
        }
        set(flow, pace);
    }

    // The packet is no longer under way, and needs credit to go again.
    void timed_out(std::uint32_t flow, const Loss& loss, Pace& pace) override {
        State& s = flows_[flow];
        s.under_way -= loss.bytes;
        if (window_) window_->timed_out(flow, loss, windows_[flow]);
        set(flow, pace);
    }

    // One flow of each receiver keeps its clock; others are called when they have been given something.
    void timer(std::uint32_t flow, Picoseconds now, Pace& pace) override {
        State& s = flows_[flow];
        Receiver& r = receivers_[s.destination];
        pace.wake = Picoseconds::max();
        if (r.clock == flow) {
            if (r.free_at <= now && !r.idle()) {
                r.free_at = now;
                const std::uint32_t other = give(r);
                if (other != flow && flows_[other].runs) pace.wake_other = other;
            }
            if (r.idle()) {
                r.clock = none;
            } else {
                pace.wake = r.free_at;
            }
        }
        set(flow, pace);
    }

    void ended(std::uint32_t flow, Pace& pace) override {
        State& s = flows_[flow];
        s.runs = false;
        Receiver& r = receivers_[s.destination];
        if (r.clock != flow) return;
        r.clock = none;
        pace.wake = Picoseconds::max();
        for (const auto* senders : {&r.wanting, &r.others}) {
            for (const std::uint32_t other : *senders) {
                if (!flows_[other].runs) continue;
                r.clock = pace.wake_other = other;
                return;
            }
        }
    }

  private:
    static constexpr std::uint32_t none = UINT32_MAX;
    enum class Place : std::uint8_t { nowhere, wanting, others };
    struct State {
        std::int64_t packet = 0;
        std::int64_t credit = 0;  // bytes that it may ever have sent
        std::int64_t sent = 0;    // as of the last acknowledgement
        std::int64_t under_way = 0;
        std::int64_t given = 0;         // by its receiver, ever
        std::int64_t given_before = 0;  // when it began to speculate
        std::int64_t wanted = 0;        // of that, as far as the receiver has heard
        std::uint32_t destination = 0;
        Place place = Place::nowhere;
        bool speculates = false;
        bool heard = false;  // of, by the receiver
        bool runs = false;
    };
    struct Receiver {
        double bits_per_s = 0;  // that it takes
        std::deque<std::uint32_t> wanting;
        std::deque<std::uint32_t> others;  // that credit is given to in advance
        std::uint32_t clock = none;        // the flow whose timer is its own
        CoreShare core;
        Picoseconds free_at{};
        bool idle() const { return wanting.empty() && others.empty(); }
    };

    void begin(std::uint32_t flow, Pace& pace) {
        State& s = flows_[flow];
        s.runs = true;
        s.under_way = 0;
        s.speculates = s.credit - s.sent <= 0;
        if (s.speculates) s.credit = s.sent + ahead_;
        s.given_before = s.given;
        set(flow, pace);
    }
    Receiver& receiver(std::uint32_t vertex) {
        if (vertex >= receivers_.size()) {
            Receiver fresh;
            fresh.bits_per_s = spec_.line_bits_per_s;
            receivers_.resize(vertex + 1U, fresh);
        }
        return receivers_[vertex];
    }
    Picoseconds next_round() {
        const CoreSpec& core = spec_.core;
        const double long_as = core.round * (1 + core.round_spread * (2 * rounds_.uniform() - 1));
        return Picoseconds(std::llround(real(spec_.base_rtt.count()) * long_as));
    }
    // Into the turns of those that want credit, or of the others.
    void queue(Receiver& r, std::uint32_t flow) {
        State& s = flows_[flow];
        if ((s.wanted > s.given || !s.heard) && s.place != Place::wanting) {
            if (s.place == Place::others) r.others.erase(std::ranges::find(r.others, flow));
            s.place = Place::wanting;
            s.heard = true;
            r.wanting.push_back(flow);
        } else if (s.place == Place::nowhere && s.given - s.wanted < ahead_) {
            s.place = Place::others;
            r.others.push_back(flow);
        }
    }
    // One credit packet to the first in turn, which is returned.
    std::uint32_t give(Receiver& r) {
        std::deque<std::uint32_t>& senders = r.wanting.empty() ? r.others : r.wanting;
        const std::uint32_t flow = senders.front();
        senders.pop_front();
        State& s = flows_[flow];
        const std::int64_t grant = s.wanted > s.given
                                       ? std::min(s.wanted - s.given, spec_.grant_bytes)
                                       : spec_.grant_bytes;
        s.place = Place::nowhere;
        s.given += grant;
        s.credit += grant;
        const double bits_per_s = spec_.share * r.core.share() * r.bits_per_s;
        r.free_at += Picoseconds(static_cast<std::int64_t>(real(grant) * 8e12 / bits_per_s));
        queue(r, flow);
        return flow;
    }
    // While none of its senders runs nobody keeps its clock.
    void catch_up(Receiver& r, Picoseconds now) {
        if (r.clock != none) return;
        while (r.free_at <= now && !r.idle()) give(r);
    }
    void set(std::uint32_t flow, Pace& pace) const {
        const State& s = flows_[flow];
        pace.window_bytes = s.under_way + s.credit - s.sent + s.packet - 1;
        if (window_) pace.window_bytes = std::min(pace.window_bytes, windows_[flow].window_bytes);
    }

    RcccSpec spec_;
    std::unique_ptr<Congestion> window_;
    RandomStream rounds_;
    std::int64_t ahead_;
    std::vector<Pace> windows_;  // what `window_` permits each flow
    std::vector<State> flows_;
    std::vector<Receiver> receivers_;  // by vertex
};

}  // namespace

std::unique_ptr<Congestion> receiver_credits(const RcccSpec& spec,
                                             std::unique_ptr<Congestion> window) {
    return std::make_unique<ReceiverCredits>(spec, std::move(window));
}

RcccSpec read_rccc(Catalogue& catalogue, const CongestionGiven& given) {
    RcccSpec spec;
    spec.base_rtt = given.base_rtt;
    spec.line_bits_per_s = real(given.line.bits_per_second());
    spec.window_max = catalogue.number("nscc", "", "window_max");
    spec.grant_bytes = catalogue.data("rccc", "", "grant").count();
    spec.share = catalogue.number("rccc", "", "share");
    spec.unit_bytes = catalogue.data("rccc", "", "unit").count();
    const auto of_core = [&](const char* key) { return catalogue.number("rccc", "", key); };
    spec.core = {given.oversubscribed,         of_core("core_round"),
                 of_core("core_round_spread"), of_core("core_marked_weight"),
                 of_core("core_marked_share"), of_core("core_cut"),
                 of_core("core_increase"),     given.seed};
    return spec;
}

}  // namespace railyard
