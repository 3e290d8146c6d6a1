// A window from delay alone: what stands for the controls of EFA's SRD and of Spectrum-X, whose laws are not
// public. Of SRD it is known that it sprays over some 64 paths, measures their round trips and keeps as
// little under way as fills the link; of Spectrum-X that its NICs probe round trips.
//
// The base is the network's round trip, or the path's own where that is longer, until a shorter one is seen.
// With d the round trip beyond the base and T a share of the first base: below T the window grows by so many
// packets for each window acknowledged; above it falls, once in a round trip, by beta (d - T) / d, by no
// more than cut_max. So N flows that share a link rest where d is about T, each with (base + T) C / N under
// way. A loss costs cut_max.

#include <algorithm>

#include "models/fabric/congestion.h"

namespace railyard {

namespace {

class DelayControl final : public Congestion {
  public:
    explicit DelayControl(const DelayControlSpec& spec)
        : spec_(spec),
          window_max_(spec.window_max * real(spec.base_rtt.count()) * 1e-12 * spec.line_bits_per_s /
                      8) {}

    void identify(Fingerprint& print) const override {
        print.add_all("delay", spec_.name, spec_.base_rtt, spec_.line_bits_per_s,
                      spec_.target_delay, spec_.window_max, spec_.increase, spec_.beta,
                      spec_.cut_max);
    }
    bool wants_round_trips() const override { return true; }

    void start(std::uint32_t flow, const FlowStart& given, Pace& pace) override {
        State& s = fresh(flows_, flow);
        s.packet = real(given.packet_bytes);
        s.window = window_max_;
        s.base_rtt = std::max(spec_.base_rtt, given.round_trip).count();
        s.target = real(s.base_rtt) * spec_.target_delay;
        pace.bits_per_s = given.line_bits_per_s;
        set(s, pace);
    }

    void acknowledged(std::uint32_t flow, const Acknowledgement& ack, Pace& pace) override {
        State& s = flows_[flow];
        if (ack.trimmed) {
            cut(s, ack.now.count(), spec_.cut_max);
            return set(s, pace);
        }
        if (ack.round_trip.count() == 0) return;  // nothing was timed
        s.base_rtt = std::min(s.base_rtt, ack.round_trip.count());
        const auto delay = real(ack.round_trip.count() - s.base_rtt);
        if (delay <= s.target) {
            const auto bytes = real(ack.bytes + ack.came_bytes);
            s.window += spec_.increase * s.packet * bytes / s.window;
        } else {
            cut(s, ack.now.count(),
                std::min(spec_.cut_max, spec_.beta * (delay - s.target) / delay));
        }
        set(s, pace);
    }

    void lost(std::uint32_t flow, const Loss& loss, Pace& pace) override {
        cut(flows_[flow], loss.now.count(), spec_.cut_max);
        set(flows_[flow], pace);
    }
    void timed_out(std::uint32_t flow, const Loss& loss, Pace& pace) override {
        lost(flow, loss, pace);
    }

  private:
    struct State {
        double packet = 0;  // bytes, on the wire
        double window = 0;
        double target = 0;  // of queues' delay, ps
        std::int64_t base_rtt = 0;
        std::int64_t cut_at = INT64_MIN / 2;
    };

    void cut(State& s, std::int64_t now, double share) const {
        if (now - s.cut_at <= s.base_rtt) return;
        s.window *= 1 - share;
        s.cut_at = now;
    }
    void set(State& s, Pace& pace) const {
        s.window = std::clamp(s.window, s.packet, std::max(s.packet, window_max_));
        pace.window_bytes = static_cast<std::int64_t>(s.window);
    }

    DelayControlSpec spec_;
    double window_max_;
    std::vector<State> flows_;
};

}  // namespace

std::unique_ptr<Congestion> delay_control(const DelayControlSpec& spec) {
    return std::make_unique<DelayControl>(spec);
}

DelayControlSpec read_delay_control(Catalogue& catalogue, const std::string& name,
                                    const CongestionGiven& given) {
    const auto number = [&](const char* key) {
        return catalogue.number("delay_control", name, key);
    };
    DelayControlSpec spec;
    spec.name = name;
    spec.base_rtt = given.base_rtt;
    spec.line_bits_per_s = real(given.line.bits_per_second());
    spec.target_delay = number("target_delay");
    spec.window_max = number("window_max");
    spec.increase = number("increase");
    spec.beta = number("beta");
    spec.cut_max = number("cut_max");
    return spec;
}

}  // namespace railyard
