#include <algorithm>

#include "models/fabric/congestion.h"

namespace railyard {

namespace {

class Hpcc final : public Congestion {
  public:
    explicit Hpcc(const HpccSpec& spec) : spec_(spec) {}

    void identify(Fingerprint& print) const override {
        print.add_all("hpcc", spec_.base_rtt, spec_.utilisation, spec_.stages_max,
                      spec_.additive_bits_per_s, spec_.min_bits_per_s, spec_.time_unit,
                      spec_.sent_unit_bytes, spec_.queue_unit_bytes);
    }

    bool wants_telemetry() const override { return true; }

    void start(std::uint32_t flow, const FlowStart& given, Pace& pace) override {
        State& s = fresh(flows_, flow);
        s.line = s.reference = given.line_bits_per_s;
        set(s, given.line_bits_per_s, pace);
    }

    // Every acknowledgement moves the rate away from a reference rate; once per round trip the reference
    // itself moves.
    void acknowledged(std::uint32_t flow, const Acknowledgement& ack, Pace& pace) override {
        if (ack.hops.empty()) return;  // of a path that it has left
        State& s = flows_[flow];
        const bool first = s.updated_at == 0;
        told_.clear();
        for (const HopTelemetry& h : ack.hops) told_.push_back(as_written(h));
        if (!first) adjust(s, ack.next > s.updated_at, pace);
        if (ack.next > s.updated_at) s.updated_at = ack.to_send;
        s.hops = told_;
    }

    void rerouted(std::uint32_t flow) override {
        if (flow < flows_.size()) flows_[flow].hops.clear();
    }

  private:
    struct State {
        double line = 0;
        double reference = 0;    // the paper's W_c, as a rate
        double utilisation = 1;  // U, averaged
        std::int64_t stage = 0;  // additive increases in a row
        std::uint32_t updated_at =
            0;  // the reference moves when packets from this one on come back
        std::vector<HopTelemetry> hops;  // as the last acknowledgement told them
    };

    static double ps(Picoseconds t) { return real(t.count()); }

    // The packet's header has few bits for a hop. Rounding is what makes a flow lose that crosses several
    // bottlenecks: it obeys the hop that looks fullest, and with every rounding another one does.
    HopTelemetry as_written(HopTelemetry h) const {
        h.time -= h.time % spec_.time_unit;
        h.sent_bytes -= h.sent_bytes % spec_.sent_unit_bytes;
        h.queue_bytes -= h.queue_bytes % spec_.queue_unit_bytes;
        return h;
    }

    void adjust(State& s, bool move_reference, Pace& pace) const {
        const double base_rtt = ps(spec_.base_rtt);
        const double window_bits = s.line * base_rtt * 1e-12;
        double most = 0;
        Picoseconds over{};
        for (std::size_t i = 0; i < told_.size() && i < s.hops.size(); ++i) {
            const HopTelemetry& now = told_[i];
            const HopTelemetry& then = s.hops[i];
            const Picoseconds passed = now.time - then.time;
            if (passed.count() <= 0) continue;
            const double sent_bits = 8e12 * real(now.sent_bytes - then.sent_bytes);
            const double queue_bits = 8 * real(std::min(now.queue_bytes, then.queue_bytes));
            const double u = sent_bits / ps(passed) / now.bits_per_s +
                             queue_bits * s.line / now.bits_per_s / window_bits;
            if (u > most) {
                most = u;
                over = passed;
            }
        }
        const double weight = std::min(1.0, ps(over) / base_rtt);
        s.utilisation = s.utilisation * (1 - weight) + most * weight;
        const double excess = s.utilisation / spec_.utilisation;
        const bool scale = excess >= 1 || s.stage >= spec_.stages_max;
        double rate = (scale ? s.reference / excess : s.reference) + spec_.additive_bits_per_s;
        rate = std::clamp(rate, spec_.min_bits_per_s, s.line);
        set(s, rate, pace);
        if (!move_reference) return;
        s.reference = rate;
        s.stage = scale ? 0 : s.stage + 1;
    }

    void set(const State& s, double rate, Pace& pace) const {
        pace.bits_per_s = rate;
        const double window = s.line * ps(spec_.base_rtt) * 1e-12 / 8;
        pace.window_bytes =
            std::max<std::int64_t>(1, static_cast<std::int64_t>(window * rate / s.line));
    }

    HpccSpec spec_;
    std::vector<State> flows_;
    std::vector<HopTelemetry> told_;  // by the acknowledgement at hand
};

}  // namespace

std::unique_ptr<Congestion> hpcc(const HpccSpec& spec) {
    return std::make_unique<Hpcc>(spec);
}

HpccSpec read_hpcc(Catalogue& catalogue, Bandwidth line, Picoseconds base_rtt) {
    const double per_25_gbit = real(line.bits_per_second()) / 25e9;
    const auto bits = [&](const char* key) {
        return real(catalogue.bandwidth("hpcc", "", key).bits_per_second());
    };
    HpccSpec spec;
    spec.base_rtt = base_rtt;
    spec.utilisation = catalogue.number("hpcc", "", "utilisation");
    spec.stages_max = catalogue.integer("hpcc", "", "stages_max");
    spec.additive_bits_per_s = bits("additive_increase_rate_per_25_gbit") * per_25_gbit;
    spec.min_bits_per_s = bits("min_rate");
    spec.time_unit = catalogue.time("hpcc", "", "telemetry_time_unit");
    spec.sent_unit_bytes = catalogue.data("hpcc", "", "telemetry_sent_unit").count();
    spec.queue_unit_bytes = catalogue.data("hpcc", "", "telemetry_queue_unit").count();
    return spec;
}

}  // namespace railyard
