#include "models/campaign/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "models/campaign/packet_limits.h"
#include "models/collective/collective.h"
#include "sim/check.h"
#include "sim/rng.h"

namespace railyard {

namespace {

constexpr std::int64_t flows_max = 4'000'000;
constexpr std::int64_t flow_packets_max = std::int64_t{1} << 31;  // they are counted in 32 bits

bool on_storage(WindowTraffic kind) {
    return kind == WindowTraffic::checkpoint || kind == WindowTraffic::restore;
}

bool in_steps(WindowTraffic kind) {
    return kind == WindowTraffic::ring || kind == WindowTraffic::sharp;
}

const ClusterNetwork* storage_network(const WindowContext& context) {
    if (context.converged) return context.networks.data();
    for (const ClusterNetwork& n : context.networks) {
        if (n.name == "storage" && n.topology.vertex_count() > 0) return &n;
    }
    return nullptr;
}
const ClusterNetwork* network_of(WindowTraffic kind, const WindowContext& context) {
    return on_storage(kind) ? storage_network(context) : context.networks.data();
}

// How many messages it takes; of a reduction, to and from its leaves.
std::int64_t messages(const TrafficSpec& t, const Topology& network, std::int64_t nodes) {
    const std::int64_t nics = nodes * network.nics_per_node();
    switch (t.kind) {
        case WindowTraffic::ring:
            return nodes > 1 ? nics * t.steps : 0;
        case WindowTraffic::all_to_all:
            return nics * (nodes - 1);
        case WindowTraffic::permutation:
            return nics > 1 ? nics : 0;
        case WindowTraffic::incast:
            return t.senders > 0 ? std::min(t.senders, nics - 1) : nics - 1;
        case WindowTraffic::sharp:
            return nodes > 1 ? 2 * nics * t.steps : 0;
        case WindowTraffic::checkpoint:
        case WindowTraffic::restore:
            return nodes *
                   (t.stripes > 0 ? std::min(t.stripes, network.servers()) : network.servers());
        case WindowTraffic::file:
            return static_cast<std::int64_t>(t.flows.size());
    }
    return 0;
}

class Layout {
  public:
    Layout(const ClusterNetwork& network, const WindowContext& context)
        : topology_(network.topology), context_(context), flows_(topology_, network.routing) {
        out_.network = &network;
        out_.window.routing = network.routing;
    }

    void add_route(const WindowRoute& route) { flows_.pin(route.from, route.to, route.path); }

    void add(const TrafficSpec& traffic, std::size_t index) {
        spec_ = &traffic;
        index_ = index;
        const std::int64_t flows =
            static_cast<std::int64_t>(flows_.size()) +
            messages(traffic, topology_, context_.nodes) * out_.network->routing.queue_pairs;
        if (flows > flows_max) {
            throw ScenarioError(
                fmt::format("the window has {} flows or more, it takes {}", flows, flows_max),
                "fewer nodes, steps, stripes or queue pairs");
        }
        switch (traffic.kind) {
            case WindowTraffic::ring:
                return add_ring();
            case WindowTraffic::all_to_all:
                return add_all_to_all();
            case WindowTraffic::permutation:
                return add_permutation();
            case WindowTraffic::incast:
                return add_incast();
            case WindowTraffic::sharp:
                return add_sharp();
            case WindowTraffic::checkpoint:
            case WindowTraffic::restore:
                return add_storage();
            case WindowTraffic::file:
                return add_listed();
        }
    }
    void check_route(const WindowRoute& route) const {
        const std::vector<PacketFlow>& flows = flows_.flows();
        const bool taken = std::any_of(flows.begin(), flows.end(),
                                       [&](const PacketFlow& f) { return f.path == route.path; });
        if (taken) return;
        throw ScenarioError(fmt::format("window.route: nothing is sent from {} to {}",
                                        topology_.name(route.from), topology_.name(route.to)),
                            "window.traffic of kind \"file\" says who sends to whom");
    }
    void add_fault(const FaultSpec& fault) {
        for (const LinkId link : fault.links) {
            out_.window.faults.push_back(fault.fault);
            out_.window.faults.back().link = link;
        }
    }
    bool empty() const { return flows_.size() == 0; }
    NetworkWindow take() {
        out_.window.flows = flows_.take();
        out_.window.aggregating = flows_.aggregating();
        return std::move(out_);
    }

