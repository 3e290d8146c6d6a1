#include "models/collective/communicator.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace railyard {

namespace {

// The value of a list for one node, two, or more of them.
template <class T>
const T& by_nodes(const std::vector<T>& values, std::int64_t nodes) {
    return values[std::min<std::int64_t>(nodes, 3) - 1];
}

// Constants of the kind "collective", as seconds and bytes per second.
class Constants {
  public:
    Constants(Catalogue& catalogue, std::string name)
        : catalogue_(catalogue), name_(std::move(name)) {}
    bool has(const char* key) const { return catalogue_.has("collective", name_, key); }
    double number(const char* key) { return catalogue_.number("collective", name_, key); }
    std::int64_t integer(const char* key) { return catalogue_.integer("collective", name_, key); }
    double time(const char* key) { return seconds(catalogue_.time("collective", name_, key)); }
    double speed(const char* key) {
        return catalogue_.bandwidth("collective", name_, key).bytes_per_second();
    }
    std::vector<double> numbers(const char* key) {
        return catalogue_.numbers("collective", name_, key);
    }
    ByProtocol times(const char* key) {
        ByProtocol out{};
        const std::vector<Duration> list = catalogue_.times("collective", name_, key);
        std::transform(list.begin(), list.end(), out.begin(),
                       [](Duration d) { return seconds(d); });
        return out;
    }
    std::vector<double> speeds(const char* key) {
        std::vector<double> out;
        for (const Bandwidth b : catalogue_.bandwidths("collective", name_, key)) {
            out.push_back(b.bytes_per_second());
        }
        return out;
    }

  private:
    Catalogue& catalogue_;
    std::string name_;
};

TunerConstants read_tuner(Catalogue& catalogue, const std::string& generation,
                          const std::string& nic, bool amd_host, std::int64_t nodes) {
    Constants all(catalogue, "tuner");
    Constants gpu(catalogue, generation);
    const bool network = nodes > 1;
    TunerConstants t;
    t.ring_base_s = all.times("ring_base");
    t.ring_nvlink_s = all.times("ring_nvlink");
    t.ring_pcie_s = all.times("ring_pcie");
    t.ring_network_s = all.times("ring_network");
    t.tree_base_s = all.times("tree_base");
    t.tree_nvlink_s = all.times("tree_nvlink");
    t.tree_pcie_s = all.times("tree_pcie");
    t.tree_network_s = all.times("tree_network");
    t.nvls_s = all.time("nvls");
    t.nvls_network_s = all.time("nvls_network");
    t.nvls_tree_network_s = all.time("nvls_tree_network");
    t.collnet_nvlink_s = all.time("collnet_nvlink");
    t.collnet_per_rank_s = all.time("collnet_per_rank");
    t.collnet_network_s = all.time("collnet_network");
    t.pat_base_s = all.time("pat_base");
    t.pat_network_s = all.time("pat_network") / all.number("pat_network_divisor");
    t.pat_per_rank_s = all.time("pat_per_rank");
    t.network_overhead_s = all.time(amd_host ? "network_overhead_amd" : "network_overhead_intel");
    t.network_plateau = all.number("network_plateau");
    t.ll128_share = all.number("ll128_share");
    t.collnet_bandwidth = gpu.has("nvls_ranks_min") ? all.number("collnet_bandwidth") : 1;
    t.pat_bandwidth = all.number("pat_bandwidth");
    t.tree_bandwidth = all.number("tree_bandwidth");
    t.tree_ll_share = 1 / all.number("tree_ll_divisor");
    t.tree_ll128_share = all.number(network ? "tree_ll128_network_share" : "tree_ll128_share");
    t.tree_correction = {all.numbers("tree_correction_ll"), all.numbers("tree_correction_ll128"),
                         all.numbers("tree_correction_simple")};
    t.channels = real(network && catalogue.has("nic", nic, "nccl_channels")
                          ? catalogue.integer("nic", nic, "nccl_channels")
                          : gpu.integer("channels"));
    t.ll_max = network
                   ? by_nodes(all.speeds(amd_host ? "ll_max_network_amd" : "ll_max_network_intel"),
                              std::min<std::int64_t>(nodes, 3) - 1)
                   : gpu.speed("ll_max");
    t.ring_ll128_max = t.channels * gpu.speed("ring_ll128_per_channel");
    t.tree_max = t.channels * by_nodes(gpu.speeds("tree_per_channel"), nodes);
    if (gpu.has("nvls_ranks_min")) {
        t.nvls_efficiency = gpu.number("nvls_tuner_efficiency");
        t.nvls_ranks_min = gpu.integer("nvls_ranks_min");
        const std::vector<double> per_channel = gpu.speeds("nvls_tree_per_channel");
        t.nvls_tree_max = t.channels * (nodes <= 2 ? per_channel[0] : per_channel[1]);
    }
    return t;
}

MeasuredConstants read_measured(Catalogue& catalogue, const std::string& generation,
                                const std::string& nic) {
    Constants all(catalogue, "all");
    Constants gpu(catalogue, generation);
    MeasuredConstants m;
    m.launch_s = gpu.time("launch");
    m.hop_s = gpu.time("hop");
    m.ring_efficiency = gpu.number("ring_efficiency");
    if (gpu.has("nvls_efficiency")) m.nvls_efficiency = gpu.number("nvls_efficiency");
    m.copy_bytes_per_s = gpu.speed("copy_bandwidth");
    m.ll_copy_bytes_per_s = gpu.speed("ll_copy_bandwidth");
    m.peer_bytes_per_s = gpu.speed("peer_bandwidth");
    m.ll128_hop = all.number("ll128_hop");
    m.simple_hop = all.number("simple_hop");
    m.ll128_efficiency = all.number("ll128_efficiency");
    m.nvls_setup_s = all.time("nvls_setup");
    m.nvls_rank_cost = all.number("nvls_rank_cost");
    m.fill_share = all.number("fill_share");
    m.fill_bytes = real(catalogue.data("collective", "all", "fill").count());
    m.pairwise_efficiency = all.number("pairwise_efficiency");
    m.peer_hop = all.number("peer_hop");
    m.peer_ll_bytes_per_s = all.speed("peer_ll_bandwidth");
    m.network_ll_share = all.number("network_ll_share");
    if (catalogue.has("nic", nic, "nccl_hop_latency")) {
        m.network_hop_s = seconds(catalogue.time("nic", nic, "nccl_hop_latency"));
    }
    return m;
}

// Where each pair of GPUs has its own link, the links of all pairs are as many rings through all GPUs as each
// GPU has peers, but of four and of six GPUs one ring fewer. Source: T. W. Tillson, "A Hamiltonian
// decomposition of K*_2m, 2m >= 8", J. Comb. Theory B 29 (1980).
double mesh_ring_share(std::int64_t gpus) {
    const bool one_fewer = gpus == 4 || gpus == 6;
    return one_fewer ? real(gpus - 2) / real(gpus - 1) : 1;
}

}  // namespace

