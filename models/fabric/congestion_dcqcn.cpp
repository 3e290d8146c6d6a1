#include <algorithm>

#include "models/fabric/congestion.h"

namespace railyard {

namespace {

// x^n by squaring: the same bits everywhere.
double to_the_power(double x, std::int64_t n) {
    double result = 1;
    for (; n > 0; n >>= 1) {
        if ((n & 1) != 0) result *= x;
        x *= x;
    }
    return result;
}

// A flow that sees no marks costs nothing: alpha's periodic decay is computed when alpha is next looked at,
// and cuts are timed on the grid of periods that its first CNP begins.
class Dcqcn final : public Congestion {
  public:
    explicit Dcqcn(const DcqcnSpec& spec) : spec_(spec) {}

    void identify(Fingerprint& print) const override {
        print.add_all("dcqcn", spec_.g, spec_.initial_alpha, spec_.alpha_timer, spec_.reduce_period,
                      spec_.increase_timer, spec_.byte_counter, spec_.fast_recovery_steps,
                      spec_.additive_bits_per_s, spec_.hyper_bits_per_s, spec_.min_bits_per_s,
                      spec_.clamp_target);
    }

    void start(std::uint32_t flow, const FlowStart& given, Pace& pace) override {
        State& s = fresh(flows_, flow);
        s.target = s.line = given.line_bits_per_s;
        s.alpha = spec_.initial_alpha;
        pace.bits_per_s = given.line_bits_per_s;
    }

    void acknowledged(std::uint32_t flow, const Acknowledgement& ack, Pace& pace) override {
        State& s = flows_[flow];
        if (ack.congestion) {
            notified(s, ack.now, pace);
        } else if (!s.limited) {
            return;
        }
        if (spec_.byte_counter > 0) {
            s.bytes += ack.bytes;
            while (s.bytes >= spec_.byte_counter) {
                s.bytes -= spec_.byte_counter;
                increase(s, pace);
                ++s.byte_stage;
            }
        }
        pace.wake = std::min(s.cut_at, s.increase_at);
    }

    bool timers_can_wait() const override { return true; }
    bool follows_marks_alone() const override { return spec_.byte_counter == 0; }
    void timer(std::uint32_t flow, Picoseconds now, Pace& pace) override {
        State& s = flows_[flow];
        if (now >= s.cut_at) {
            decay(s, now);
            cut(s, now, pace);
            s.cut_at = Picoseconds::max();
        } else if (now >= s.increase_at) {
            increase(s, pace);
            ++s.timer_stage;
            // At line rate there is nothing to increase until the next cut.
            const bool done = pace.bits_per_s >= s.line;
            s.increase_at = done ? Picoseconds::max() : now + spec_.increase_timer;
        }
        pace.wake = std::min(s.cut_at, s.increase_at);
    }

  private:
    struct State {
        double line = 0;
        double target = 0;
        double alpha = 1;
        bool limited = false;      // a CNP has ever come
        bool marked = false;       // one has come in this period of alpha
        Picoseconds alpha_from{};  // alpha is up to date with the period that begins here
        Picoseconds first_cnp{};
        Picoseconds cut_at = Picoseconds::max();
        Picoseconds increase_at = Picoseconds::max();
        std::int64_t timer_stage = 0;  // increases since the last cut
        std::int64_t byte_stage = 0;
        std::int64_t bytes = 0;
    };

    void notified(State& s, Picoseconds now, Pace& pace) {
        if (!s.limited) {
            s.limited = true;
            s.alpha_from = s.first_cnp = now;
        }
        decay(s, now);
        if (spec_.reduce_period.count() == 0) {
            cut(s, now, pace);
            s.alpha = (1 - spec_.g) * s.alpha + spec_.g;
            s.alpha_from = now;
            return;
        }
        // The very first notification sets alpha, and counts in no period of it.
        if (now > s.first_cnp) s.marked = true;
        if (s.cut_at == Picoseconds::max()) {
            const std::int64_t periods = (now - s.first_cnp) / spec_.reduce_period;
            s.cut_at = s.first_cnp + (periods + 1) * spec_.reduce_period;
        }
    }

    // Brings alpha forward over the whole periods that have passed: up where a notification came, else down.
    void decay(State& s, Picoseconds now) const {
        const std::int64_t periods = (now - s.alpha_from) / spec_.alpha_timer;
        if (periods <= 0) return;
        if (s.marked) s.alpha = (1 - spec_.g) * s.alpha + spec_.g;
        s.alpha *= to_the_power(1 - spec_.g, periods - (s.marked ? 1 : 0));
        s.marked = false;
        s.alpha_from += periods * spec_.alpha_timer;
    }

    void cut(State& s, Picoseconds now, Pace& pace) const {
        if (spec_.clamp_target || s.timer_stage + s.byte_stage > 0) s.target = pace.bits_per_s;
        pace.bits_per_s = std::max(spec_.min_bits_per_s, pace.bits_per_s * (1 - s.alpha / 2));
        s.timer_stage = s.byte_stage = s.bytes = 0;
        s.increase_at = now + spec_.increase_timer;
    }

    void increase(State& s, Pace& pace) const {
        const std::int64_t most = std::max(s.timer_stage, s.byte_stage);
        const std::int64_t least =
            spec_.byte_counter > 0 ? std::min(s.timer_stage, s.byte_stage) : s.timer_stage;
        if (least > spec_.fast_recovery_steps) {
            s.target += spec_.hyper_bits_per_s;
        } else if (most >= spec_.fast_recovery_steps) {
            s.target += spec_.additive_bits_per_s;
        }
        s.target = std::min(s.target, s.line);
        pace.bits_per_s = (pace.bits_per_s + s.target) / 2;
    }

    DcqcnSpec spec_;
    std::vector<State> flows_;
};

}  // namespace

std::unique_ptr<Congestion> dcqcn(const DcqcnSpec& spec) {
    return std::make_unique<Dcqcn>(spec);
}

DcqcnSpec read_dcqcn(Catalogue& catalogue, const std::string& name, Bandwidth line) {
    const auto has = [&](const char* key) { return catalogue.has("dcqcn", name, key); };
    const auto time = [&](const char* key) -> Picoseconds {
        return has(key) ? catalogue.time("dcqcn", name, key) : Duration{};
    };
    const auto rate = [&](const std::string& key) {
        const auto bits = [&](const std::string& k) {
            return real(catalogue.bandwidth("dcqcn", name, k).bits_per_second());
        };
        if (has(key.c_str())) return bits(key);
        return bits(key + "_per_25_gbit") * real(line.bits_per_second()) / 25e9;
    };
    DcqcnSpec spec;
    spec.g = catalogue.number("dcqcn", name, "alpha_g");
    if (has("initial_alpha")) spec.initial_alpha = catalogue.number("dcqcn", name, "initial_alpha");
    spec.alpha_timer = time("alpha_timer");
    spec.reduce_period = time("rate_reduce_period");
    spec.increase_timer = time("increase_timer");
    if (has("byte_counter"))
        spec.byte_counter = catalogue.data("dcqcn", name, "byte_counter").count();
    spec.fast_recovery_steps = catalogue.integer("dcqcn", name, "fast_recovery_steps");
    spec.additive_bits_per_s = rate("additive_increase_rate");
    spec.hyper_bits_per_s = rate("hyper_increase_rate");
    spec.min_bits_per_s = rate("min_rate");
    spec.clamp_target = spec.reduce_period.count() == 0;
    return spec;
}

}  // namespace railyard