  private:
    MessageFlows::Handle send(VertexId from, VertexId to, std::int64_t bytes,
                              MessageFlows::Handle after = MessageFlows::nothing,
                              int traffic_class = 1,
                              MessageFlows::Handle continues = MessageFlows::nothing) {
        return send({from, to, bytes, spec_->start, after, continues, traffic_class, /*label=*/0});
    }
    MessageFlows::Handle send(const MessageFlows::Message& message) {
        const auto sent = flows_.send(message);
        if (sent == MessageFlows::nothing) {
            throw NoPath(topology_.name(message.from), topology_.name(message.to));
        }
        out_.traffic.resize(flows_.size(), index_);
        return sent;
    }

    void add_ring() {
        const std::int64_t nodes = context_.nodes;
        if (nodes < 2) return;  // to itself
        std::vector<MessageFlows::Handle> before;
        for (std::int64_t rail = 0; rail < topology_.nics_per_node(); ++rail) {
            before.assign(static_cast<std::size_t>(nodes), MessageFlows::nothing);
            for (std::int64_t step = 0; step < spec_->steps; ++step) {
                std::vector<MessageFlows::Handle> now(before.size());
                for (std::int64_t node = 0; node < nodes; ++node) {
                    const std::int64_t previous = (node + nodes - 1) % nodes;
                    now[static_cast<std::size_t>(node)] =
                        send(topology_.nic(node, rail), topology_.nic((node + 1) % nodes, rail),
                             spec_->bytes.count(), before[static_cast<std::size_t>(previous)], 1,
                             before[static_cast<std::size_t>(node)]);
                }
                before = std::move(now);
            }
        }
    }

    void add_all_to_all() {
        for (std::int64_t rail = 0; rail < topology_.nics_per_node(); ++rail) {
            for (std::int64_t from = 0; from < context_.nodes; ++from) {
                // Each begins with another one, as NCCL does.
                for (std::int64_t k = 1; k < context_.nodes; ++k) {
                    send(topology_.nic(from, rail),
                         topology_.nic((from + k) % context_.nodes, rail), spec_->bytes.count());
                }
            }
        }
    }

    std::vector<VertexId> job_nics() const {
        std::vector<VertexId> nics(
            static_cast<std::size_t>(context_.nodes * topology_.nics_per_node()));
        std::iota(nics.begin(), nics.end(), 0);
        return nics;
    }