CollectiveConstants read_collective_constants(Catalogue& catalogue, const Node& node) {
    CollectiveConstants c;
    const bool amd_host = catalogue.has("node", node.name, "cpu") &&
                          catalogue.text("node", node.name, "cpu").find("AMD") != std::string::npos;
    for (std::size_t i = 0; i < c.tuner.size(); ++i) {
        c.tuner[i] = read_tuner(catalogue, node.gpu.generation, node.nic, amd_host,
                                static_cast<std::int64_t>(i) + 1);
    }
    c.measured = read_measured(catalogue, node.gpu.generation, node.nic);
    if (catalogue.has("node", node.name, "intra_topology") &&
        catalogue.text("node", node.name, "intra_topology") == "full_mesh") {
        // A full mesh has as many links to each of the others, where nothing else is said.
        c.pair_bytes_per_s =
            catalogue.has("gpu", node.gpu.id, "p2p_link_bandwidth")
                ? catalogue.bandwidth("gpu", node.gpu.id, "p2p_link_bandwidth").bytes_per_second()
                : node.gpu.nvlink_bandwidth.bytes_per_second() /
                      real(std::max<std::int64_t>(1, node.gpus - 1));
        if (catalogue.has("gpu", node.gpu.id, "dies_bandwidth")) {
            c.dies_bytes_per_s =
                catalogue.bandwidth("gpu", node.gpu.id, "dies_bandwidth").bytes_per_second();
        }
    }
    return c;
}

namespace {

// Ranks on one of the nodes that have as many, and on the last one, which may have the rest.
struct OnNodes {
    explicit OnNodes(const CommunicatorShape& shape)
        : most(std::min(shape.ranks, shape.ranks_per_node)),
          nodes((shape.ranks + most - 1) / most),
          last(shape.ranks - (nodes - 1) * most) {}

