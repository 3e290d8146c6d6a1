#include "models/collective/gpu_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>

#include "models/collective/all_to_all_loads.h"
#include "sim/cancel.h"
#include "sim/check.h"

namespace railyard {

namespace {

// Over whom a rank of NCCL's binary tree reaches rank 0; of rank 0 itself none. In the order of ranks: odd
// ones are leaves, and who is a multiple of 2^k but not of 2^(k+1) is k levels above them. Source: NCCL's
// graph/trees.cc.
std::size_t tree_parent(std::size_t rank, std::size_t ranks) {
    const std::size_t lowest = rank & (~rank + 1);
    const std::size_t parent = (rank ^ lowest) | (lowest << 1);
    return parent < ranks ? parent : rank ^ lowest;
}
// Who has this rank of the second tree, in which leaves of the first are above others.
std::size_t second_tree(std::size_t rank, std::size_t ranks) {
    return ranks % 2 == 0 ? ranks - 1 - rank : (rank + 1) % ranks;
}

// The GPUs of a group in a node, in the order of a ring that begins at one of them.
class Round {
  public:
    Round(std::span<const std::int64_t> gpus, std::int64_t from)
        : gpus_(gpus),
          first_(static_cast<std::size_t>(std::ranges::find(gpus, from) - gpus.begin())) {}
    std::int64_t operator[](std::size_t k) const {  // k below their number
        const std::size_t place = first_ + k;
        return gpus_[place < gpus_.size() ? place : place - gpus_.size()];
    }