    void add_permutation() {
        std::vector<VertexId> order = job_nics();
        RandomStream random(context_.seed, 0, "window/permutation");
        for (std::size_t i = order.size(); i > 1; --i) {
            std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(i))]);
        }
        // One cycle through all: nobody sends to itself.
        for (std::size_t i = 0; i + 1 < order.size(); ++i)
            send(order[i], order[i + 1], spec_->bytes.count());
        if (order.size() > 1) send(order.back(), order[0], spec_->bytes.count());
    }

    void add_incast() {
        const std::vector<VertexId> nics = job_nics();
        const auto most = static_cast<std::int64_t>(nics.size()) - 1;
        const std::int64_t senders = spec_->senders > 0 ? std::min(spec_->senders, most) : most;
        // Spread over the nodes, so that they come from everywhere.
        for (std::int64_t i = 0; i < senders; ++i) {
            send(nics[static_cast<std::size_t>(1 + i * most / senders)], nics[0],
                 spec_->bytes.count());
        }
    }

    // A tree for each port of each rail.
    void add_sharp() {
        if (context_.nodes < 2) return;  // with itself
        for (std::int64_t rail = 0; rail < topology_.nics_per_node(); ++rail) {
            std::vector<VertexId> nics;
            for (std::int64_t node = 0; node < context_.nodes; ++node) {
                nics.push_back(topology_.nic(node, rail));
            }
            const std::vector<AggregationTree> trees =
                aggregation_trees(topology_, nics, static_cast<std::uint64_t>(rail));
            if (trees.empty())
                throw NoPath(topology_.name(nics.front()), topology_.name(nics.back()));
            const auto count = static_cast<std::int64_t>(trees.size());
            const std::int64_t bytes = (spec_->bytes.count() + count - 1) / count;
            for (const AggregationTree& tree : trees) {
                flows_.all_reduce(tree, bytes, spec_->steps, spec_->start);
            }
        }
        out_.traffic.resize(flows_.size(), index_);
    }

    void add_listed() {
        const std::vector<VertexId> nics = job_nics();
        std::vector<MessageFlows::Handle> sent;
        for (const ListedFlow& f : spec_->flows) {
            MessageFlows::Message m{nics[static_cast<std::size_t>(f.from)],
                                    nics[static_cast<std::size_t>(f.to)], f.bytes};
            m.start = f.start + spec_->start;
            if (f.after >= 0) m.after = sent[static_cast<std::size_t>(f.after)];
            m.label = sent.size();
            sent.push_back(send(m));
        }
    }

    // A node's bytes are striped over servers, in turn from another one for each node; a stripe uses the
    // node's NICs and the server's in turn.
    void add_storage() {
        const std::int64_t servers = topology_.servers();
        const std::int64_t stripes =
            spec_->stripes > 0 ? std::min(spec_->stripes, servers) : servers;
        const int traffic_class = context_.converged ? context_.storage_class : 1;
        for (std::int64_t node = 0; node < context_.nodes; ++node) {
            for (std::int64_t k = 0; k < stripes; ++k) {
                const std::int64_t server = (node * stripes + k) % servers;
                const std::int64_t of_server = (node + k) % topology_.nics_per_server();
                const VertexId there = topology_.server_nic(server, of_server);
                const VertexId here = nic_towards(node, there, node + k);
                const std::int64_t bytes =
                    spec_->bytes.count() / stripes + (k < spec_->bytes.count() % stripes);
                const bool write = spec_->kind == WindowTraffic::checkpoint;
                send(write ? here : there, write ? there : here, bytes, MessageFlows::nothing,
                     traffic_class);
            }
        }
    }
    // The node's NIC number `preferred`, or the next one that has a path there: rails may not meet.
    VertexId nic_towards(std::int64_t node, VertexId there, std::int64_t preferred) {
        const std::int64_t nics = topology_.nics_per_node();
        for (std::int64_t i = 0; i < nics; ++i) {
            const VertexId nic = topology_.nic(node, (preferred + i) % nics);
            if (flows_.reaches(nic, there)) return nic;
        }
        throw NoPath(topology_.name(topology_.nic(node, 0)), topology_.name(there));
    }

    const Topology& topology_;
    const WindowContext& context_;
    MessageFlows flows_;
    NetworkWindow out_;
    const TrafficSpec* spec_ = nullptr;
    std::size_t index_ = 0;
};

const std::vector<std::string> fault_networks = {"compute", "storage"};

Bytes largest(const TrafficSpec& t) {
    Bytes out = t.kind == WindowTraffic::file ? Bytes{} : t.bytes;
    for (const ListedFlow& flow : t.flows) out = std::max(out, Bytes::of(flow.bytes));
    return out;
}

