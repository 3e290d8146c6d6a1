// Receiver-driven: a sender may send what its receiver has cleared, a grant at a time; a receiver has so
// many grants and deals them out in turn. What Meta's collective library does in place of DCQCN.
//
// A clear-to-send takes as long to its sender as an acknowledgement to its own: the next sender is cleared
// when the acknowledgement that ends a grant arrives.

#include <deque>

#include "models/fabric/congestion.h"

namespace railyard {

namespace {

class ReceiverWindow final : public Congestion {
  public:
    explicit ReceiverWindow(const ReceiverWindowSpec& spec) : spec_(spec) {}

    void identify(Fingerprint& print) const override {
        print.add_all("receiver_window", spec_.grant_bytes, spec_.grants);
    }

    void start(std::uint32_t flow, const FlowStart& given, Pace& pace) override {
        if (given.destination >= receivers_.size()) receivers_.resize(given.destination + 1);
        const std::int64_t packets = std::max<std::int64_t>(
            1, (spec_.grant_bytes + given.payload_bytes - 1) / given.payload_bytes);
        fresh(flows_, flow) = {
            given.destination, packets * given.payload_bytes, 0, 0, false, false};
        pace.bits_per_s = given.line_bits_per_s;
        ask(flow, pace);
    }

    void resumed(std::uint32_t flow, Picoseconds, Picoseconds, Pace& pace) override {
        State& s = flows_[flow];
        s.over = false;
        s.granted = s.acknowledged;
        ask(flow, pace);
    }

    void acknowledged(std::uint32_t flow, const Acknowledgement& ack, Pace& pace) override {
        State& s = flows_[flow];
        s.acknowledged += ack.bytes;
        if (s.holds && s.acknowledged >= s.granted) {
            give_back(s);
            ask(flow, pace);
        }
        set(flow, pace);
    }

    void timer(std::uint32_t flow, Picoseconds, Pace& pace) override {
        pace.wake = Picoseconds::max();
        set(flow, pace);
    }

    void ended(std::uint32_t flow, Pace& pace) override {
        State& s = flows_[flow];
        s.over = true;
        // The acknowledgement that ended it may have ended its grant too: then it has just asked for another.
        auto& waiting = receivers_[s.destination].waiting;
        if (!waiting.empty() && waiting.back() == flow) waiting.pop_back();
        if (!s.holds) return;
        give_back(s);
        clear_next(s.destination, flow, pace);
    }

  private:
    struct State {
        std::uint32_t destination = 0;
        std::int64_t grant = 0;  // whole packets
        std::int64_t granted = 0;
        std::int64_t acknowledged = 0;
        bool holds = false;  // a grant
        bool over = false;
    };
    struct Receiver {
        std::int64_t grants_out = 0;
        std::deque<std::uint32_t> waiting;
    };

    void ask(std::uint32_t flow, Pace& pace) {
        receivers_[flows_[flow].destination].waiting.push_back(flow);
        clear_next(flows_[flow].destination, flow, pace);
        set(flow, pace);
    }
    void give_back(State& s) {
        s.holds = false;
        --receivers_[s.destination].grants_out;
    }
    // The next in turn. If that is another than `flow`, whose pace this is, the engine wakes it.
    void clear_next(std::uint32_t destination, std::uint32_t flow, Pace& pace) {
        Receiver& r = receivers_[destination];
        while (!r.waiting.empty() && flows_[r.waiting.front()].over) r.waiting.pop_front();
        if (r.waiting.empty() || r.grants_out == spec_.grants) return;
        const std::uint32_t next = r.waiting.front();
        r.waiting.pop_front();
        ++r.grants_out;
        flows_[next].holds = true;
        flows_[next].granted += flows_[next].grant;
        if (next != flow) pace.wake_other = next;
    }
    void set(std::uint32_t flow, Pace& pace) const {
        pace.window_bytes = flows_[flow].granted - flows_[flow].acknowledged;
    }

    ReceiverWindowSpec spec_;
    std::vector<State> flows_;
    std::vector<Receiver> receivers_;  // by vertex
};

}  // namespace

std::unique_ptr<Congestion> receiver_window(const ReceiverWindowSpec& spec) {
    return std::make_unique<ReceiverWindow>(spec);
}

ReceiverWindowSpec read_receiver_window(Catalogue& catalogue) {
    ReceiverWindowSpec spec;
    // A slot of NCCL's buffer.
    spec.grant_bytes = catalogue.data("nccl_net", "", "buffer").count() /
                       catalogue.integer("nccl_net", "", "steps");
    spec.grants = catalogue.integer("receiver_window", "", "grants");
    return spec;
}

}  // namespace railyard