  private:
    std::span<const std::int64_t> gpus_;
    std::size_t first_;
};

double pairs_in(std::span<const GpuGroup> groups) {
    double pairs = 0;
    for (const GpuGroup& group : groups) pairs += real(group.size()) * real(group.size());
    return pairs;
}

// Each group taken apart, so that the next rank is so many places on in it.
std::vector<GpuGroup> rounds_of(std::span<const GpuGroup> groups, std::size_t distance) {
    std::vector<GpuGroup> out;
    for (const GpuGroup& group : groups) {
        const std::size_t apart = std::gcd(group.size(), distance);
        for (std::size_t first = 0; first < apart; ++first) {
            GpuGroup& round = out.emplace_back();
            for (std::size_t k = 0; k < group.size() / apart; ++k) {
                round.push_back(group[(first + k * distance) % group.size()]);
            }
        }
    }
    return out;
}

// False: one of its switches is part of as many trees as it can be.
bool find_room(const AggregationTree& tree, const Topology& topology,
               std::vector<std::int64_t>& trees_at) {
    std::vector<VertexId> switches;
    for (const AggregationTree::Branch& branch : tree.branches) switches.push_back(branch.parent);
    std::ranges::sort(switches);
    switches.erase(std::unique(switches.begin(), switches.end()), switches.end());
    return std::ranges::all_of(switches, [&](VertexId v) {
        const std::int64_t trees = topology.switch_model(v).sharp_trees;
        return ++trees_at[v] <= trees;
    });
}

}  // namespace

GpuGroups::GpuGroups(const List& list) : list_(&list) {
    Fingerprint name;
    for (const GpuGroup& group : list) {
        name.add(static_cast<std::uint64_t>(group.size()));
        for (const std::int64_t gpu : group) name.add(gpu);
    }
    name_ = name.value();
}

const GpuGroups::List& GpuGroups::list() const {
    if (list_ == nullptr) {
        made_ = make_();
        list_ = &made_;
    }
    return *list_;
}

GpuNetwork::GpuNetwork(const Node& node, const Topology& topology, RoutingSpec routing)
    : topology_(topology),
      routing_(routing),
      inside_(node, topology.nodes(), static_cast<LinkId>(topology.links().size())),
      wire_share_(node.wire_share),
      nic_bytes_per_s_(node.nic_bandwidth.bytes_per_second()) {
    RY_CHECK(topology.nics_per_node() == node.nics);
    likeness_.add_all(static_cast<std::int64_t>(routing_.policy), routing_.queue_pairs,
                      routing_.hash_polarized);
    inside_.add_to(likeness_);
    likeness_.add_all(node.wire_share, nic_bytes_per_s_, node.pcie.link_bytes_per_s,
                      node.pcie.bounce_bytes_per_s, node.pcie.socket_bytes_per_s);
}

namespace {

std::mutex being_set_up;  // of networks that others are made of

}  // namespace

GpuNetwork GpuNetwork::rehashed(std::uint64_t seed) {
    RY_CHECK(like_ == nullptr);
    const std::lock_guard lock(being_set_up);
    GpuNetwork out = *this;
    out.routing_.hash_seed = seed;
    out.like_ = this;
    if (router_) out.router_->rehash(seed);
    return out;
}

void GpuNetwork::degrade(const PartFault& fault) {
    if (fault.part == Part::gpu || fault.part == Part::hbm) return;  // its links are sound
    likeness_.add_all(static_cast<int>(fault.part), fault.node, fault.index, fault.speed);
    faults_.push_back(fault);
    if (router_) slow_down(fault);
}

void GpuNetwork::set_up() {
    if (router_) return;
    if (like_ != nullptr) {
        const std::lock_guard lock(being_set_up);
        like_->set_up();
        router_.emplace(*like_->router_);
        router_->rehash(routing_.hash_seed);
        capacity_ = like_->capacity_;
    } else {
        router_.emplace(topology_, routing_);
        capacity_ = capacities(topology_);
        for (double& c : capacity_) c *= wire_share_;
        inside_.add_capacities(capacity_);
    }
    const std::size_t taken_over = like_ != nullptr ? like_->faults_.size() : 0;
    for (const PartFault& fault : std::span(faults_).subspan(taken_over)) slow_down(fault);
}

void GpuNetwork::slow_down(const PartFault& fault) {
    for (const LinkId link : inside_.links_of(fault)) capacity_[link] *= fault.speed;
}

void GpuNetwork::connect(const Hop& hop, std::vector<Usage>& out) {
    if (inside_.node_of(hop.from) == inside_.node_of(hop.to)) {
        inside_.between(hop.from, hop.to, hop.share, out);
        return;
    }
    inside_.to_nic(inside_.next_to(hop.from, hop.rail), hop.rail, true, hop.share, out);
    const VertexId a = topology_.nic(inside_.node_of(hop.from), hop.rail);
    const VertexId b = topology_.nic(inside_.node_of(hop.to), hop.rail);
    const std::size_t first = out.size();
    const std::uint64_t label = static_cast<std::uint64_t>(hop.from) + (hop.connection << 32U);
    if (!router_->route(a, b, label, out)) throw NoPath(topology_.name(a), topology_.name(b));
    const std::span<const Usage> route(out.data() + first, out.size() - first);
    note_latency(route);
    if (cables_used_) cables_used_->add(a, b, route);
    for (std::size_t i = first; i < out.size(); ++i) out[i].share *= hop.share;
    if (closer_) hops_.push_back({a, b, hop.share, label});
    inside_.to_nic(inside_.next_to(hop.to, hop.rail), hop.rail, false, hop.share, out);
}

// On the rail of the receiver, so that every message stays on one; on all NICs that it has to itself.
void GpuNetwork::connect_by_receiver(std::int64_t from, std::int64_t to, float share,
                                     std::vector<Usage>& out) {
    const std::int64_t nics = inside_.nics_per_gpu();
    for (std::int64_t i = 0; i < nics; ++i) {
        connect({from, to, inside_.nearest_nic(to) + i, share / static_cast<float>(nics)}, out);
    }
}

void GpuNetwork::Streams::close(std::size_t first, double group_bytes_per_byte,
                                NetworkStream& through) {
    if (usages.size() == first) return;
    hops.push_back(std::exchange(through, {}));
    merge_usages(usages, first);
    ends.push_back(usages.size());
    factor.push_back(group_bytes_per_byte);
}

std::vector<GpuNetwork::Members> GpuNetwork::members_of(const GpuGroup& group,
                                                        bool by_domain) const {
    std::vector<Members> parts;
    parts.reserve(group.size());
    const auto together = [&](std::int64_t a, std::int64_t b) {
        return by_domain ? inside_.same_domain(a, b) : inside_.node_of(a) == inside_.node_of(b);
    };
    for (std::size_t i = 0; i < group.size();) {
        std::size_t end = i + 1;
        while (end < group.size() && together(group[end], group[i])) ++end;
        const std::span<const std::int64_t> gpus(group.data() + i, end - i);
        parts.push_back({gpus, inside_.nics_of(gpus)});
        i = end;
    }
    return parts;
}

std::int64_t GpuNetwork::gpu_near(const Members& part, std::int64_t nic) const {
    const auto near =
        std::ranges::find_if(part.gpus, [&](std::int64_t g) { return inside_.is_near(g, nic); });
    return near == part.gpus.end() ? part.gpus.front() : *near;
}

void GpuNetwork::add_ring(const GpuGroup& group, Streams& streams) {
    const std::vector<Members> parts = members_of(group);
    const std::size_t rings = parts.size() == 1 ? 1 : parts[0].nics.size();
    for (std::size_t c = 0; c < rings; ++c) {
        const auto nic = [&](const Members& part) { return part.nics[c % part.nics.size()]; };
        const std::size_t first = streams.usages.size();
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const Members& part = parts[i];
            const Members& next = parts[(i + 1) % parts.size()];
            const std::size_t count = part.gpus.size();
            const Round gpu(part.gpus, gpu_near(part, nic(part)));
            for (std::size_t k = 0; k + 1 < count; ++k) {
                inside_.between(gpu[k], gpu[k + 1], 1, streams.usages);
            }
            connect({gpu[count - 1], gpu_near(next, nic(next)), nic(part)}, streams.usages);
        }
        streams.close(first, real(rings), hops_);
    }
}

