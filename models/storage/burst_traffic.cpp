#include "models/storage/burst_traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "models/storage/metadata_queue.h"
#include "sim/check.h"
#include "sim/fingerprint.h"

namespace railyard {

namespace {

constexpr std::int64_t waves_max = 64;
// Files of one rank for each server that are put there one by one, by their hash. Of more than that the
// luck is a few per cent, and the rest is spread evenly.
constexpr std::int64_t hashed_files_max = 1000;

std::size_t index(Direction direction) {
    return static_cast<std::size_t>(direction);
}

double bytes_per_s(Bandwidth b) {
    return b == unlimited ? 1e300 : b.bytes_per_second();
}

// Ranks that begin together: whole nodes where there are many, a part of one where there are few.
std::int64_t ranks_per_wave(std::int64_t ranks, std::int64_t ranks_per_node) {
    const std::int64_t least = (ranks + waves_max - 1) / waves_max;
    if (least < ranks_per_node) return least;
    return (least + ranks_per_node - 1) / ranks_per_node * ranks_per_node;
}

}  // namespace

BurstTraffic::BurstTraffic(const BurstSpec& spec, const std::vector<BurstLoad>& loads)
    : spec_(spec),
      topology_(spec.topology),
      servers_(spec.topology.spec().servers - spec.store.servers_down),
      spread_over_all_(spec.neighbours.empty() &&
                       (spec.store.stripes == 0 || spec.store.stripes >= servers_)),
      capacities_(railyard::capacities(spec.topology)),
      router_(spec.topology, spec.routing) {
    RY_CHECK(servers_ > 0);
    for (double& capacity : capacities_) capacity *= spec.payload;
    for (const Direction direction : {Direction::read, Direction::write}) add_store(direction);
    for (std::size_t i = 0; i < loads.size(); ++i) {
        add_load(static_cast<std::uint32_t>(i), loads[i]);
    }
    for (const NeighbourFlow& flow : spec.neighbours) add_neighbour(flow);
}

Wall BurstTraffic::wall(LinkId link) const {
    if (ceiling(link)) return limits_[link - topology_.links().size()].wall;
    const Link& l = topology_.links()[link];
    const VertexId low = std::min(l.from, l.to);
    return low < topology_.server_nic(0, 0) ? Wall::client : Wall::network;
}

std::string BurstTraffic::where(LinkId link) const {
    if (ceiling(link)) return limits_[link - topology_.links().size()].where;
    const Link& l = topology_.links()[link];
    return fmt::format("{} to {}", topology_.name(l.from), topology_.name(l.to));
}

// ---- ceilings ----

LinkId BurstTraffic::add_ceilings(Bandwidth bandwidth, std::size_t count, const Limit& limit) {
    const auto first = static_cast<LinkId>(capacities_.size());
    capacities_.resize(capacities_.size() + count, bytes_per_s(bandwidth));
    limits_.resize(limits_.size() + count, limit);
    return first;
}

void BurstTraffic::add_store(Direction direction) {
    const DirectedLimits limits = directed(spec_.store.limits, direction);
    StoreCeilings& store = store_[index(direction)];
    const std::size_t count = spread_over_all_ ? 1 : static_cast<std::size_t>(servers_);
    store.servers =
        add_ceilings(limits.servers.bandwidth, count, {Wall::store, limits.servers.what});
    for (std::size_t i = 0; i < count; ++i) capacities_[store.servers + i] /= real(count);
    store.client_bounded = limits.client < unlimited;
    if (store.client_bounded) {
        store.clients =
            add_ceilings(limits.client, spec_.nodes.size(), {Wall::client, "the system's client"});
    }
}

LinkId BurstTraffic::server_ceiling(Direction direction, std::int64_t server) const {
    return store_[index(direction)].servers + (spread_over_all_ ? 0 : static_cast<LinkId>(server));
}

// ---- paths ----

std::uint32_t BurstTraffic::end_path() {
    for (const LinkId link : parted_) {
        usages_.push_back({link, static_cast<float>(part_[link])});
        part_[link] = 0;
    }
    latency_.push_back(std::chrono::ceil<Duration>(way_));
    way_links_ = 0;
    way_ = {};
    parted_.clear();
    first_usage_.push_back(usages_.size());
    return static_cast<std::uint32_t>(latency_.size() - 1);
}

// By the NICs that are asked for, or the next ones that are joined: rails may not meet.
void BurstTraffic::add_connection(Direction direction, std::int64_t node, std::int64_t nic,
                                  std::int64_t server, std::int64_t server_nic, float share) {
    const std::int64_t nics = topology_.nics_per_node();
    const std::int64_t theirs = topology_.spec().nics_per_server;
    route_.clear();
    bool found = false;
    for (std::int64_t i = 0; !found && i < nics * theirs; ++i) {
        VertexId from = topology_.nic(node, (nic + i % nics) % nics);
        VertexId to = topology_.server_nic(server, (server_nic + i / nics) % theirs);
        if (direction == Direction::read) std::swap(from, to);
        found = route(from, to);
    }
    if (!found && no_path_.empty()) {
        no_path_ = fmt::format("{} and {}", topology_.name(topology_.nic(node, nic)),
                               topology_.name(topology_.server_nic(server, server_nic)));
    }
    add_route(share);
}

// What is sprayed goes the same ways between all NICs of two leaves, but for their own cables.
bool BurstTraffic::route(VertexId from, VertexId to) {
    const Routing policy = spec_.routing.policy;
    const bool sprays =
        policy == Routing::spray || policy == Routing::random_spray || policy == Routing::entropy;
    const auto ups = topology_.up_links(from);
    const auto above = topology_.up_links(to);
    if (!sprays || from == to || ups.size() != 1 || above.size() != 1) {
        return router_.route(from, to, 0, route_);
    }
    const LinkId first = ups[0];
    const LinkId last = reverse_link(above[0]);
    const auto& links = topology_.links();
    const std::pair leaves(links[first].to, links[last].from);
    const auto at = [this](LinkId link) {
        return std::ranges::lower_bound(route_, link, {}, &Usage::link);
    };
    if (const auto known = sprayed_.find(leaves); known != sprayed_.end()) {
        if (links[first].bytes_per_s <= 0 || links[last].bytes_per_s <= 0) return false;
        route_ = known->second.between;
        route_.insert(at(first), {first, 1});
        route_.insert(at(last), {last, known->second.last});
        return true;
    }
    if (!router_.route(from, to, 0, route_)) return false;
    Sprayed& sprayed = sprayed_[leaves];
    sprayed.last = at(last)->share;
    std::ranges::copy_if(route_, std::back_inserter(sprayed.between), [&](const Usage& usage) {
        return usage.link != first && usage.link != last;
    });
    return true;
}

void BurstTraffic::add_route(float share) {
    if (route_.size() > way_links_) {
        way_links_ = route_.size();
        way_ = router_.latency(route_);
    }
    for (const Usage& u : route_) add_part(u.link, double{u.share} * double{share});
}

void BurstTraffic::add_part(LinkId link, double share) {
    if (part_[link] == 0) parted_.push_back(link);
    part_[link] += share;
}

// Stripe after stripe of a file, and NIC after NIC of its node, each side in equal parts: where a
// stripe's part and a NIC's overlap there is a connection.
std::uint32_t BurstTraffic::striped_path(Direction direction, std::uint32_t node,
                                         std::int64_t first_server, std::int64_t stripes) {
    const std::int64_t nics = topology_.nics_per_node();
    const double whole = real(stripes * nics);
    part_.resize(capacities_.size());
    for (std::int64_t stripe = 0, nic = 0, at = 0; at < stripes * nics;) {
        const std::int64_t end = std::min((stripe + 1) * nics, (nic + 1) * stripes);
        const std::int64_t server = (first_server + stripe) % servers_;
        const double share = real(end - at) / whole;
        add_connection(direction, spec_.nodes[node], nic, server,
                       (node + stripe + nic) % topology_.spec().nics_per_server,
                       static_cast<float>(share));
        add_part(server_ceiling(direction, server), share);
        at = end;
        if (at == (stripe + 1) * nics) ++stripe;
        if (at == (nic + 1) * stripes) ++nic;
    }
    const StoreCeilings& store = store_[index(direction)];
    if (store.client_bounded) add_part(store.clients + node, 1);
    return end_path();
}

// ---- streams ----

// When each rank may move its data.
std::vector<Duration> BurstTraffic::ready_times(const BurstLoad& load) {
    const auto ranks = std::ssize(spec_.nodes) * load.ranks_per_node;
    const DirectedLimits limits = directed(spec_.store.limits, load.direction);
    const bool asks = !load.registry && load.operations_per_rank > 0;
    const MetadataQueue queue(limits.operations_per_s, limits.operation_latency);
    std::vector<Duration> ready(static_cast<std::size_t>(ranks));
    if (asks && spec_.file_by_file) {
        ready = queue.one_by_one(ranks, load.operations_per_rank);
    } else if (asks) {
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
            ready[rank] = queue.ready(rank, ranks, load.operations_per_rank);
        }
    }
    if (asks) {
        for (Duration& time : ready) time += queue_free_;
        queue_free_ = ready.back();
    }
    operations_end_.push_back(asks ? ready.back() : Duration{});
    return ready;
}

