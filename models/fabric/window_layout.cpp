#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "models/fabric/message_flows.h"
#include "models/fabric/window_reader.h"
#include "sim/rng.h"

namespace railyard {

namespace {

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
            static_cast<std::int64_t>(flows_.size()) + flows_of(traffic, *out_.network, context_);
        if (flows > window_flows_max) {
            throw ScenarioError(fmt::format("the window has {} flows or more, it takes {}", flows,
                                            window_flows_max),
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

    // Each group of nodes on each rail: its NICs.
    template <class Visit>
    void each_group(const Visit& visit) const {
        const std::int64_t count = group_nodes(*spec_, context_.nodes);
        std::vector<VertexId> nics(static_cast<std::size_t>(count));
        for (std::int64_t rail = 0; rail < topology_.nics_per_node(); ++rail) {
            for (std::int64_t first = 0; first < context_.nodes; first += count) {
                for (std::int64_t i = 0; i < count; ++i) nics[i] = topology_.nic(first + i, rail);
                visit(nics);
            }
        }
    }

    void add_ring() {
        each_group([&](const std::vector<VertexId>& nics) {
            const std::size_t count = nics.size();
            if (count < 2) return;  // to itself
            std::vector<MessageFlows::Handle> before(count, MessageFlows::nothing);
            for (std::int64_t step = 0; step < spec_->steps; ++step) {
                std::vector<MessageFlows::Handle> now(count);
                for (std::size_t i = 0; i < count; ++i) {
                    now[i] = send(nics[i], nics[(i + 1) % count], spec_->bytes.count(),
                                  before[(i + count - 1) % count], 1, before[i]);
                }
                before = std::move(now);
            }
        });
    }

    void add_all_to_all() {
        each_group([&](const std::vector<VertexId>& nics) {
            for (std::size_t from = 0; from < nics.size(); ++from) {
                // Each begins with another one, as NCCL does.
                for (std::size_t k = 1; k < nics.size(); ++k) {
                    send(nics[from], nics[(from + k) % nics.size()], spec_->bytes.count());
                }
            }
        });
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
        random.shuffle(order);
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
            send(nics[1 + i * most / senders], nics[0], spec_->bytes.count());
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
            MessageFlows::Message m{nics[f.from], nics[f.to], f.bytes};
            m.start = f.start + spec_->start;
            if (f.after >= 0) m.after = sent[f.after];
            m.label = sent.size();
            sent.push_back(send(m));
        }
    }

    // A node's bytes are striped over servers, in turn from another one for each node; stripes use the
    // node's NICs in turn, and each server's.
    void add_storage() {
        const std::int64_t servers = topology_.spec().servers;
        const std::int64_t stripes =
            spec_->stripes > 0 ? std::min(spec_->stripes, servers) : servers;
        const int traffic_class = context_.converged ? context_.storage_class : 1;
        std::vector<std::int64_t> taken(static_cast<std::size_t>(servers));  // stripes of each
        for (std::int64_t node = 0; node < context_.nodes; ++node) {
            for (std::int64_t k = 0; k < stripes; ++k) {
                const std::int64_t server = (node * stripes + k) % servers;
                const std::int64_t of_server = taken[server]++ % topology_.spec().nics_per_server;
                const VertexId there = topology_.server_nic(server, of_server);
                const VertexId here = flows_.nic_towards(node, there, node + k);
                const std::int64_t bytes =
                    spec_->bytes.count() / stripes + (k < spec_->bytes.count() % stripes);
                const bool write = spec_->kind == WindowTraffic::checkpoint;
                send(write ? here : there, write ? there : here, bytes, MessageFlows::nothing,
                     traffic_class);
            }
        }
    }

    const Topology& topology_;
    const WindowContext& context_;
    MessageFlows flows_;
    NetworkWindow out_;
    const TrafficSpec* spec_ = nullptr;
    std::size_t index_ = 0;
};

}  // namespace

std::vector<NetworkWindow> lay_out(const WindowSpec& spec, const WindowContext& context) {
    std::vector<NetworkWindow> out;
    for (const ClusterNetwork& network : context.networks) {
        if (network.topology.vertex_count() == 0) continue;
        Layout layout(network, context);
        for (const WindowRoute& route : spec.routes) {
            if (route.network == network.name) layout.add_route(route);
        }
        for (std::size_t i = 0; i < spec.traffic.size(); ++i) {
            if (network_of(spec.traffic[i], context) == &network) layout.add(spec.traffic[i], i);
        }
        for (const FaultSpec& fault : spec.faults) {
            if (fault.network == network.name) layout.add_fault(fault);
        }
        if (layout.empty()) continue;
        out.push_back(layout.take());
        out.back().window.time_max = spec.time_max;
        out.back().window.events_max = static_cast<std::uint64_t>(spec.events_max);
    }
    return out;
}

}  // namespace railyard
