// GOAL, which LogGOPSim and ATLAHS read: what each NIC sends and receives, and what waits for what.

#include <fmt/format.h>

#include <map>
#include <set>

#include "tools/export/export.h"

namespace railyard {

namespace {

// Lines of each rank; a label stands there before it is named.
class GoalRanks {
  public:
    GoalRanks(const Topology& topology, const PacketWindow& window)
        : topology_(topology), flows_(window.flows), ranks_(topology.nic_count()) {}

    std::string text() {
        start_clocks();
        for (std::size_t f = 0; f < flows_.size(); ++f) add(f);
        std::string out = fmt::format("num_ranks {}\n", ranks_.size());
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            out += fmt::format("\nrank {} {{\n{}}}\n", r, ranks_[r]);
        }
        return out;
    }

  private:
    std::size_t from(std::size_t flow) const {
        return topology_.links()[flows_[flow].path.front()].from;
    }
    std::size_t to(std::size_t flow) const {
        return topology_.links()[flows_[flow].path.back()].to;
    }
    std::int64_t start_ns(std::size_t flow) const {
        return (flows_[flow].start.count() + 999) / 1000;
    }

    // Times are lengths there: a processor of its own counts from one start to the next.
    void start_clocks() {
        std::vector<std::set<std::int64_t>> starts(ranks_.size());
        for (std::size_t f = 0; f < flows_.size(); ++f) {
            if (start_ns(f) > 0) starts[from(f)].insert(start_ns(f));
        }
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            std::int64_t before = 0;
            for (const std::int64_t at : starts[r]) {
                ranks_[r] += fmt::format("t{}: calc {} cpu 1\n", at, at - before);
                if (before > 0) ranks_[r] += fmt::format("t{} requires t{}\n", at, before);
                before = at;
            }
        }
    }

    void add(std::size_t f) {
        const PacketFlow& flow = flows_[f];
        std::string& source = ranks_[from(f)];
        source += fmt::format("s{0}: send {1}b to {2} tag {0}\n", f, flow.bytes, to(f));
        if (start_ns(f) > 0) source += fmt::format("s{} requires t{}\n", f, start_ns(f));
        if (flow.after >= 0) wait(f, static_cast<std::size_t>(flow.after));
        if (flow.after_joint >= 0) {
            for (const std::size_t before : joined_[flow.after_joint]) wait(f, before);
        }
        if (flow.joins >= 0) joined_[flow.joins].push_back(f);
        ranks_[to(f)] += fmt::format("r{0}: recv {1}b from {2} tag {0}\n", f, flow.bytes, from(f));
    }

    // A rank knows of what it receives and of what it sends.
    void wait(std::size_t flow, std::size_t before) {
        const bool received = to(before) == from(flow);
        if (!received && from(before) != from(flow)) {
            throw ScenarioError(fmt::format("GOAL has no flow that waits for one between other "
                                            "NICs, and one of {} waits for one from {} to {}",
                                            topology_.name(static_cast<VertexId>(from(flow))),
                                            topology_.name(static_cast<VertexId>(from(before))),
                                            topology_.name(static_cast<VertexId>(to(before)))),
                                "traffic whose steps hand on what came, such as ring");
        }
        ranks_[from(flow)] +=
            fmt::format("s{} requires {}{}\n", flow, received ? 'r' : 's', before);
    }

    const Topology& topology_;
    const std::vector<PacketFlow>& flows_;
    std::vector<std::string> ranks_;
    std::map<std::int64_t, std::vector<std::size_t>> joined_;
};

}  // namespace

std::vector<ExportedFile> export_goal(const Scenario& s, std::int64_t /*replica*/) {
    const NetworkWindow window = compute_window(s, "GOAL", true);
    return {{"", GoalRanks(window.network->topology, window.window).text()}};
}

}  // namespace railyard