void BurstTraffic::add_load(std::uint32_t number, const BurstLoad& load) {
    const std::vector<Duration> ready = ready_times(load);
    const std::int64_t together = ranks_per_wave(std::ssize(ready), load.ranks_per_node);
    const auto files = real(load.files_per_rank);
    const DirectedLimits limits = directed(spec_.store.limits, load.direction);
    BurstStream stream;
    stream.load = number;
    stream.bytes = real(load.bytes_per_rank.count()) / files;
    stream.cap = bytes_per_s(load.rank_bandwidth) / files;
    stream.cap_wall = Wall::serialisation;
    if (!load.registry && bytes_per_s(limits.file) < stream.cap) {
        stream.cap = bytes_per_s(limits.file);
        stream.cap_wall = Wall::files;
    }
    const Duration first_byte = load.registry ? Duration{} : limits.first_byte;
    expect_paths(load);
    LinkId registry = 0;
    if (load.registry) registry = add_ceilings(*load.registry, 1, {Wall::store, "registry"});
    for (std::uint32_t node = 0; node < spec_.nodes.size(); ++node) {
        const std::int64_t first = node * load.ranks_per_node;
        for (std::int64_t rank = first; rank < first + load.ranks_per_node;) {
            const std::int64_t wave_end = (rank / together + 1) * together;
            const std::int64_t end = std::min(wave_end, first + load.ranks_per_node);
            const std::int64_t last = std::min(wave_end, std::ssize(ready)) - 1;
            stream.first_rank = static_cast<std::uint32_t>(rank);
            stream.ranks = static_cast<std::uint32_t>(end - rank);
            stream.start = ready[last] + first_byte;
            if (load.registry) {
                part_.resize(capacities_.size());
                add_part(registry, 1);
                stream.path = end_path();
                stream.files = real(end - rank) * files;
                streams_.push_back(stream);
            } else {
                add_node_files(stream, load, node);
            }
            rank = end;
        }
    }
}