// Within a node a chain from the GPU next to the NIC; between nodes NCCL's double binary tree.
void GpuNetwork::add_double_tree(const GpuGroup& group, Streams& streams) {
    const std::vector<Members> parts = members_of(group);
    const std::size_t trees = parts.size() == 1 ? 1 : 2 * parts[0].nics.size();
    for (std::size_t t = 0; t < trees; ++t) {
        const std::size_t first = streams.usages.size();
        const auto nic = [&](const Members& part) { return part.nics[t / 2 % part.nics.size()]; };
        for (const Members& part : parts) {
            const Round gpu(part.gpus, gpu_near(part, nic(part)));
            for (std::size_t k = 0; k + 1 < part.gpus.size(); ++k) {
                inside_.between(gpu[k + 1], gpu[k], 1, streams.usages);
                inside_.between(gpu[k], gpu[k + 1], 1, streams.usages);
            }
        }
        const auto part_of = [&](std::size_t rank) -> const Members& {
            return parts[t % 2 == 0 ? rank : second_tree(rank, parts.size())];
        };
        for (std::size_t rank = 1; rank < parts.size(); ++rank) {
            const Members& child = part_of(rank);
            const Members& parent = part_of(tree_parent(rank, parts.size()));
            const std::int64_t below = gpu_near(child, nic(child));
            const std::int64_t above = gpu_near(parent, nic(parent));
            connect({below, above, nic(child), 1, t}, streams.usages);
            connect({above, below, nic(parent), 1, t}, streams.usages);
        }
        streams.close(first, real(trees), hops_);
    }
}

