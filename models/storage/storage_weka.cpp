// WEKA: every server holds data and metadata, stripes of d+p span servers, spare servers' worth of space is
// free.

#include <fmt/format.h>

#include <algorithm>

#include "models/storage/spread_store.h"
#include "models/storage/storage_kinds.h"

namespace railyard {

namespace {

// The rules of what may be built, and what would be allowed.
void check(Section& storage, Section& own, std::int64_t servers, const SpreadSpec& spec,
           std::int64_t spares, std::int64_t servers_min, std::int64_t servers_without_spare) {
    const std::int64_t stripe = spec.data + spec.parity;
    if (servers < servers_without_spare) {
        storage.error("servers",
                      fmt::format("WEKA needs {} servers, or {} without a hot spare; found {}",
                                  servers_min, servers_without_spare, servers),
                      fmt::format("storage.servers = {}; or {} with storage.weka.hot_spares = 0 "
                                  "and stripes of at most 4+2",
                                  servers_min, servers_without_spare));
    } else if (servers < servers_min && spares > 0) {
        storage.error(
            "servers",
            fmt::format("{} servers leave no room for a hot spare: WEKA keeps one from {} on",
                        servers, servers_min),
            fmt::format("storage.weka.hot_spares = 0, with stripes of at most {}+2; or "
                        "storage.servers = {}",
                        servers - 2, servers_min));
    } else if (stripe + spares > servers) {
        own.error("data_drives",
                  fmt::format("a stripe of {}+{} and {} hot spares need {} servers, found {}: no "
                              "two blocks of a stripe are on one server",
                              spec.data, spec.parity, spares, stripe + spares, servers),
                  servers - spares - spec.parity >= 3
                      ? fmt::format("at most {}+{}", servers - spares - spec.parity, spec.parity)
                      : "fewer hot spares, parity 2, or more servers");
    }
}

}  // namespace

std::unique_ptr<StorageSystem> build_weka(Section& storage, Section& own, Catalogue& c,
                                          StoreDesign design) {
    SpreadSpec spec;
    spec.servers_spread = spec.stops_whole = true;
    const std::int64_t data_min = c.integer("storage", design.name, "stripe_data_min");
    const std::int64_t data_max = c.integer("storage", design.name, "stripe_data_max");
    const std::vector<double> parities = c.numbers("storage", design.name, "parity");
    spec.parity = static_cast<std::int64_t>(parities[0]);
    std::int64_t spares = c.integer("storage", design.name, "hot_spares");
    own.read("parity", spec.parity, "Servers of a stripe that may be lost: 2 or 4", {Bound::count});
    own.read("hot_spares", spares, "Servers' worth of space that is kept free",
             {Bound::non_negative});
    spec.spares = spares;
    spec.data = std::clamp(design.servers - spares - spec.parity, data_min, data_max);
    own.read("data_drives", spec.data, "Servers of a stripe that hold data: 3 to 16",
             {Bound::count, "as many as servers, spares and parity leave, at most 16"});
    if (own.has("data_drives") && (spec.data < data_min || spec.data > data_max)) {
        own.error("data_drives",
                  fmt::format("expected {} to {}, found {}", data_min, data_max, spec.data));
    } else if (std::ranges::none_of(parities, [&](double each) {
                   return static_cast<std::int64_t>(each) == spec.parity;
               })) {
        own.error("parity", fmt::format("expected 2 or 4, found {}", spec.parity));
    } else if (!own.describing()) {
        check(storage, own, design.servers, spec, spares,
              c.integer("storage", design.name, "min_servers"),
              c.integer("storage", design.name, "min_servers_technical"));
    }
    spec.overhead = c.number("storage", design.name, "filesystem_overhead_fraction");
    spec.metadata_per_server =
        c.rate("storage", design.name, "metadata_rate_per_server").per_second;
    spec.rebuild = c.bandwidth("storage", design.name, "rebuild_bandwidth_per_server");
    own.read("rebuild_bandwidth", spec.rebuild, "What one server rebuilds of lost data per time",
             {Bound::positive, "from the catalogue"});
    read_latencies(c, design);
    design.calls.first_byte = c.time("storage", design.name, "read_latency");
    spec.failover = c.time("storage", design.name, "failover_time");
    return make_spread_store(storage, design, spec);
}

}  // namespace railyard