// Room that is not used costs nothing; to move what is there does.
void BurstTraffic::expect_paths(const BurstLoad& load) {
    const std::int64_t nodes = std::ssize(spec_.nodes);
    const std::int64_t stripes = spec_.store.stripes;
    const bool all = stripes == 0 || stripes >= servers_;
    const bool one = all || load.one_file || load.registry;
    const std::int64_t paths =
        one ? nodes : nodes * load.ranks_per_node * std::min(load.files_per_rank, servers_);
    const std::int64_t links = 2 * topology_.levels() + 1;  // of a route; and the server's ceiling
    const std::int64_t routes =
        load.registry ? 1 : (all ? servers_ : stripes) + topology_.nics_per_node() - 1;
    usages_.reserve(usages_.size() + static_cast<std::size_t>(paths * routes * links));
    streams_.reserve(streams_.size() + static_cast<std::size_t>(paths));
}

void BurstTraffic::add_node_files(BurstStream stream, const BurstLoad& load, std::uint32_t node) {
    const std::int64_t stripes = spec_.store.stripes;
    const bool all = stripes == 0 || stripes >= servers_;
    const auto server_of = [&](std::uint64_t file) {
        const std::uint64_t hash = mix_bits(spec_.seed ^ mix_bits(stream.load + 1));
        return static_cast<std::int64_t>(mix_bits(hash ^ mix_bits(file + 1)) %
                                         static_cast<std::uint64_t>(servers_));
    };
    if (all || load.one_file) {
        // The node's other streams of this load go the same way.
        const bool known = !streams_.empty() && streams_.back().load == stream.load &&
                           streams_.back().first_rank / load.ranks_per_node == node;
        stream.path = known ? streams_.back().path
                            : striped_path(load.direction, node, all ? 0 : server_of(0),
                                           all ? servers_ : stripes);
        stream.files = real(stream.ranks * load.files_per_rank);
        streams_.push_back(stream);
        return;
    }
    const std::uint32_t end = stream.first_rank + stream.ranks;
    stream.ranks = 1;
    stream.files = 1;
    if (load.files_per_rank > servers_) {
        // Those that begin on one server go the same way at the same pace: one stream for all of them.
        std::vector<std::int64_t> beginning(static_cast<std::size_t>(servers_));
        for (; stream.first_rank < end; ++stream.first_rank) {
            const std::int64_t even =
                std::max<std::int64_t>(0, load.files_per_rank / servers_ - hashed_files_max);
            std::fill(beginning.begin(), beginning.end(), even);
            for (std::int64_t f = 0; f < load.files_per_rank - even * servers_; ++f) {
                const std::int64_t file = stream.first_rank * load.files_per_rank + f;
                ++beginning[server_of(static_cast<std::uint64_t>(file))];
            }
            for (std::int64_t server = 0; server < servers_; ++server) {
                const std::int64_t files = beginning[server];
                if (files == 0) continue;
                stream.files = real(files);
                stream.path = striped_path(load.direction, node, server, stripes);
                streams_.push_back(stream);
            }
        }
        return;
    }
    for (; stream.first_rank < end; ++stream.first_rank) {
        for (std::int64_t f = 0; f < load.files_per_rank; ++f) {
            const std::int64_t file = stream.first_rank * load.files_per_rank + f;
            stream.path = striped_path(load.direction, node,
                                       server_of(static_cast<std::uint64_t>(file)), stripes);
            streams_.push_back(stream);
        }
    }
}

void BurstTraffic::add_neighbour(const NeighbourFlow& flow) {
    route_.clear();
    if (!route(flow.from, flow.to)) {
        if (no_path_.empty()) {
            no_path_ = fmt::format("{} and {}", topology_.name(flow.from), topology_.name(flow.to));
        }
        return;
    }
    part_.resize(capacities_.size());
    add_route(1);
    const VertexId first = topology_.server_nic(0, 0);
    const auto server_at = [&](VertexId nic) {
        return (nic - first) / topology_.spec().nics_per_server;
    };
    if (flow.from >= first && server_at(flow.from) < servers_) {
        add_part(server_ceiling(Direction::read, server_at(flow.from)), 1);
    }
    if (flow.to >= first && server_at(flow.to) < servers_) {
        add_part(server_ceiling(Direction::write, server_at(flow.to)), 1);
    }
    BurstStream stream;
    stream.load = static_cast<std::uint32_t>(loads());
    stream.path = end_path();
    stream.files = 1;
    stream.bytes = 1e300;
    stream.cap = bytes_per_s(flow.cap);
    streams_.push_back(stream);
}

}  // namespace railyard
