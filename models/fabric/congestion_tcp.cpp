// TCP: NewReno with SACK (RFC 5681, 6582, 6675), timeouts of RFC 6298 with Linux's floor.
//
// Reno and not CUBIC: at a data centre's round trips CUBIC's cubic term (0.4 segments per s^3) adds nothing
// between two losses, and what is left of it is its Reno-friendly region (RFC 9438, 4.3), whose mean window
// is Reno's. The engine has the scoreboard (selective_repeat.h) and sends while less than the window is
// under way.

#include <algorithm>

#include "models/fabric/congestion.h"

namespace railyard {

namespace {

class Tcp final : public Congestion {
  public:
    explicit Tcp(const TcpSpec& spec) : spec_(spec) {}

    void identify(Fingerprint& print) const override {
        print.add_all("tcp", spec_.initial_segments, spec_.stream_bits_per_s, spec_.timeout_min,
                      spec_.timeout_max, spec_.first_timeout);
    }

    bool wants_round_trips() const override { return true; }

    void start(std::uint32_t flow, const FlowStart& given, Pace& pace) override {
        State& s = fresh(flows_, flow);
        s.segment = given.payload_bytes;
        s.window = spec_.initial_segments * s.segment;
        s.timeout = spec_.first_timeout;
        pace.bits_per_s = std::min(given.line_bits_per_s, spec_.stream_bits_per_s);
        set(s, pace);
    }

    // RFC 5681, 4.1, as Linux has it unless told otherwise: the window is no longer known to fit.
    void resumed(std::uint32_t flow, Picoseconds idle_since, Picoseconds now, Pace& pace) override {
        State& s = flows_[flow];
        if (now - idle_since <= s.timeout) return;
        s.window = std::min(s.window, spec_.initial_segments * s.segment);
        s.grown = 0;
        set(s, pace);
    }

    void acknowledged(std::uint32_t flow, const Acknowledgement& ack, Pace& pace) override {
        State& s = flows_[flow];
        if (ack.round_trip.count() > 0) measure(s, ack.round_trip);
        if (ack.bytes > 0 && !s.recovering) grow(s, ack);
        if (ack.next >= s.recover) s.recovering = false;
        set(s, pace);
    }

    // Once in a window.
    void lost(std::uint32_t flow, const Loss& loss, Pace& pace) override {
        State& s = flows_[flow];
        if (loss.next < s.recover) return;
        s.threshold = s.window = std::max(s.window / 2, 2 * s.segment);
        s.grown = 0;
        s.recovering = true;
        s.recover = loss.sent;
        set(s, pace);
    }

    void timed_out(std::uint32_t flow, const Loss& loss, Pace& pace) override {
        State& s = flows_[flow];
        if (s.window > s.segment) s.threshold = std::max(s.window / 2, 2 * s.segment);
        s.window = s.segment;
        s.grown = 0;
        s.recovering = false;
        s.recover = loss.sent;
        s.timeout = std::min(2 * s.timeout, spec_.timeout_max);
        set(s, pace);
    }

  private:
    struct State {
        std::int64_t segment = 0;
        std::int64_t window = 0;
        std::int64_t threshold = INT64_MAX;  // of slow start
        std::int64_t grown = 0;              // acknowledged towards the next segment of the window
        bool recovering = false;             // by fast retransmit
        std::uint32_t recover = 0;           // until all before this packet has come: no second cut
        Picoseconds round_trip{};            // smoothed
        Picoseconds variation{};
        Picoseconds timeout{};
    };

    void measure(State& s, Picoseconds round_trip) const {
        if (s.round_trip.count() == 0) {
            s.round_trip = round_trip;
            s.variation = round_trip / 2;
        } else {
            const Picoseconds off = round_trip - s.round_trip;
            s.variation += (std::max(off, -off) - s.variation) / 4;
            s.round_trip += off / 8;
        }
        s.timeout = s.round_trip + std::max(4 * s.variation, spec_.timeout_min);
    }

    // Not when something else than the window held the sender back.
    static void grow(State& s, const Acknowledgement& ack) {
        const std::int64_t open = (ack.to_send - ack.next) * s.segment + ack.bytes;
        if (s.window < s.threshold) {
            if (s.window < 2 * open) s.window = std::min(s.window + ack.bytes, s.threshold);
            return;
        }
        if (open + s.segment <= s.window) return;
        s.grown += ack.bytes;
        if (s.grown < s.window) return;
        s.grown -= s.window;
        s.window += s.segment;
    }

    static void set(const State& s, Pace& pace) {
        pace.window_bytes = s.window;
        pace.timeout = s.timeout;
    }

    TcpSpec spec_;
    std::vector<State> flows_;
};

}  // namespace

std::unique_ptr<Congestion> tcp(const TcpSpec& spec) {
    return std::make_unique<Tcp>(spec);
}

TcpSpec read_tcp(Catalogue& catalogue) {
    TcpSpec spec;
    spec.initial_segments = catalogue.integer("tcp", "", "initial_cwnd_segments");
    spec.stream_bits_per_s =
        real(catalogue.bandwidth("tcp", "", "stream_bandwidth").bits_per_second());
    spec.timeout_min = catalogue.time("tcp", "", "rto_min");
    spec.timeout_max = catalogue.time("tcp", "", "rto_max");
    spec.first_timeout = catalogue.time("tcp", "", "rto_initial");
    return spec;
}

}  // namespace railyard