// The GPUs of an NVLink domain add up there first: into each of its NICs goes the sum, from the GPU next to
// it, over a tree for each port.
bool GpuNetwork::add_switch_trees(const GpuGroup& group, Streams& streams) {
    const std::vector<Members> parts = members_of(group, true);
    if (parts.size() == 1) return true;
    const std::size_t rails = parts[0].nics.size();
    for (std::size_t c = 0; c < rails; ++c) {
        std::vector<VertexId> nics;
        std::vector<Usage> inside;  // nodes
        for (const Members& part : parts) {
            const std::int64_t nic = part.nics[c % part.nics.size()];
            const std::int64_t near = gpu_near(part, nic);
            inside_.to_nic(near, nic, true, 1, inside);
            inside_.to_nic(near, nic, false, 1, inside);
            nics.push_back(topology_.nic(inside_.node_of(near), nic));
        }
        const std::size_t ports = topology_.up_links(nics[0]).size();
        const std::vector<AggregationTree> trees =
            aggregation_trees(topology_, nics, streams.ends.size() / ports);
        if (trees.empty()) return false;
        for (const AggregationTree& tree : trees) {
            if (!find_room(tree, topology_, trees_at_)) return false;
            const std::size_t first = streams.usages.size();
            streams.usages.insert(streams.usages.end(), inside.begin(), inside.end());
            const std::vector<Usage> links = tree.usages();
            streams.usages.insert(streams.usages.end(), links.begin(), links.end());
            if (cables_used_) cables_used_->add(links);
            if (closer_) {
                for (const VertexId nic : nics) hops_.push_back({nic, nic, 1, tree.number});
            }
            streams.close(first, real(rails * trees.size()), hops_);
        }
    }
    return true;
}

// Where fair shares end at a NIC or inside a node, the lower of both counts; where they end in the network,
// it is the closer model's word alone, up to what a NIC can do.
void GpuNetwork::look_closer(const Streams& streams, LinkId bottleneck, GroupRate& out) {
    std::vector<NetworkStream> through;
    std::vector<double> factor;
    std::vector<std::array<double, 2>> load(topology_.nic_count());  // out, in, for a byte of all
    for (std::size_t i = 0; i < streams.hops.size(); ++i) {
        if (streams.hops[i].empty()) continue;
        through.push_back(streams.hops[i]);
        factor.push_back(streams.factor[i]);
        for (const NetworkHop& hop : streams.hops[i]) {
            load[hop.from][0] += hop.share / streams.factor[i];
            load[hop.to][1] += hop.share / streams.factor[i];
        }
    }
    if (through.empty()) return;
    if (!inside_.has(bottleneck)) {
        double most = 0;
        for (const auto& [sent, received] : load) most = std::max({most, sent, received});
        out.bytes_per_s = nic_bytes_per_s_ / most;
        out.bottleneck = "the NICs";
    }
    const std::vector<double> rates = closer_->rates(through, streams.kind);
    for (std::size_t i = 0; i < rates.size(); ++i) {
        if (rates[i] * factor[i] >= out.bytes_per_s) continue;
        out.bytes_per_s = rates[i] * factor[i];
        out.bottleneck = "packets between " + topology_.name(through[i][0].from) + " and " +
                         topology_.name(through[i][0].to);
    }
}

bool GpuNetwork::tells_load_of(LinkId link) const {
    if (inside_.has(link)) return false;
    const Link& of = topology_.links()[link];
    const bool of_nic = topology_.level(of.from) == 0 || topology_.level(of.to) == 0;
    return loads_of_nics_ || !of_nic;
}

// All streams of a collective keep the pace of the slowest.
LinkLoads GpuNetwork::loads_of(const Streams& streams, double group_bytes_per_s) const {
    const double factor = *std::ranges::min_element(streams.factor);
    LinkLoads out;
    out.flow_bytes_per_s = group_bytes_per_s / factor;
    std::vector<Usage> all;
    std::size_t first = 0;
    for (std::size_t f = 0; f < streams.ends.size(); ++f) {
        const auto flows = static_cast<float>(factor / streams.factor[f]);
        for (std::size_t i = first; i < streams.ends[f]; ++i) {
            const Usage& usage = streams.usages[i];
            if (tells_load_of(usage.link)) all.push_back({usage.link, usage.share * flows});
        }
        first = streams.ends[f];
    }
    merge_usages(all);
    for (const Usage& usage : all) {
        out.links.push_back({usage.link, usage.share, capacity_[usage.link]});
    }
    return out;
}

double GpuNetwork::nvlink_left(std::span<const GpuGroup> groups) const {
    double left = 1;
    for (const PartFault& fault : faults_) {
        if (fault.part != Part::nvlink) continue;
        const std::int64_t gpu = inside_.first_gpu(fault.node) + fault.index;
        for (const GpuGroup& group : groups) {
            if (std::ranges::find(group, gpu) != group.end()) left = std::min(left, fault.speed);
        }
    }
    return left;
}