// What its network can't take, or will not notice.
void check_traffic(Section& section, const TrafficSpec& t, const WindowContext& context) {
    const ClusterNetwork* network = network_of(t.kind, context);
    const std::string& name = window_traffic_names()[static_cast<std::size_t>(t.kind)];
    if (network == nullptr) {
        section.error(
            "kind", fmt::format("{}: there is no network between nodes and storage servers", name),
            "a node with storage NICs, or storage.network = \"compute\"");
        return;
    }
    if (t.kind == WindowTraffic::sharp && !network->sharp) {
        section.error("kind", "sharp: the compute network does not add up",
                      "fabric.compute.sharp = true, with InfiniBand switches");
        return;
    }
    if (network->topology.vertex_count() == 0) return;
    const std::int64_t payload = network->packets.spec.payload_bytes;
    const std::int64_t pieces = in_steps(t.kind) ? t.steps : 1;
    if (largest(t).count() / payload >= flow_packets_max / pieces) {
        section.error(t.kind == WindowTraffic::file ? "path" : "bytes",
                      fmt::format("expected less than {}, found {}",
                                  to_text(Bytes::of(flow_packets_max / pieces * payload)),
                                  to_text(largest(t))),
                      fmt::format("a queue pair has at most 2^31 packets of {}",
                                  to_text(Bytes::of(payload))));
    }
    const std::int64_t flows =
        messages(t, network->topology, context.nodes) * network->routing.queue_pairs;
    if (flows > flows_max) {
        section.error("",
                      fmt::format("{} of {} nodes is {} flows, a window takes {}", name,
                                  context.nodes, flows, flows_max),
                      "fewer nodes, steps, stripes or queue pairs");
    } else if (flows == 0) {
        section.warning(
            "", on_storage(t.kind)
                    ? fmt::format("{} sends nothing: there are no storage servers", name)
                    : fmt::format("{} sends nothing: the job has {} node", name, context.nodes));
    }
}

TrafficSpec default_traffic() {
    TrafficSpec ring;
    ring.bytes = Bytes::of(1 << 20);
    ring.steps = 8;
    return ring;
}

// The flows of a file, between the job's NICs.
void read_listed(Section& section, const std::string& path, const WindowContext& context,
                 TrafficSpec& t) {
    if (section.describing()) return;
    if (path.empty() != (t.kind != WindowTraffic::file)) {
        section.error("path", path.empty() ? "is missing: kind = \"file\" needs it"
                                           : "belongs to kind = \"file\"");
        return;
    }
    const Topology& network = context.networks[0].topology;
    if (path.empty() || network.vertex_count() == 0) return;
    Diagnostics diagnostics;
    try {
        t.flows = read_traffic_file(path.starts_with("/") ? path : context.folder + path,
                                    context.nodes * network.nics_per_node(), diagnostics);
    } catch (const ScenarioError& e) {
        section.error("path", e.diagnostics().empty() ? e.what() : e.diagnostics()[0].message);
    }
    diagnostics.raise_if_any();
}

TrafficSpec read_traffic(Section& section, const WindowContext& context) {
    TrafficSpec t = default_traffic();
    int kind = 0;
    section.choose("kind", kind, window_traffic_names(), "What the job's nodes send");
    t.kind = static_cast<WindowTraffic>(kind);
    section.read("bytes", t.bytes, "Of each flow; of each node for checkpoint and restore",
                 {.bound = Bound::positive});
    section.read("steps", t.steps, "Pieces that each NIC sends on, of ring and sharp",
                 {.bound = Bound::count});
    section.read("senders", t.senders, "NICs that send to one, of an incast",
                 {.bound = Bound::positive, .otherwise = "all others"});
    section.read("stripes", t.stripes,
                 "Servers that a node uses at once, of checkpoint and restore",
                 {.bound = Bound::positive, .otherwise = "all"});
    section.read("start", t.start, "When it begins", {.bound = Bound::non_negative});
    keep_within(section, "start", t.start, packet_time_max);
    std::string path;
    section.read("path", path,
                 "A list of flows, id,src,dst,bytes,start_ps,dep: NICs of the job counted node by "
                 "node; dep: the id of an earlier flow that must end first, or 0",
                 {.otherwise = "only with kind = \"file\""});
    section.finish();
    read_listed(section, path, context, t);
    const auto idle = [&](const char* key, bool used) {
        if (section.has(key) && !used) {
            section.warning(key,
                            fmt::format("has no effect with kind = \"{}\"",
                                        window_traffic_names()[static_cast<std::size_t>(kind)]));
        }
    };
    idle("bytes", t.kind != WindowTraffic::file);
    idle("steps", in_steps(t.kind));
    idle("senders", t.kind == WindowTraffic::incast);
    idle("stripes", on_storage(t.kind));
    return t;
}

