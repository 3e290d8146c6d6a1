#include "models/campaign/store_traffic.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <numeric>

#include "sim/check.h"
#include "sim/fingerprint.h"
#include "sim/integers.h"

namespace railyard {

namespace {

BurstLoad load_of(const Scenario& s, const StoreTraffic& traffic, Direction direction) {
    BurstLoad load;
    load.direction = direction;
    load.ranks_per_node = s.node.gpus;
    load.bytes_per_rank = traffic.bytes_per_rank;
    load.files_per_rank = traffic.files_per_rank;
    load.operations_per_rank = traffic.operations_per_rank;
    load.rank_bandwidth = direction == Direction::read ? unlimited : traffic.rank_write;
    return load;
}

void note(const BurstResult& result, Bandwidth& bandwidth, Wall& wall, std::string& limit,
          std::string& no_path) {
    bandwidth = result.bandwidth;
    if (!result.walls.empty()) wall = result.walls[0].wall;
    limit = result.wall_text();
    if (!result.stuck.empty()) no_path = result.stuck;
}

BurstSpec whole_job(const Scenario& s, const ClusterNetwork& network, const Topology& topology,
                    const BurstStore& store) {
    BurstSpec spec{topology, network.flow_routing(), {}, store, s.node.wire_share};
    spec.nodes.resize(static_cast<std::size_t>(s.job.nodes));
    std::iota(spec.nodes.begin(), spec.nodes.end(), 0);
    spec.seed = s.seed;
    return spec;
}

// One rank writes all of a checkpoint that is not sharded.
void leave_to_one_writer(const Scenario& s, BurstSpec& spec, BurstLoad& load) {
    if (load.direction != Direction::write || s.checkpoint_writers.ranks != 1) return;
    spec.nodes.resize(1);
    load.ranks_per_node = 1;
    load.files_per_rank = s.checkpoint_writers.files;
}

// What a job of these nodes moves over the compute network, in one direction.
struct Moved {
    BurstSpec spec;
    BurstLoad load;
};
Moved moved_by(const Scenario& s, const StoreTraffic& traffic, Direction direction,
               const std::vector<NodeIndex>& nodes, const Topology& topology, HashSeed hashes) {
    Moved out{{topology, s.networks[0].flow_routing(), {}, traffic.store, s.node.wire_share},
              load_of(s, traffic, direction)};
    if (hashes) out.spec.routing.hash_seed = *hashes;
    out.spec.seed = s.seed;
    out.spec.nodes.assign(nodes.begin(), nodes.end());
    leave_to_one_writer(s, out.spec, out.load);
    return out;
}

// A job that saves nothing moves so much that no latency counts.
StoreTraffic traffic_to_store(const Scenario& s) {
    StoreTraffic traffic = checkpoint_traffic(s);
    constexpr std::int64_t per_rank = 1'000'000'000;
    if (s.checkpoint_size == Bytes{}) {
        traffic.bytes_per_rank = Bytes::of(per_rank);
        traffic.rank_write = unlimited;
    }
    return traffic;
}

std::array<std::uint64_t, 3> all_that_sets(const Moved& moved) {
    const auto& [spec, load] = moved;
    const DirectedLimits store = directed(spec.store.limits, load.direction);
    Fingerprint asked;
    asked.add_all(load.direction == Direction::read, load.ranks_per_node,
                  load.bytes_per_rank.count(), load.files_per_rank, load.operations_per_rank,
                  load.rank_bandwidth.bits_per_second());
    asked.add_all(store.servers.bandwidth.bits_per_second(), store.client.bits_per_second(),
                  store.file.bits_per_second(), store.operations_per_s, store.operation_latency,
                  store.first_byte, spec.store.stripes, spec.store.servers_down);
    asked.add_all(static_cast<int>(spec.routing.policy), spec.routing.queue_pairs,
                  spec.routing.hash_seed, spec.routing.hash_polarized, spec.payload, spec.seed);
    for (const std::int64_t node : spec.nodes) asked.add(node);
    const auto [shape, speed] = spec.topology.likeness();
    return {shape, speed, asked.value()};
}

// What is tried beside a scenario asks for the same bursts again: all of the process remembers them.
Bandwidth rate_of(const Moved& moved) {
    static std::mutex mutex;
    static std::map<std::array<std::uint64_t, 3>, Bandwidth> known;
    constexpr std::size_t known_max = 1 << 16;
    const auto run = [&] { return run_burst(moved.spec, moved.load).bandwidth; };
    if (moved.spec.topology.spec().kind == "custom") return run();  // names of its own
    const auto key = all_that_sets(moved);
    {
        const std::lock_guard lock(mutex);
        if (const auto found = known.find(key); found != known.end()) return found->second;
    }
    const Bandwidth rate = run();
    const std::lock_guard lock(mutex);
    if (known.size() >= known_max) known.clear();
    known.emplace(key, rate);
    return rate;
}

// Where packets choose, from each NIC all ways up to the highest switch of any.
void note_cables(const Topology& topology, const BurstLinks& used, CablesUsed& out) {
    std::vector<Usage> usages;
    const auto height = [&](LinkId link) {
        return std::max(topology.level(topology.links()[link].from),
                        topology.level(topology.links()[link].to));
    };
    for (const BurstLinks::Link& link : used.links) usages.push_back({link.link, 1});
    out.add(usages);
    const auto highest = std::ranges::max_element(
        usages, {}, [&](const Usage& usage) { return height(usage.link); });
    for (const Usage& usage : usages) {
        const Link& link = topology.links()[usage.link];
        const VertexId low = std::min(link.from, link.to);
        if (topology.level(low) == 0) out.add(low, low, {highest, highest + 1});
    }
}

}  // namespace

Topology with_slow_nics(const Scenario& s, const ClusterNetwork& network) {
    Topology topology = network.topology;
    if (network.name != "compute") return topology;
    for (const PartFault& fault : s.faults) {
        if (fault.part != Part::nic) continue;
        for (const LinkId up : topology.up_links(topology.nic(fault.node, fault.index))) {
            topology.degrade(up, fault.speed);
        }
    }
    return topology;
}

StoreTraffic checkpoint_traffic(const Scenario& s) {
    const std::int64_t ranks = s.job.gpus();
    StoreTraffic traffic;
    traffic.store.limits = s.stores[shared_store].limits;
    traffic.store.stripes = traffic.store.limits.file_servers;
    traffic.bytes_per_rank = Bytes::of(ceil_div(s.checkpoint_size.count(), ranks));
    traffic.files_per_rank = std::max<std::int64_t>(1, s.checkpoint_writers.files / ranks);
    traffic.rank_write = s.checkpoint_writers.serialization;
    return traffic;
}

const ClusterNetwork* storage_network(const Scenario& s) {
    if (s.fidelity == Fidelity::analytic) return nullptr;
    const char* name = s.converged ? "compute" : "storage";
    for (const ClusterNetwork& network : s.networks) {
        if (network.name == name && network.topology.spec().servers > 0) return &network;
    }
    return nullptr;
}

bool shares_network_with_store(const Scenario& s) {
    return s.converged && s.stores[shared_store].limits.over_network &&
           storage_network(s) != nullptr;
}

LinkLoads transfer_loads(const Scenario& s, const TransferSpec& transfer,
                         const std::vector<NodeIndex>& nodes, const Topology& topology,
                         HashSeed hashes) {
    const bool writes = transfer.direction == Direction::write;
    const StoreTraffic traffic = checkpoint_traffic(s);
    const auto [spec, load] = moved_by(s, traffic, transfer.direction, nodes, topology, hashes);
    const BurstLinks used = burst_links(spec, load);
    if (!used.no_path.empty()) throw NoPath(used.no_path, "the store");
    const StoreSupply& supply = s.stores[transfer.store].supply;
    const Bandwidth most = writes ? supply.write : supply.read;
    // Each node has a connection to each server that a file of its is on.
    const std::int64_t stripes = traffic.store.stripes;
    const std::int64_t servers =
        stripes > 0 ? std::min(stripes, topology.spec().servers) : topology.spec().servers;
    const auto connections = real(std::ssize(spec.nodes) * servers);
    LinkLoads out;
    out.flow_bytes_per_s = std::min(transfer.cap, most).bytes_per_second() / connections;
    for (const BurstLinks::Link& link : used.links) {
        out.links.push_back({link.link, link.share * connections, link.capacity_bytes_per_s});
    }
    if (!s.fair_by_job) {
        const auto store = static_cast<LinkId>(topology.links().size() + (writes ? 1 : 0));
        out.links.push_back({store, connections, most.bytes_per_second()});
    }
    return out;
}

StoreReach reach(const Scenario& s, const StoreTraffic& traffic) {
    StoreReach out;
    const ClusterNetwork* network =
        traffic.store.limits.over_network ? storage_network(s) : nullptr;
    const BurstLoad write = load_of(s, traffic, Direction::write);
    const BurstLoad read = load_of(s, traffic, Direction::read);
    if (network == nullptr) {
        const BurstEnds ends{s.job.nodes, unlimited};  // the limits know the nodes' NICs
        note(burst_closed_form(ends, traffic.store, write), out.write, out.write_wall,
             out.write_limit, out.no_path);
        note(burst_closed_form(ends, traffic.store, read), out.read, out.read_wall, out.read_limit,
             out.no_path);
        return out;
    }
    const Topology topology = with_slow_nics(s, *network);
    const BurstSpec spec = whole_job(s, *network, topology, traffic.store);
    note(run_burst(spec, write), out.write, out.write_wall, out.write_limit, out.no_path);
    note(run_burst(spec, read), out.read, out.read_wall, out.read_limit, out.no_path);
    return out;
}

ReachedRates reach_over(const Scenario& s, const std::vector<NodeIndex>& nodes,
                        const Topology& topology, HashSeed hashes) {
    const StoreTraffic traffic = traffic_to_store(s);
    const Moved write = moved_by(s, traffic, Direction::write, nodes, topology, hashes);
    const Moved read = moved_by(s, traffic, Direction::read, nodes, topology, hashes);
    return {rate_of(read), rate_of(write)};
}

std::vector<bool> cables_to_store(const Scenario& s, const std::vector<NodeIndex>& nodes,
                                  const Topology& topology, HashSeed hashes) {
    CablesUsed out(topology, s.networks[0].flow_routing().policy);
    for (const Direction direction : {Direction::write, Direction::read}) {
        const Moved moved = moved_by(s, traffic_to_store(s), direction, nodes, topology, hashes);
        const BurstLinks used = burst_links(moved.spec, moved.load);
        if (!used.no_path.empty()) continue;
        note_cables(topology, used, out);
    }
    return out.take();
}

StoreBursts store_bursts(const Scenario& s, const StoreTraffic& traffic,
                         const RestartStorm& storm) {
    const ClusterNetwork* network = storage_network(s);
    RY_CHECK(network != nullptr);
    const Topology topology = with_slow_nics(s, *network);
    const BurstSpec spec = whole_job(s, *network, topology, traffic.store);
    return {run_burst(spec, load_of(s, traffic, Direction::write)), restart_storm(spec, storm)};
}

}  // namespace railyard