void GpuNetwork::note_latency(std::span<const Usage> route) {
    const Picoseconds latency = router_->latency(route);
    Picoseconds far{};
    for (const Usage& usage : route) {
        if (!topology_.between_sites(usage.link)) continue;
        far = topology_.links()[usage.link].latency -
              topology_.latency_at(usage.link, topology_.spec().switch_cable);
        // From a third building's core it is the same way again.
        if (topology_.spec().sites > 2 && latency > 2 * far) far *= 2;
        break;
    }
    longest_ = std::max(longest_, latency - far);
    far_ = std::max(far_, far);
    hops_of_ring_ += 1;
    far_hops_of_ring_ += far > Picoseconds{} ? 1 : 0;
}

void GpuNetwork::take_latencies(GroupRate& out) {
    const Picoseconds longest = std::exchange(longest_, {});
    const auto in_seconds = [](Picoseconds p) { return real(p.count()) * 1e-12; };
    out.far_hop_s = in_seconds(std::exchange(far_, {}));
    out.far_share = std::exchange(far_share_, 0);
    router_->forget_loads();
    if (longest <= Picoseconds{}) return;
    const LinkId up = topology_.up_links(0)[0];
    const Picoseconds one_leaf =
        topology_.links()[up].latency + topology_.links()[reverse_link(up)].latency;
    out.extra_hop_s = in_seconds(std::max(longest - one_leaf, Picoseconds{}));
}

// Max-min fairness gives the slowest flow what the first link to fill up gives to each of its flows. So no
// other flow's rate is needed while all flows move as much of their groups' bytes.
std::pair<LinkId, double> GpuNetwork::slowest_flow(const Streams& streams) const {
    const std::vector<double>& factor = streams.factor;
    if (std::adjacent_find(factor.begin(), factor.end(), std::not_equal_to<>()) == factor.end()) {
        std::vector<double> load(capacity_.size());
        for (const Usage& usage : streams.usages) load[usage.link] += double{usage.share};
        LinkId first = 0;
        double slowest = HUGE_VAL;
        for (const Usage& usage : streams.usages) {
            const double pace = capacity_[usage.link] / load[usage.link];
            if (pace < slowest) {
                first = usage.link;
                slowest = pace;
            }
        }
        return {first, slowest * factor[0]};
    }
    MaxMin shares(capacity_);
    std::size_t first = 0;
    for (const std::size_t end : streams.ends) {
        shares.add({streams.usages.data() + first, end - first});
        first = end;
    }
    shares.solve();
    FlowId slowest = 0;
    const auto rate = [&](FlowId f) { return shares.rate(f) * factor[f]; };
    for (FlowId f = 1; f < streams.ends.size(); ++f) {
        if (rate(f) < rate(slowest)) slowest = f;
    }
    return {shares.bottleneck(slowest), rate(slowest)};
}

GroupRate GpuNetwork::slowest(const Streams& streams, std::span<const GpuGroup> groups) {
    heed_cancel();
    GroupRate out;
    out.nvlink_left = nvlink_left(groups);
    if (streams.ends.empty()) return out;
    const auto [link, rate] = slowest_flow(streams);
    out.bytes_per_s = rate;
    out.bottleneck = link_name(link);
    if (closer_) look_closer(streams, link, out);
    if (keep_loads_) out.loads = loads_of(streams, out.bytes_per_s);
    take_latencies(out);
    return out;
}