// The links that a fault is of: those that end at the NIC, or the cable between two switches.
std::vector<LinkId> links_of(Section& section, const Topology& t, const std::string& nic,
                             const std::string& from, const std::string& to) {
    const auto find = [&](const char* key, const std::string& name) {
        const std::optional<VertexId> at = t.find(name);
        if (!at) {
            section.error(key, fmt::format("the network has no '{}'", name),
                          did_you_mean(name, t.vertex_names()));
        }
        return at;
    };
    std::vector<LinkId> links;
    if (!nic.empty()) {
        const std::optional<VertexId> at = find("nic", nic);
        if (at && t.level(*at) > 0) {
            section.error("nic", fmt::format("{} is a switch", nic), "from and to name a cable");
        } else if (at) {
            for (const LinkId up : t.up_links(*at)) links.push_back(reverse_link(up));
        }
        return links;
    }
    const std::optional<VertexId> a = find("from", from);
    const std::optional<VertexId> b = find("to", to);
    if (!a || !b) return links;
    if (const auto cable = t.cable_between(*a, *b)) {
        links.push_back(*cable);
    } else {
        section.error("to", fmt::format("no cable joins {} and {}", from, to));
    }
    return links;
}

// Whether the network has anything that the fault could act on.
void check_fault(Section& section, const FaultSpec& fault, const ClusterNetwork& network) {
    const WindowFault::Kind kind = fault.fault.kind;
    if (kind == WindowFault::Kind::pause && network.packets.flow_control == FlowControl::none) {
        section.warning(
            "kind", fmt::format("has no effect: the {} network has no flow control", network.name));
    }
    if (kind != WindowFault::Kind::bit_errors) return;
    for (const char* key : {"start", "duration"}) {
        if (section.has(key)) {
            section.warning(
                key, "has no effect with kind = \"bit_errors\": they are there all the time");
        }
    }
}

std::optional<FaultSpec> read_fault(Section& section, const std::vector<ClusterNetwork>& networks) {
    FaultSpec out;
    WindowFault& fault = out.fault;
    int kind = 0;
    section.choose("kind", kind, window_fault_names(), "What goes wrong");
    fault.kind = static_cast<WindowFault::Kind>(kind);
    std::string nic;
    std::string from;
    std::string to;
    section.read("nic", nic, "Which NIC: node-3.nic-0", {.otherwise = "from and to name a cable"});
    section.read("from", from, "One end of a cable: leaf-0", {.otherwise = "nic names one"});
    section.read("to", to, "Its other end", {.otherwise = "nic names one"});
    int network = 0;
    section.choose("network", network, fault_networks, "Of which network");
    out.network = fault_networks[static_cast<std::size_t>(network)];
    Duration start{};
    std::optional<Duration> duration;
    section.read("start", start, "When it begins", {.bound = Bound::non_negative});
    section.read("duration", duration, "How long it lasts",
                 {.bound = Bound::positive, .otherwise = "for ever"});
    std::optional<Bandwidth> rate;
    std::optional<double> bit_error_rate;
    section.read("rate", rate, "What a slow receiver takes", {.bound = Bound::positive});
    section.read("bit_error_rate", bit_error_rate, "After error correction, of kind bit_errors",
                 {.bound = Bound::fraction});
    keep_within(section, "start", start, packet_time_max);
    keep_within(section, "duration", duration, packet_time_max);
    section.finish();
    if (section.describing()) return std::nullopt;
    fault.start = start;
    if (duration) fault.end = start + *duration;
    const bool at_nic = !nic.empty();
    const bool needs_nic =
        fault.kind == WindowFault::Kind::pause || fault.kind == WindowFault::Kind::slow_receiver;
    const std::string name = window_fault_names()[static_cast<std::size_t>(kind)];
    if (at_nic == (!from.empty() || !to.empty()) || (!at_nic && (from.empty() || to.empty()))) {
        section.error("", "expected nic, or from and to");
        return std::nullopt;
    }
    if (needs_nic && !at_nic) {
        section.error("from", fmt::format("{} is of a NIC", name), "nic = \"node-0.nic-0\"");
        return std::nullopt;
    }
    const auto belongs = [&](const char* key, WindowFault::Kind owner) {
        const std::string& its = window_fault_names()[static_cast<std::size_t>(owner)];
        if (fault.kind == owner && !section.has(key)) {
            section.error(key, fmt::format("is missing: kind = \"{}\" needs it", its));
        } else if (fault.kind != owner && section.has(key)) {
            section.error(key, fmt::format("belongs to kind = \"{}\", this is a {}", its, name));
        }
    };
    belongs("rate", WindowFault::Kind::slow_receiver);
    belongs("bit_error_rate", WindowFault::Kind::bit_errors);
    if (bit_error_rate && *bit_error_rate >= 1) {
        section.error("bit_error_rate",
                      "expected less than 1: a cable that carries nothing is "
                      "kind = \"link_down\"");
    }
    if (rate) fault.rate = *rate;
    fault.bit_error_rate = bit_error_rate.value_or(0);
    for (const ClusterNetwork& n : networks) {
        if (n.name != out.network || n.topology.vertex_count() == 0) continue;
        out.links = links_of(section, n.topology, nic, from, to);
        check_fault(section, out, n);
        return out;
    }
    if (network == 1) {
        section.error("network", "there is no storage network", "[fabric.storage]");
    }
    return std::nullopt;
}