    std::int64_t most;
    std::int64_t nodes;
    std::int64_t last;
};

// Bytes/s of the NICs that these ranks of a node have: their part of them, or of a group that talks alone
// one at least.
double nics_of(const Node& node, const CommunicatorShape& shape, std::int64_t ranks) {
    const double nic = nic_bandwidth_under_load(node).bytes_per_second();
    const double nics = real(node.nics) * real(ranks) / real(node.gpus);
    return (shape.all_groups ? nics : std::max(1.0, nics)) * nic;
}

// Bytes/s of the NICs next to a GPU while no other GPU uses its own: what it sends and what it receives may
// both go up to the root complex.
double nics_of_one_alone(const Node& node) {
    const Pcie& p = node.pcie;
    const double link = p.link_bytes_per_s / (p.acs || !p.peer_to_peer ? 2 : 1);
    double nic = std::min(node.nic_bandwidth.bytes_per_second(), link);
    if (!p.peer_to_peer) nic = std::min(nic, p.bounce_bytes_per_s);
    return nic * std::max(1.0, real(node.nics) / real(node.gpus));
}

}  // namespace

Communicator make_communicator(const CollectiveConstants& constants, const Node& node,
                               CommunicatorShape shape) {
    const OnNodes on(shape);
    const std::int64_t domain = std::min(on.most, node.nvlink_domain);
    Communicator c;
    c.ranks = shape.ranks;
    c.nodes = on.nodes;
    c.domains = (shape.ranks + domain - 1) / domain;
    c.per_domain = real(c.ranks) / real(c.domains);
    c.tree_depth = std::log2(real(c.domains));

    c.nvswitch = node.nvlink && constants.pair_bytes_per_s == 0;
    c.nvlink = node.gpu.nccl_nvlink_bandwidth.bytes_per_second();
    if (node.nvlink && !c.nvswitch) {
        // Each pair of GPUs has its own link, and a ring uses those to its members.
        const bool dies = domain == 2 && shape.stride == 1 && constants.dies_bytes_per_s > 0;
        c.pair = dies ? constants.dies_bytes_per_s : constants.pair_bytes_per_s;
        c.nvlink = c.pair * real(std::max<std::int64_t>(1, domain - 1));
        c.ring_share = mesh_ring_share(domain);
    }
    c.share_network(node, shape);
    c.transport = node.transport;
    c.in_order = c.transport == "infiniband" || c.transport == "roce";
    c.sharp = shape.sharp && c.transport == "infiniband";
    c.tuner = constants.tuner[std::min<std::int64_t>(c.nodes, 3) - 1];
    c.measured = constants.measured;
    return c;
}

void Communicator::set_network(double bytes_per_s) {
    network = bytes_per_s;
    nominal_network = bytes_per_s;
    all_to_all_network = bytes_per_s;
    send_network = bytes_per_s;
    pat_network = bytes_per_s;
    sharp_network = bytes_per_s;
    // Neighbours of the busiest domain in both trees together; it sends half the data to each. Of two
    // domains each has one per tree; of three, three in all; else three in one tree and one in the other.
    const double neighbours = domains == 2 ? 2 : domains == 3 ? 3 : 4;
    tree_network = bytes_per_s / (neighbours / 2);
}

namespace {

// Seconds of an all-to-all of a byte to each rank where NVLink does not join a node's GPUs: the slowest of
// the NICs, the links of GPUs, those above PCIe's switches, those between sockets and host memory. A node's
// ranks send at once, to all others alike.
double all_to_all_over_pcie(const Node& node, const CommunicatorShape& shape, double domain,
                            double nics_bytes_per_s) {
    const Pcie& p = node.pcie;
    const double ranks = real(shape.ranks);
    const std::int64_t of_node = std::min(shape.ranks, shape.ranks_per_node);
    const double on_node = real(of_node);
    const double all = shape.all_groups ? real(node.gpus) : on_node;
    const double share = p.peer_to_peer ? p.root_complex_share : 1;
    // What passes the link of one of a node's equal parts, switches or sockets, for a byte to each rank: to
    // ranks of the node in other parts, and to NICs in others, which are taken by the receiver's rail.
    const auto passing = [&](std::int64_t parts, std::int64_t gpus, bool acs) {
        const std::int64_t near = (gpus + shape.stride - 1) / shape.stride;  // of a group
        const auto peers = real(std::clamp<std::int64_t>(near, 1, of_node));
        const double sending = shape.all_groups ? real(gpus) : peers;
        const auto with_nics = real(std::clamp<std::int64_t>(node.nics, 1, parts));
        const double outside = ranks - on_node;
        const double to_nics = outside * std::max(0.0, all - sending) / with_nics;
        // With access control what stays under a switch goes up, too, and all that NICs send and receive.
        const double up =
            acs ? to_nics + share * sending * (peers - domain + 2 * outside / with_nics) : 0;
        return sending * (on_node - peers) + to_nics + up;
    };
    const std::int64_t under_switch = std::clamp<std::int64_t>(p.gpus_per_switch, 1, node.gpus);
    const std::int64_t switches = (node.gpus + under_switch - 1) / under_switch;
    const std::int64_t sockets = std::max<std::int64_t>(1, p.sockets);
    const std::int64_t on_socket = (node.gpus + sockets - 1) / sockets;
    double slowest = std::max(
        {on_node * (ranks - on_node) / nics_bytes_per_s, (ranks - domain) / p.link_bytes_per_s,
         passing(switches, under_switch, p.acs) / (p.link_bytes_per_s * share)});
    if (sockets > 1) {
        slowest = std::max(slowest, passing(sockets, on_socket, false) / p.socket_bytes_per_s);
    }
    if (!p.peer_to_peer) slowest = std::max(slowest, (ranks - domain) / p.bounce_bytes_per_s);
    return slowest;
}

}  // namespace

