// InfiniBand's congestion control (architecture specification, annex A10).
//
// A switch marks packets (FECN) that leave a lane's queue beyond a threshold, one in so many, but only where
// it is the root: a port that waits for credits is a victim, and marks nothing. The receiver sends each mark
// back (BECN). The sender keeps a place i in a table: after a packet of time t it waits t CCT[i], so its
// rate is line / (1 + CCT[i]). Each BECN adds to i, up to a limit; each time a timer runs out i falls by
// one.
//
// What a manager writes into the table is its own affair: here each place adds the same gap (an estimate).
// So N flows that share a link rest about (N - 1) / gap places up. Left out: groups of service levels that
// share a place (here each queue pair has its own), and the smallest size of packets that are marked.

#include <algorithm>

#include "models/fabric/congestion.h"

namespace railyard {

namespace {

class InfinibandCongestion final : public Congestion {
  public:
    explicit InfinibandCongestion(const InfinibandCongestionSpec& spec) : spec_(spec) {}

    void identify(Fingerprint& print) const override {
        print.add_all("infiniband_cc", spec_.timer, spec_.limit, spec_.increase, spec_.gap);
    }
    bool timers_can_wait() const override { return true; }
    bool follows_marks_alone() const override { return true; }

    void start(std::uint32_t flow, const FlowStart& given, Pace& pace) override {
        State& s = fresh(flows_, flow);
        s = {given.line_bits_per_s, 0};
        set(s, pace);
    }

    void acknowledged(std::uint32_t flow, const Acknowledgement& ack, Pace& pace) override {
        if (!ack.congestion) return;
        State& s = flows_[flow];
        if (s.place == 0) pace.wake = ack.now + spec_.timer;
        s.place = std::min(s.place + spec_.increase, spec_.limit);
        set(s, pace);
    }

    void timer(std::uint32_t flow, Picoseconds now, Pace& pace) override {
        State& s = flows_[flow];
        s.place = std::max<std::int64_t>(0, s.place - 1);
        pace.wake = s.place > 0 ? now + spec_.timer : Picoseconds::max();
        set(s, pace);
    }

  private:
    struct State {
        double line = 0;
        std::int64_t place = 0;
    };
    void set(const State& s, Pace& pace) const {
        pace.bits_per_s = s.line / (1 + spec_.gap * real(s.place));
    }

    InfinibandCongestionSpec spec_;
    std::vector<State> flows_;
};

}  // namespace

std::unique_ptr<Congestion> infiniband_congestion(const InfinibandCongestionSpec& spec) {
    return std::make_unique<InfinibandCongestion>(spec);
}

InfinibandCongestionSpec read_infiniband_congestion(Catalogue& catalogue,
                                                    const CongestionGiven& given) {
    const char* kind = "infiniband_congestion";
    InfinibandCongestionSpec spec;
    spec.timer = given.cct_timer ? *given.cct_timer : catalogue.time(kind, "", "cct_timer");
    spec.limit = given.cct_limit ? *given.cct_limit : catalogue.integer(kind, "", "cct_limit");
    spec.increase = catalogue.integer(kind, "", "cct_increase");
    spec.gap = catalogue.number(kind, "", "cct_gap");
    return spec;
}

}  // namespace railyard