// When the rate of a collective counts as known.
void read_settling(Section& section, const WindowContext& context, WindowSpec& spec) {
    spec.pieces_max = 384;
    section.read("pieces_max", spec.pieces_max,
                 "Pieces after which a collective's rate is taken as it is, marked "
                 "(run.fidelity = \"packet\")",
                 {.bound = Bound::positive});
    constexpr std::int64_t pieces_least = 12;
    constexpr std::int64_t pieces_most = 1 << 20;
    if (spec.pieces_max < pieces_least || spec.pieces_max > pieces_most) {
        section.error(
            "pieces_max",
            fmt::format("expected {} to {}, found {}", pieces_least, pieces_most, spec.pieces_max),
            "6 are compared with 12, those with 24 and so on");
    }
    spec.settled_within = 0.05;
    section.read("settled_within", spec.settled_within,
                 "What twice the pieces may change of the slowest stream's rate",
                 {.bound = Bound::fraction});
    for (const char* key : {"pieces_max", "settled_within"}) {
        if (section.has(key) && !context.packet_rates) {
            section.warning(key, "has no effect without run.fidelity = \"packet\"");
        }
    }
}

bool carries_traffic(const std::string& network, const std::vector<TrafficSpec>& traffic,
                     const WindowContext& context) {
    return std::any_of(traffic.begin(), traffic.end(), [&](const TrafficSpec& t) {
        const ClusterNetwork* its = network_of(t.kind, context);
        return its != nullptr && its->name == network;
    });
}

bool errors_twice(const std::vector<FaultSpec>& faults, const FaultSpec& fault) {
    constexpr auto errors = WindowFault::Kind::bit_errors;
    return fault.fault.kind == errors &&
           std::any_of(faults.begin(), faults.end(), [&](const FaultSpec& other) {
               return other.fault.kind == errors && other.network == fault.network &&
                      std::any_of(other.links.begin(), other.links.end(), [&](LinkId its) {
                          return std::any_of(fault.links.begin(), fault.links.end(), [&](LinkId l) {
                              return l == its || l == reverse_link(its);
                          });
                      });
           });
}

bool slow_twice(const std::vector<FaultSpec>& faults, const FaultSpec& fault) {
    constexpr auto slow = WindowFault::Kind::slow_receiver;
    return fault.fault.kind == slow &&
           std::any_of(faults.begin(), faults.end(), [&](const FaultSpec& other) {
               return other.fault.kind == slow && other.network == fault.network &&
                      other.links == fault.links;
           });
}

}  // namespace