void Communicator::share_network(const Node& node, const CommunicatorShape& shape) {
    const OnNodes on(shape);
    const bool shared = on.most > node.nvlink_domain;  // a node by several domains
    const bool several = on.nodes > 1;
    // Groups that talk at once fill all nodes alike: this one's rest is beside another's.
    const std::int64_t fewest = shape.all_groups ? on.most : std::min(on.most, on.last);
    const double nics = nics_of(node, shape, fewest);
    const double ring = shared ? pcie_ring_bytes_per_s(node, on.most * shape.stride) : nics;
    set_network(several ? std::min(ring, nics) : ring);
    if (ranks == 1) return;
    const double n = real(ranks);
    // The node whose NICs are the slowest for what its ranks send to others.
    double between = 0;
    for (const std::int64_t some : {on.most, fewest}) {
        const double r = real(some);
        if (several) between = std::max(between, r * (n - r) / nics_of(node, shape, some));
    }
    // In one node without NVLink each GPU is a domain to the others.
    by_pcie = domains == 1 && !node.nvlink;
    const double domain = by_pcie ? 1 : per_domain;
    if (shared || !node.nvlink) {
        between = std::max(
            between, all_to_all_over_pcie(node, shape, domain, nics_of(node, shape, on.most)));
    }
    if (between > 0) all_to_all_network = domain * (n - domain) / between;
    // One of a node's ranks sends to the next node and one receives, by the NICs next to it; of groups that
    // talk at once all do. In one node by PCIe.
    double one = shared ? ring : std::numeric_limits<double>::infinity();
    if (several) {
        one = std::min(one, shape.all_groups ? nics_of(node, shape, 1) : nics_of_one_alone(node));
    }
    if (several || shared) send_network = per_domain * one;
}

Communicator Communicator::with_network_slowed(double slowdown) const {
    Communicator out = *this;
    out.network /= slowdown;
    out.tree_network /= slowdown;
    out.all_to_all_network /= slowdown;
    out.send_network /= slowdown;
    out.pat_network /= slowdown;
    out.sharp_network /= slowdown;
    return out;
}

Communicator read_communicator(Catalogue& catalogue, const Node& node, CommunicatorShape shape) {
    return make_communicator(read_collective_constants(catalogue, node), node, shape);
}

void measure(GpuNetwork& network, const GpuGroups& groups, Collective collective, Communicator& c) {
    const Traffic traffic = traffic_of(collective);
    GroupRate rate = network.rate(traffic, groups);
    const bool trees = traffic == Traffic::all_reduce && c.domains > 1;
    if (c.sharp && trees) {
        c.sharp_network = network.reduction(groups).bytes_per_s;
        c.sharp = c.sharp_network > 0;
    }
    c.nvlink *= rate.nvlink_left;
    if (rate.bytes_per_s == 0) return;
    c.bottleneck = rate.bottleneck;
    c.loads = std::move(rate.loads);
    if (c.domains > 1) {
        const double n = real(c.ranks);
        const double moved =  // out of a domain, for each byte that is measured
            collective == Collective::send_recv    ? c.per_domain
            : collective == Collective::all_to_all ? c.per_domain * (n - c.per_domain) / (n - 1)
                                                   : 1;
        c.network = rate.bytes_per_s * moved;
        if (trees) c.tree_network = network.tree(groups).bytes_per_s;
        c.pat_network = c.all_to_all_network = c.send_network = c.network;
        c.measured.network_hop_s += rate.extra_hop_s;
        c.measured.far_hop_s = rate.far_hop_s;
        c.measured.far_share = rate.far_share;
    } else {
        c.nvlink = rate.bytes_per_s;
        c.by_pcie = false;
    }
}

double read_framework_launch(Catalogue& catalogue) {
    return Constants(catalogue, "all").time("framework_launch");
}

}  // namespace railyard
