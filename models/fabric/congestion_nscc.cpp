// NSCC, Ultra Ethernet's sender-based control (specification 1.0, 3.6.13): a window over all paths, moved by
// marks, which come early, and by delay, which comes late.
//
// What the specification leaves open is as in the consortium's public simulator: the filter of the average
// delay, and what counts as no delay.

#include <algorithm>

#include "models/fabric/congestion.h"

namespace railyard {

namespace {

class Nscc final : public Congestion {
  public:
    explicit Nscc(const NsccSpec& spec)
        : spec_(spec),
          target_(real(spec.base_rtt.count()) * spec.target_delay),
          scale_(bdp() / real(spec.reference_bdp)) {}

    void identify(Fingerprint& print) const override {
        print.add_all("nscc", spec_.base_rtt, spec_.line_bits_per_s, spec_.target_delay,
                      spec_.window_max, spec_.proportional, spec_.fair, spec_.steady,
                      spec_.fast_share, spec_.fast_below, spec_.gamma, spec_.cut_max,
                      spec_.adapt_share, spec_.adapt_delay, spec_.adjust_packets,
                      spec_.delay_weight, spec_.reference_bdp, spec_.reference_rtt);
    }

    bool wants_round_trips() const override { return true; }

    void start(std::uint32_t flow, const FlowStart& given, Pace& pace) override {
        State& s = fresh(flows_, flow);
        s.packet = real(given.packet_bytes);
        s.payload = real(given.payload_bytes);
        s.base_rtt = spec_.base_rtt.count();
        s.window_max = s.window = spec_.window_max * bdp();
        pace.bits_per_s = given.line_bits_per_s;
        set(s, pace);
    }

    void acknowledged(std::uint32_t flow, const Acknowledgement& ack, Pace& pace) override {
        State& s = flows_[flow];
        const std::int64_t now = ack.now.count();
        if (ack.trimmed) {
            hear_of_trim(s, ack);
        } else {
            const double delay = delay_of(s, ack);
            const auto bytes = real(ack.came_bytes);
            s.achieved += bytes;
            s.acked += bytes;
            s.ignored += bytes;
            const bool stops = adapt(s, now, delay > spec_.adapt_delay * target_, ack);
            if (!stops) move(s, now, bytes, delay, ack.congestion);
        }
        set(s, pace);
    }

    // One packet has timed out.
    void timed_out(std::uint32_t flow, const Loss&, Pace& pace) override {
        State& s = flows_[flow];
        s.window -= s.packet;
        set(s, pace);
    }

  private:
    // An unmarked sample above the target is of a queue that was there before: so little of it is believed.
    static constexpr double unmarked_late = 0.25;

    struct State {
        double packet = 0;   // on the wire
        double payload = 0;  // of it
        double window = 0;   // bytes on the wire
        double window_max = 0;
        double increase = 0;   // gathered, times the window
        double acked = 0;      // since the window was last moved
        double undelayed = 0;  // acknowledged in a row
        double average = 0;    // delay, ps
        double achieved = 0;   // acknowledged in this period
        double ignored = 0;
        double to_ignore = 0;
        std::int64_t base_rtt = 0;
        std::int64_t adjusted_at = 0;
        std::int64_t steadied_at = 0;
        std::int64_t cut_at = INT64_MIN / 2;
        std::int64_t period_end = -1;
        bool fast = false;
        bool trimmed = false;  // since it was last adapted
    };

    double bdp() const { return real(spec_.base_rtt.count()) * 1e-12 * spec_.line_bits_per_s / 8; }

    void shorten(State& s, std::int64_t rtt) const {
        s.base_rtt = rtt;
        s.window_max = spec_.window_max * real(rtt) * 1e-12 * spec_.line_bits_per_s / 8;
    }

    // Where nothing was timed, the average.
    double delay_of(State& s, const Acknowledgement& ack) const {
        const std::int64_t rtt = ack.round_trip.count();
        if (rtt == 0) return s.average;
        if (rtt < s.base_rtt) shorten(s, rtt);
        const auto delay = real(rtt - s.base_rtt);
        average(s, ack.congestion || delay <= target_ ? delay : real(s.base_rtt) * unmarked_late);
        return delay;
    }

    void average(State& s, double delay) const {
        s.average += spec_.delay_weight * (delay - s.average);
    }

    void hear_of_trim(State& s, const Acknowledgement& ack) const {
        average(s, real(spec_.base_rtt.count()));
        s.ignored += s.packet;
        s.trimmed = true;
        if (!adapt(s, ack.now.count(), true, ack)) s.window -= s.packet;
    }