template <class Measure>
GroupRate GpuNetwork::once(std::uint64_t which, const GpuGroups& groups, const Measure& measure) {
    static std::mutex mutex;
    struct Known {
        GroupRate rate;
        std::vector<bool> cables;  // that its routes pass, where somebody asked
    };
    static std::map<std::array<std::uint64_t, 4>, Known> known;
    constexpr std::size_t known_max = 1 << 16;
    const auto measured = [&] {
        set_up();
        return measure(groups.list());
    };
    // A custom network has names of its own, and loads have to be noted again.
    if (closer_ || keep_loads_ || topology_.spec().kind == "custom") return measured();
    Fingerprint asked;
    asked.add_all(which, routing_.hash_seed, groups.name());
    const auto [shape, speed] = topology_.likeness();
    const std::array<std::uint64_t, 4> key{shape, speed, likeness_.value(), asked.value()};
    {
        const std::lock_guard lock(mutex);
        const auto found = known.find(key);
        if (found != known.end() && (!cables_used_ || !found->second.cables.empty())) {
            if (cables_used_) cables_used_->add(found->second.cables);
            return found->second.rate;
        }
    }
    const std::shared_ptr<CablesUsed> all = cables_used_;
    if (all) cables_used_ = std::make_shared<CablesUsed>(topology_, routing_.policy);
    Known fresh{measured(), {}};
    if (all) {
        fresh.cables = std::exchange(cables_used_, all)->take();
        all->add(fresh.cables);
    }
    const std::lock_guard lock(mutex);
    if (known.size() >= known_max) known.clear();
    return known.insert_or_assign(key, std::move(fresh)).first->second.rate;
}

GroupRate GpuNetwork::ring(const GpuGroups& asked) {
    return once(0, asked, [&](std::span<const GpuGroup> groups) -> GroupRate {
        if (!keep_loads_) router_->let_one_stand_for_all();
        Streams streams;
        streams.kind = StreamKind::ring;
        for (const GpuGroup& group : groups) {
            hops_of_ring_ = far_hops_of_ring_ = 0;
            add_ring(group, streams);
            if (hops_of_ring_ > 0) {
                far_share_ = std::max(far_share_, far_hops_of_ring_ / hops_of_ring_);
            }
        }
        return slowest(streams, groups);
    });
}

GroupRate GpuNetwork::tree(const GpuGroups& asked) {
    return once(1, asked, [&](std::span<const GpuGroup> groups) -> GroupRate {
        if (!keep_loads_) router_->let_one_stand_for_all();
        Streams streams;
        for (const GpuGroup& group : groups) add_double_tree(group, streams);
        return slowest(streams, groups);
    });
}

GroupRate GpuNetwork::reduction(const GpuGroups& asked) {
    return once(2, asked, [&](std::span<const GpuGroup> groups) -> GroupRate {
        Streams streams;
        streams.kind = StreamKind::reduction;
        trees_at_.assign(topology_.vertex_count(), 0);
        for (const GpuGroup& group : groups) {
            if (add_switch_trees(group, streams)) continue;
            hops_.clear();
            return {};
        }
        return slowest(streams, groups);
    });
}

// None where ways depend on more than leaves, or somebody asks for each.
std::vector<double> GpuNetwork::loads_by_leaf(std::span<const GpuGroup> groups) {
    if (closer_ || cables_used_ || !router_->by_leaf()) return {};
    AllToAllLoads loads(topology_, inside_, *router_, capacity_.size());
    if (!loads.possible()) return {};
    for (const GpuGroup& group : groups) loads.add(group);
    return loads.take([&](std::span<const Usage> route) { note_latency(route); });
}

std::vector<double> GpuNetwork::loads_by_pair(std::span<const GpuGroup> groups) {
    std::vector<double> load(capacity_.size());
    std::vector<Usage> path;
    for (const GpuGroup& group : groups) {
        const float share = 1 / static_cast<float>(group.size() - 1);
        for (const std::int64_t from : group) {
            heed_cancel();
            for (const std::int64_t to : group) {
                if (to == from) continue;
                path.clear();
                connect_by_receiver(from, to, share, path);
                for (const Usage& usage : path) load[usage.link] += usage.share;
            }
        }
    }
    return load;
}