const std::vector<std::string>& window_fault_names() {
    static const std::vector<std::string> names = {"pause", "slow_receiver", "link_down",
                                                   "bit_errors"};
    return names;
}

const std::vector<std::string>& window_traffic_names() {
    static const std::vector<std::string> names = {"ring",  "all_to_all", "permutation", "incast",
                                                   "sharp", "checkpoint", "restore",     "file"};
    return names;
}

WindowSpec read_window(Section& top, const WindowContext& context) {
    Section section = top.section("window");
    WindowSpec spec;
    spec.given = section.present();
    spec.time_max = std::chrono::minutes(2);
    section.read("time_max", spec.time_max, "Simulated time after which a window stops, marked",
                 {.bound = Bound::positive});
    keep_within(section, "time_max", spec.time_max, packet_time_max);
    spec.events_max = 1'000'000'000;
    section.read("events_max", spec.events_max, "Events after which a window stops, marked",
                 {.bound = Bound::positive});
    read_settling(section, context, spec);
    for (Section& each : section.sections("traffic", "Messages of a window; without any, a ring")) {
        spec.traffic.push_back(read_traffic(each, context));
        if (section.ok() && !section.describing()) {
            check_traffic(each, spec.traffic.back(), context);
        }
    }
    if (spec.traffic.empty()) spec.traffic.push_back(default_traffic());
    for (Section& each : section.sections("fault", "Something that goes wrong in a window")) {
        auto fault = read_fault(each, context.networks);
        if (!fault) continue;
        if (slow_twice(spec.faults, *fault)) {
            each.error("nic", "a NIC can be a slow receiver once");
        }
        if (errors_twice(spec.faults, *fault)) {
            each.error("bit_error_rate", "a cable can have bit errors once");
        }
        if (!carries_traffic(fault->network, spec.traffic, context)) {
            each.warning("network", fmt::format("has no effect: nothing is sent on the {} network",
                                                fault->network));
        }
        spec.faults.push_back(std::move(*fault));
    }
    for (Section& each :
         section.sections("route", "A route between two NICs that the network would not choose")) {
        auto route = read_window_route(each, context.networks);
        if (!route) continue;
        if (!carries_traffic(route->network, spec.traffic, context)) {
            each.warning("network", fmt::format("has no effect: nothing is sent on the {} network",
                                                route->network));
        }
        const bool twice =
            std::any_of(spec.routes.begin(), spec.routes.end(), [&](const WindowRoute& other) {
                return other.network == route->network && other.from == route->from &&
                       other.to == route->to;
            });
        if (twice) each.error("from", "two NICs can have one route each way");
        spec.routes.push_back(std::move(*route));
    }
    section.read("allow_loss", spec.allow_loss,
                 "true: packets of a lossless class may find no room; else that is an error");
    section.finish();
    return spec;
}

std::vector<NetworkWindow> lay_out(const WindowSpec& spec, const WindowContext& context) {
    std::vector<NetworkWindow> out;
    for (const ClusterNetwork& network : context.networks) {
        if (network.topology.vertex_count() == 0) continue;
        Layout layout(network, context);
        std::vector<WindowRoute> routes;
        std::copy_if(spec.routes.begin(), spec.routes.end(), std::back_inserter(routes),
                     [&](const WindowRoute& r) { return r.network == network.name; });
        for (const WindowRoute& route : routes) layout.add_route(route);
        for (std::size_t i = 0; i < spec.traffic.size(); ++i) {
            if (network_of(spec.traffic[i].kind, context) == &network) {
                layout.add(spec.traffic[i], i);
            }
        }
        for (const FaultSpec& fault : spec.faults) {
            if (fault.network == network.name) layout.add_fault(fault);
        }
        if (layout.empty()) continue;
        for (const WindowRoute& route : routes) layout.check_route(route);
        out.push_back(layout.take());
        out.back().window.time_max = spec.time_max;
        out.back().window.events_max = static_cast<std::uint64_t>(spec.events_max);
    }
    return out;
}

}  // namespace railyard
