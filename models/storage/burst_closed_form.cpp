// A burst where no network is built: the least of its ceilings.

#include <algorithm>
#include <cmath>

#include "models/storage/burst.h"
#include "models/storage/metadata_queue.h"

namespace railyard {

namespace {

struct Ceilings {
    double rank = 1e300;  // one rank's own, bytes/s
    WallShare rank_wall;
    double all = 1e300;  // of all ranks together
    WallShare all_wall;
};

void lower(double& ceiling, WallShare& wall, Bandwidth to, double factor, Wall kind,
           const std::string& where) {
    if (to == unlimited || to.bytes_per_second() * factor >= ceiling) return;
    ceiling = to.bytes_per_second() * factor;
    wall = {kind, where, 0, 0};
}

Ceilings ceilings(const BurstEnds& ends, const BurstStore& store, const BurstLoad& load) {
    const DirectedLimits limits = directed(store.limits, load.direction);
    Ceilings c;
    lower(c.rank, c.rank_wall, load.rank_bandwidth, 1, Wall::serialisation, "");
    if (load.registry) {
        lower(c.all, c.all_wall, *load.registry, 1, Wall::store, "registry");
        return c;
    }
    const double share = 1 / real(load.ranks_per_node);
    lower(c.rank, c.rank_wall, limits.file, real(load.files_per_rank), Wall::files, "");
    lower(c.rank, c.rank_wall, limits.client, share, Wall::client, "the system's client");
    lower(c.rank, c.rank_wall, ends.node_network, share, Wall::client, "the nodes' NICs");
    lower(c.all, c.all_wall, limits.servers.bandwidth, 1, Wall::store, limits.servers.what);
    lower(c.all, c.all_wall, ends.server_network, real(ends.servers - store.servers_down),
          Wall::network, "the servers' NICs");
    return c;
}

}  // namespace

BurstResult burst_closed_form(const BurstEnds& ends, const BurstStore& store,
                              const BurstLoad& load) {
    const DirectedLimits limits = directed(store.limits, load.direction);
    const bool asks = !load.registry && load.operations_per_rank > 0;
    const std::int64_t ranks = ends.nodes * load.ranks_per_node;
    const auto n = real(ranks);
    const MetadataQueue queue(limits.operations_per_s, limits.operation_latency);
    const std::int64_t operations = asks ? load.operations_per_rank : 0;
    const Duration wait = load.registry ? Duration{} : limits.first_byte;
    const Duration first = queue.ready(0, ranks, operations) + wait;
    const Duration last = queue.ready(ranks - 1, ranks, operations) + wait;
    const Ceilings c = ceilings(ends, store, load);
    const auto bytes = real(load.bytes_per_rank.count());

    BurstResult r;
    r.what = load.what;
    r.bytes = load.bytes_per_rank * ranks;
    r.metadata = asks ? queue.ready(ranks - 1, ranks, operations) : Duration{};
    if (c.rank <= 0 || c.all <= 0) {
        r.stuck = "a ceiling is 0";
        r.stall = time_max;
        return r;
    }
    // While ranks come in one after another, the first ones can't use all that there is.
    const double ramp = seconds(last - first) * std::min(1.0, c.all / (n * c.rank));
    const double alone = seconds(last) + bytes / c.rank;
    const double together = seconds(first) + ramp / 2 + n * bytes / c.all;
    const double stall = std::max(alone, together);
    r.stall = from_seconds(std::min(stall, seconds(time_max)));
    r.rank_ends.assign(static_cast<std::size_t>(ranks), r.stall);
    r.bandwidth =
        Bandwidth::bits_per_second(std::llround(real(r.bytes.count()) * 8 / std::max(stall, 1e-9)));
    if (asks) r.operations_per_s = n * real(operations) / seconds(r.metadata);
    const double gate = (seconds(first) + seconds(last)) / 2;
    WallShare wall = alone > together ? c.rank_wall : c.all_wall;
    wall.of_time = 1 - gate / stall;
    wall.of_bytes = 1;
    r.walls = {wall, {Wall::metadata, "", gate / stall, 0}};
    if (wall.of_time < 0.5) std::swap(r.walls[0], r.walls[1]);
    return r;
}

}  // namespace railyard