// Keeps no stream's links, which of many thousands would fill the memory: while all keep one pace it
// is the busiest link's, and max-min fairness gives the slowest no more.
GroupRate GpuNetwork::at_one_pace(std::span<const GpuGroup> groups,
                                  const std::vector<double>& load) {
    GroupRate out;
    out.nvlink_left = nvlink_left(groups);
    LinkId busiest = 0;
    const auto pace = [&](LinkId l) { return load[l] > 0 ? capacity_[l] / load[l] : HUGE_VAL; };
    for (LinkId link = 1; link < load.size(); ++link) {
        if (pace(link) < pace(busiest)) busiest = link;
    }
    if (load[busiest] == 0) return out;
    out.bytes_per_s = pace(busiest);
    out.bottleneck = link_name(busiest);
    if (keep_loads_) {
        out.loads.flow_bytes_per_s = pace(busiest);
        for (LinkId link = 0; link < inside_.first(); ++link) {
            if (load[link] == 0 || !tells_load_of(link)) continue;
            out.loads.links.push_back({link, load[link], capacity_[link]});
        }
    }
    take_latencies(out);
    return out;
}

GroupRate GpuNetwork::all_to_all(const GpuGroups& asked) {
    return once(3, asked, [&](std::span<const GpuGroup> groups) -> GroupRate {
        const double pairs = pairs_in(groups);
        if (!keep_loads_) router_->let_one_stand_for_all();
        constexpr double pairs_by_leaf_min = 1e5;  // fewer are quick, each by its own way
        constexpr double pairs_apart_max = 8e6;
        constexpr double pairs_max = 3e8;
        if (pairs > pairs_by_leaf_min) {
            const std::vector<double> load = loads_by_leaf(groups);
            if (!load.empty()) return at_one_pace(groups, load);
        }
        const double most = closer_ ? pairs_apart_max : pairs_max;
        if (pairs > most) {
            throw ScenarioError(
                fmt::format(
                    "an all-to-all of {:.3g} pairs of GPUs: the {} scale takes at most {:.0g}",
                    pairs, closer_ ? "packet" : "flow", most),
                "run.fidelity = \"analytic\", or fewer ranks");
        }
        if (pairs > pairs_apart_max) return at_one_pace(groups, loads_by_pair(groups));
        Streams streams;
        for (const GpuGroup& group : groups) {
            for (const std::int64_t from : group) {
                const std::size_t first = streams.usages.size();
                const float share = 1 / static_cast<float>(group.size() - 1);
                for (const std::int64_t to : group) {
                    if (to != from) connect_by_receiver(from, to, share, streams.usages);
                }
                streams.close(first, 1, hops_);
            }
        }
        return slowest(streams, groups);
    });
}

GroupRate GpuNetwork::send(const GpuGroups& asked) {
    return once(4, asked, [&](std::span<const GpuGroup> groups) -> GroupRate {
        if (!keep_loads_) router_->let_one_stand_for_all();
        Streams streams;
        for (const GpuGroup& group : groups) {
            for (std::size_t k = 0; k < group.size(); ++k) {
                const std::int64_t from = group[k];
                const std::int64_t to = group[(k + 1) % group.size()];
                const std::size_t first = streams.usages.size();
                connect_by_receiver(from, to, 1, streams.usages);
                streams.close(first, 1, hops_);
            }
        }
        return slowest(streams, groups);
    });
}

std::string GpuNetwork::link_name(LinkId link) const {
    if (inside_.has(link)) return inside_.name(link);
    return fmt::format("{} -> {}", topology_.name(topology_.links()[link].from),
                       topology_.name(topology_.links()[link].to));
}

double pat_bytes_per_s(GpuNetwork& network, const GpuGroups& groups) {
    const std::size_t ranks = groups.list().front().size();
    double seconds = 0;  // for a byte of each part
    for (std::size_t distance = 1; distance < ranks; distance *= 2) {
        Fingerprint name;
        name.add_all(groups.name(), distance);
        const GroupRate round =
            network.send({name, [&] { return rounds_of(groups.list(), distance); }});
        // In each rank's binomial tree, the ranks that hand its part on so far.
        const std::size_t parts = (ranks - distance - 1) / (2 * distance) + 1;
        seconds += real(parts) / round.bytes_per_s;
    }
    return real(ranks - 1) / seconds;
}

}  // namespace railyard