    // After a period with a loss, or with far too much delay, in which little has come: the window is what
    // has. Then marks tell of what was sent before, until all of that is accounted for. True: nothing else is
    // to move the window now.
    bool adapt(State& s, std::int64_t now, bool badly, const Acknowledgement& ack) const {
        bool stops = s.ignored < s.to_ignore && (ack.congestion || ack.trimmed);
        if (now < s.period_end) return stops;
        if (s.period_end >= 0 && (s.trimmed || badly) &&
            s.achieved < spec_.adapt_share * s.window_max) {
            s.window = std::max(s.achieved, s.packet);
            s.to_ignore = real(ack.under_way_bytes);
            s.ignored = 0;
            s.trimmed = false;
            s.increase = 0;
            stops = true;
        }
        s.achieved = 0;
        s.period_end = now + s.base_rtt + static_cast<std::int64_t>(target_);
        return stops;
    }

    void move(State& s, std::int64_t now, double bytes, double delay, bool marked) const {
        if (!marked && delay < target_) {
            rise(s, bytes, delay);
        } else if (!marked) {
            s.fast = false;
            s.undelayed = 0;
            s.increase += spec_.fair * s.payload * scale_ * bytes;
        } else if (delay >= target_) {
            fall(s, now);
        }
        if (s.acked > real(spec_.adjust_packets) * s.packet ||
            now - s.adjusted_at >= spec_.base_rtt.count()) {
            s.window += s.increase / s.window;
            s.increase = 0;
            s.acked = 0;
            s.adjusted_at = now;
        }
        if (now - s.steadied_at >= spec_.base_rtt.count()) {
            s.window += spec_.steady * s.payload * scale_;
            s.steadied_at = now;
        }
    }

    // In proportion to what the delay is below its target; after a window without any, much faster.
    void rise(State& s, double bytes, double delay) const {
        if (delay < real(spec_.fast_below.count())) {
            s.undelayed += bytes;
            s.fast = s.fast || s.undelayed > s.window;
        } else {
            s.undelayed = 0;
            s.fast = false;
        }
        if (s.fast) {
            s.window += spec_.fast_share * scale_ * bytes;
            return;
        }
        const double target_scale = target_ / real(spec_.reference_rtt.count());
        s.increase += spec_.proportional * s.payload * scale_ * target_scale * (target_ - delay) /
                      target_ * bytes;
    }

    // Once in a round trip.
    void fall(State& s, std::int64_t now) const {
        s.fast = false;
        s.undelayed = 0;
        if (s.average <= target_ || now - s.cut_at <= s.base_rtt) return;
        s.window *=
            std::max(1 - spec_.gamma * (s.average - target_) / s.average, 1 - spec_.cut_max);
        s.cut_at = now;
    }

    static void set(State& s, Pace& pace) {
        s.window = std::clamp(s.window, s.packet, std::max(s.packet, s.window_max));
        pace.window_bytes = static_cast<std::int64_t>(s.window);
    }

    NsccSpec spec_;
    double target_;  // queueing delay, ps
    double scale_;   // of increases: its bandwidth-delay product over the reference's
    std::vector<State> flows_;
};

}  // namespace

std::unique_ptr<Congestion> nscc(const NsccSpec& spec) {
    return std::make_unique<Nscc>(spec);
}

NsccSpec read_nscc(Catalogue& catalogue, const CongestionGiven& given) {
    const auto number = [&](const char* key) { return catalogue.number("nscc", "", key); };
    NsccSpec spec;
    spec.base_rtt = given.base_rtt;
    spec.line_bits_per_s = real(given.line.bits_per_second());
    spec.target_delay = number(given.trims ? "target_delay_trimming" : "target_delay");
    spec.window_max = number("window_max");
    spec.proportional = number("proportional_increase");
    spec.fair = number("fair_increase");
    spec.steady = number("steady_increase");
    spec.fast_share = number("fast_increase");
    spec.fast_below = catalogue.time("nscc", "", "fast_increase_below");
    spec.gamma = number("gamma");
    spec.cut_max = number("cut_max");
    spec.adapt_share = number("quick_adapt_share");
    spec.adapt_delay = number("quick_adapt_delay");
    spec.adjust_packets = catalogue.integer("nscc", "", "adjust_packets");
    spec.delay_weight = number("delay_weight");
    spec.reference_bdp = catalogue.data("nscc", "", "reference_bdp").count();
    spec.reference_rtt = catalogue.time("nscc", "", "reference_rtt");
    return spec;
}

}  // namespace railyard
