#include "tests/laws/oracles/network_runs.h"

#include <algorithm>
#include <numeric>

#include "sim/check.h"
#include "sim/rng.h"

namespace railyard {

namespace {

constexpr std::int64_t gigabit = 1'000'000'000;

SwitchModel switch_of(std::int64_t ports) {
    SwitchModel model;
    model.name = "switch";
    model.ports = ports;
    model.port_bandwidth = Bandwidth::bits_per_second(400 * gigabit);
    return model;
}

TopologySpec tree_spec(std::int64_t nics, std::int64_t tiers, std::int64_t leaf_ports,
                       std::int64_t spine_ports) {
    TopologySpec spec;
    spec.nodes = nics;
    spec.tiers = tiers;
    spec.leaf = switch_of(leaf_ports);
    spec.spine = spec.core = switch_of(spine_ports);
    spec.nic_bandwidth = spec.leaf.port_bandwidth;
    return spec;
}

// Flows on one leaf to as many NICs on another; a spine for each link up.
Topology two_leaves(std::int64_t flows, std::int64_t links) {
    TopologySpec spec = tree_spec(2 * flows, 2, flows + links, 2);
    spec.nodes_per_leaf = flows;
    spec.oversubscription = static_cast<double>(flows) / static_cast<double>(links);
    std::string problem;
    Topology topology = Topology::build(spec, problem);
    RY_CHECK(problem.empty());
    return topology;
}

// Nothing but data on the wire, and pauses of one class.
PacketSpec bare_packets(std::int64_t payload_bytes, std::int64_t wire_bytes) {
    PacketSpec spec;
    spec.payload_bytes = payload_bytes;
    spec.header_bytes = wire_bytes - payload_bytes;
    spec.ack_class = -1;
    return spec;
}

PacketFlow flow_on(std::vector<LinkId> path, std::int64_t bytes, std::int64_t start_ps = 0) {
    PacketFlow f = flow_of(std::move(path), bytes);
    f.start = Picoseconds(start_ps);
    return f;
}

}  // namespace

TreeSize largest_tree(std::int64_t k, std::int64_t tiers) {
    const auto build = [&](std::int64_t leaves, TreeSize& size) {
        std::string problem;
        const Topology t = Topology::build(tree_spec(leaves * (k / 2), tiers, k, k), problem);
        const auto nics = static_cast<std::int64_t>(t.nic_count());
        size = {nics, static_cast<std::int64_t>(t.vertex_count()) - nics};
        return problem.empty();
    };
    // A leaf more than fits is refused; between the two, by halves.
    TreeSize best;
    TreeSize tried;
    std::int64_t fits = 1;
    while (build(2 * fits, tried)) fits *= 2;
    std::int64_t refused = 2 * fits;
    while (refused - fits > 1) {
        const std::int64_t middle = std::midpoint(fits, refused);
        (build(middle, tried) ? fits : refused) = middle;
    }
    build(fits, best);
    return best;
}

HashedLinks::HashedLinks(std::int64_t flows, std::int64_t links)
    : topology_(two_leaves(flows, links)),
      router_(topology_, {Routing::ecmp}),
      flows_(flows),
      links_(static_cast<std::size_t>(links)) {
    const LinkId up = topology_.up_links(0).front();
    const auto outputs = topology_.up_links(topology_.links()[up].to);
    RY_CHECK(outputs.size() == links_);
    link_number_.resize(topology_.links().size());
    for (std::size_t i = 0; i < outputs.size(); ++i) link_number_[outputs[i]] = i;
}

std::size_t HashedLinks::link_of(std::int64_t flow, std::uint64_t label) {
    path_.clear();
    router_.route(topology_.nic(flow, 0), topology_.nic(flows_ + flow, 0), label, path_);
    return link_number_[path_[1].link];
}

std::int64_t HashedLinks::draws() const {
    constexpr std::int64_t flows_drawn = 4'000'000;
    return std::max<std::int64_t>(1'000, flows_drawn / flows_);
}

template <class Of>
double HashedLinks::mean_over_draws(Of of) {
    std::vector<std::int64_t> on_link(links_);
    double sum = 0;
    const std::int64_t count = draws();
    for (std::int64_t draw = 0; draw < count; ++draw) {
        std::fill(on_link.begin(), on_link.end(), 0);
        for (std::int64_t flow = 0; flow < flows_; ++flow) {
            ++on_link[link_of(flow, static_cast<std::uint64_t>(draw))];
        }
        sum += of(on_link);
    }
    return sum / static_cast<double>(count);
}

double HashedLinks::most_over_mean() {
    const double most = mean_over_draws([](const std::vector<std::int64_t>& on_link) {
        return static_cast<double>(*std::max_element(on_link.begin(), on_link.end()));
    });
    return most * static_cast<double>(links_) / static_cast<double>(flows_);
}

double HashedLinks::links_used() {
    const double unused = mean_over_draws([](const std::vector<std::int64_t>& on_link) {
        return static_cast<double>(std::count(on_link.begin(), on_link.end(), 0));
    });
    return 1 - unused / static_cast<double>(links_);
}

double HashedLinks::no_collision() {
    const auto population = static_cast<std::size_t>(4 * draws());
    const std::size_t words =
        (links_ + 63) / 64;  // of a bit for each link that an assignment takes
    std::vector<std::uint64_t> assignments(population * words);
    std::vector<std::uint64_t> without;
    RandomStream random(1, 0, "verify/no_collision");
    std::uint64_t label = 0;
    double probability = 1;
    for (std::int64_t flow = 0; flow < flows_; ++flow) {
        without.clear();
        for (std::size_t i = 0; i < assignments.size(); i += words) {
            const std::size_t link = link_of(flow, label++);
            const std::uint64_t bit = std::uint64_t{1} << (link % 64);
            if ((assignments[i + link / 64] & bit) != 0) continue;
            const std::size_t place = without.size() + link / 64;
            without.insert(without.end(), &assignments[i], &assignments[i] + words);
            without[place] |= bit;
        }
        const std::size_t left = without.size() / words;
        if (left == 0) return 0;
        probability *= static_cast<double>(left) / static_cast<double>(population);
        for (std::size_t i = 0; i < assignments.size(); i += words) {
            std::copy_n(&without[random.below(left) * words], words, &assignments[i]);
        }
    }
    return probability;
}

Picoseconds incast_drain(int flows, std::int64_t bytes, std::int64_t payload_bytes,
                         std::int64_t wire_bytes, Bandwidth rate) {
    PacketNetwork network;
    const std::int64_t all_bytes = flows * bytes;
    const VertexId sw = network.add_switch(32'000'000 + 4 * all_bytes);
    const auto cable = [&](VertexId a, VertexId b) {
        return network.add_cable(a, b, rate, Picoseconds(us));
    };
    const LinkId down = cable(sw, network.add_nic());
    std::vector<LinkId> ups;
    for (int i = 0; i < flows; ++i) ups.push_back(cable(network.add_nic(), sw));
    for (PacketLink& l : network.links) l.headroom_bytes = 200'000;
    PacketEngine e(network, bare_packets(payload_bytes, wire_bytes));
    for (const LinkId up : ups) e.add(flow_on({up, down}, bytes));
    // From the first packet's last byte to the last one's: all packets but one, back to back.
    std::int64_t received = 0;
    Picoseconds first{};
    while (received < all_bytes) {
        e.run(PacketEngine::never, 1);
        received = 0;
        for (std::size_t f = 0; f < ups.size(); ++f) received += e.received_bytes(f);
        if (first == Picoseconds{} && received > 0) first = e.now();
    }
    const std::int64_t packets = flows * ((bytes + payload_bytes - 1) / payload_bytes);
    return packets > 1 ? (e.now() - first) * packets / (packets - 1) : Picoseconds{};
}

namespace {

// Two NICs under a switch: one sends to a NIC that stands still, the other to the first.
struct HeadroomRun {
    Bandwidth rate;
    Picoseconds propagation;
    std::int64_t mtu;

    // Bytes that come after XOFF, when `ahead` bytes go before the full packets.
    std::int64_t held(std::int64_t ahead) const {
        constexpr std::int64_t trigger = 1;  // byte, which fills all that is not headroom
        PacketNetwork network;
        const VertexId sw = network.add_switch(std::int64_t{1} << 40);
        const VertexId sender = network.add_nic();
        const auto cable = [&](VertexId a, VertexId b) {
            return network.add_cable(a, b, rate, propagation);
        };
        const LinkId up = cable(sender, sw);
        const LinkId down = cable(sw, network.add_nic());
        const LinkId other = cable(network.add_nic(), sw);
        network.links[up].headroom_bytes = std::int64_t{1} << 30;
        network.links[down].headroom_bytes = 1;  // a NIC's: that it may pause
        PacketSpec spec = bare_packets(mtu, mtu);
        spec.buffer.alpha = 0;
        spec.buffer.reserve_bytes = trigger;
        // A frame of one byte: the last packet may begin just when a frame without any length would come.
        spec.pause_frame_bytes = 1;
        PacketEngine e(network, spec);
        e.storm(down, 1, {}, PacketEngine::never);
        const std::int64_t begin = 1'000'000'000'000;
        PacketFlow f = flow_on({up, down}, trigger, begin);
        f.continues = static_cast<std::int64_t>(e.add(f));
        if (ahead > 0) {
            f.bytes = ahead;
            f.continues = static_cast<std::int64_t>(e.add(f));
        }
        f.bytes = std::int64_t{1} << 20;
        e.add(f);
        // The packet that the pause waits behind leaves the switch as the trigger arrives.
        const auto ps = [&](std::int64_t bytes) {
            return bytes * 8 * 1'000'000 / (rate.bits_per_second() / 1'000'000);
        };
        e.add(flow_on({other, reverse_link(up)}, mtu, begin + ps(trigger) - ps(mtu) - 1));
        e.run(Picoseconds(2 * begin));
        RY_CHECK(e.paused(up, 1) && e.totals().lost_lossless == 0);
        return e.ingress(up, 1).headroom_bytes;
    }
};

}  // namespace

std::int64_t headroom_needed(Bandwidth rate, Picoseconds propagation, std::int64_t mtu_bytes) {
    const HeadroomRun run{rate, propagation, mtu_bytes};
    // Each byte ahead is held too, until the last full packet begins too late: the most is just before.
    const std::int64_t none = run.held(0);
    std::int64_t fits = 0;
    std::int64_t too_late = mtu_bytes;
    while (too_late - fits > 1) {
        const std::int64_t ahead = std::midpoint(fits, too_late);
        (run.held(ahead) > none ? fits : too_late) = ahead;
    }
    return run.held(fits);
}

Picoseconds pause_of(std::int64_t quanta, Bandwidth rate) {
    PacketNetwork network;
    const VertexId sw = network.add_switch(std::int64_t{1} << 30);
    const LinkId up = network.add_cable(network.add_nic(), sw, rate, Picoseconds(us));
    const LinkId down = network.add_cable(sw, network.add_nic(), rate, Picoseconds(us));
    for (PacketLink& l : network.links) l.headroom_bytes = 200'000;
    PacketSpec spec;
    spec.pause_quanta = quanta;
    PacketEngine e(network, spec);
    e.add(flow_on({up, down}, 1, 10 * us));  // when the frame is there
    e.storm(down, 1, {}, PacketEngine::never);
    e.run(Picoseconds(1));
    e.mute(down);
    e.run(PacketEngine::never);
    return e.paused_time(down, 1);
}

double parking_lot_share(std::int64_t hops, std::int64_t cross_flows) {
    constexpr double rate = 1e9;
    MaxMin shares(std::vector<double>(static_cast<std::size_t>(hops), rate));
    std::vector<Usage> all;
    for (LinkId hop = 0; hop < hops; ++hop) all.push_back({hop});
    const FlowId long_flow = shares.add(all);
    for (const Usage& hop : all) {
        for (std::int64_t i = 0; i < cross_flows; ++i) shares.add({&hop, 1});
    }
    shares.solve();
    return shares.rate(long_flow) / rate;
}

}  // namespace railyard
