#pragma once
// What an all-to-all puts on links where packets choose their ways.
//
// NICs whose cables lead to the same leaves are one class. Between two classes all ways are the same but for
// the first cable and the last. So one route stands for all pairs of their NICs, which are counted and not
// routed: n ranks on k leaves take k^2 routes, not n^2.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/collective/node_links.h"
#include "models/fabric/fabric.h"

namespace railyard {

class AllToAllLoads {
  public:
    // References must outlive it. `router` must route by leaf.
    AllToAllLoads(const Topology& topology, const NodeLinks& inside, Router& router,
                  std::size_t links);

    // False: the table of classes would be too large.
    bool possible() const { return !classes_.empty(); }
    // All ranks of a group send to each other, each a byte in all.
    void add(std::span<const std::int64_t> gpus);
    // Bytes by link; none when NICs of one class split their bytes over their ports in more than one way.
    // Each route is shown first.
    using Show = std::function<void(std::span<const Usage> route)>;
    std::vector<double> take(const Show& show);

  private:
    struct NicClass {
        std::vector<VertexId> nics;  // the first two
        std::vector<double> out;     // of what each sends, by port; empty: not known yet
        std::vector<double> in;
    };
    // The ranks of a group in a node.
    struct Part {
        std::int64_t node = 0;
        std::vector<std::int64_t> gpus{};
        std::vector<double> to_rail{};  // by NIC of the node: how many of them receive there
    };
    struct Flows {
        double out = 0;  // bytes
        double in = 0;
    };

    void find_classes();
    std::vector<Part> parts_of(std::span<const std::int64_t> gpus) const;
    void add_inside(const Part& part, std::span<const double> all_to_rail, double ranks);
    void add_between(std::span<const Part> parts, std::int64_t rail, double ranks);
    void use(std::vector<Usage>& usages, double times);
    bool route(std::uint32_t from, std::uint32_t to, const Show& show);

    const Topology& topology_;
    const NodeLinks& inside_;
    Router& router_;
    std::vector<NicClass> classes_;
    std::vector<std::uint32_t> class_of_;  // by NIC of a node
    std::vector<Flows> flows_;             // by NIC
    std::vector<double> between_;          // by class that receives, then by class that sends
    std::vector<double> load_;             // by link
    std::vector<Usage> path_;
    // By class, while a rail of a group is added.
    std::vector<double> senders_, receivers_, neighbours_;
    std::vector<std::uint32_t> met_;
};

}  // namespace railyard
