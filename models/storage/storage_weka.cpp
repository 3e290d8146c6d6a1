// WEKA: every server holds data and metadata, stripes of d+p span servers, spare servers' worth of space is
// free.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/storage/spread_store.h"
#include "models/storage/storage_kinds.h"

namespace railyard {

namespace {

class WekaStore : public StorageSystem {
  public:
    struct Spec {
        std::int64_t data = 0;
        std::int64_t parity = 0;
        std::int64_t hot_spares = 0;
        double overhead = 0;        // of the file system, of raw capacity
        double metadata_per_s = 0;  // one server
        Bandwidth rebuild;          // one server's part
        Duration create_latency{};
        Duration open_latency{};
        Duration first_byte{};
        Duration failover{};
    };
    WekaStore(const StoreDesign& design, const Spec& spec) : d_(design), s_(spec) {}

    StoreLimits limits(const StoreState& state) const override;
    StoreCapacity capacity() const override;
    Protection protection() const override;

  private:
    std::int64_t stripe() const { return s_.data + s_.parity; }

    StoreDesign d_;
    Spec s_;
};

StoreLimits WekaStore::limits(const StoreState& state) const {
    // Writes go around what is lost. Of reads, a lost block costs those of all its stripe's data.
    const auto [up, drives, reads] = spread_parts(d_, s_.data, state);
    const double written = static_cast<double>(stripe()) / static_cast<double>(s_.data);

    StoreLimits out = sound_limits(d_);
    out.read = read_ceilings(d_, {up / reads, drives / reads, up / reads});
    // A server takes in what clients send, and its share of the stripes that all servers send around.
    out.write = write_ceilings(d_, {up, drives / written, up / (1 + written)});
    if (state.rebuilds > 0) {
        const Bandwidth rebuilt = s_.rebuild * up;
        take(out.read, rebuilt * s_.data);
        take(out.write, rebuilt);
    }
    out.creates_per_s = out.opens_per_s = out.stats_per_s = out.removes_per_s =
        s_.metadata_per_s * up;
    out.create_latency = s_.create_latency;
    out.open_latency = s_.open_latency;
    out.first_byte = s_.first_byte;
    if (state.servers_down > s_.parity) {
        stop(out);
    }
    return out;
}

StoreCapacity WekaStore::capacity() const {
    const std::int64_t n = d_.servers;
    const long double net = static_cast<long double>(d_.raw().count()) *
                            static_cast<long double>(s_.data * (n - s_.hot_spares)) /
                            static_cast<long double>(stripe() * n) * (1 - s_.overhead);
    return {d_.raw(), Bytes::of(std::llround(net)),
            fmt::format("raw x {}/{} x ({}-{})/{} x {:g}", s_.data, stripe(), n, s_.hot_spares, n,
                        1 - s_.overhead)};
}

Protection WekaStore::protection() const {
    Protection p;
    p.servers = d_.servers;
    p.servers_lost_max = s_.parity;
    p.servers_hold_data = true;
    p.groups = 1;
    p.group_drives = d_.drive_count();
    p.stripe_drives = stripe();
    p.drives_lost_max = s_.parity;
    p.drive_capacity = d_.drives.capacity;
    p.spare_drives = s_.hot_spares * d_.drives.count;
    p.rebuild = s_.rebuild * d_.servers;
    p.rebuild_reads = static_cast<double>(s_.data);
    p.rebuild_over_all = true;
    p.failover = s_.failover;
    return p;
}

// The rules of what may be built, and what would be allowed.
void check(Section& storage, Section& own, std::int64_t servers, const WekaStore::Spec& spec,
           std::int64_t servers_min, std::int64_t servers_without_spare) {
    const std::int64_t stripe = spec.data + spec.parity;
    if (servers < servers_without_spare) {
        storage.error("servers",
                      fmt::format("WEKA needs {} servers, or {} without a hot spare; found {}",
                                  servers_min, servers_without_spare, servers),
                      fmt::format("storage.servers = {}; or {} with storage.weka.hot_spares = 0 "
                                  "and stripes of at most 4+2",
                                  servers_min, servers_without_spare));
    } else if (servers < servers_min && spec.hot_spares > 0) {
        storage.error(
            "servers",
            fmt::format("{} servers leave no room for a hot spare: WEKA keeps one from {} on",
                        servers, servers_min),
            fmt::format("storage.weka.hot_spares = 0, with stripes of at most {}+2; or "
                        "storage.servers = {}",
                        servers - 2, servers_min));
    } else if (stripe + spec.hot_spares > servers) {
        own.error(
            "data_drives",
            fmt::format("a stripe of {}+{} and {} hot spares need {} servers, found {}: no two "
                        "blocks of a stripe are on one server",
                        spec.data, spec.parity, spec.hot_spares, stripe + spec.hot_spares, servers),
            servers - spec.hot_spares - spec.parity >= 3
                ? fmt::format("at most {}+{}", servers - spec.hot_spares - spec.parity, spec.parity)
                : "fewer hot spares, parity 2, or more servers");
    }
}

}  // namespace

std::unique_ptr<StorageSystem> build_weka(Section& storage, Section& own, Catalogue& c,
                                          const StoreDesign& design) {
    WekaStore::Spec spec;
    const std::int64_t data_min = c.integer("storage", design.name, "stripe_data_min");
    const std::int64_t data_max = c.integer("storage", design.name, "stripe_data_max");
    const std::vector<double> parities = c.numbers("storage", design.name, "parity");
    spec.parity = static_cast<std::int64_t>(parities[0]);
    spec.hot_spares = c.integer("storage", design.name, "hot_spares");
    own.read("parity", spec.parity, "Servers of a stripe that may be lost: 2 or 4",
             {.bound = Bound::count});
    own.read("hot_spares", spec.hot_spares, "Servers' worth of space that is kept free",
             {.bound = Bound::non_negative});
    spec.data = std::clamp(design.servers - spec.hot_spares - spec.parity, data_min, data_max);
    own.read("data_drives", spec.data, "Servers of a stripe that hold data: 3 to 16",
             {.bound = Bound::count,
              .otherwise = "as many as servers, spares and parity leave, at most 16"});
    if (own.has("data_drives") && (spec.data < data_min || spec.data > data_max)) {
        own.error("data_drives",
                  fmt::format("expected {} to {}, found {}", data_min, data_max, spec.data));
    } else if (std::none_of(parities.begin(), parities.end(), [&](double each) {
                   return static_cast<std::int64_t>(each) == spec.parity;
               })) {
        own.error("parity", fmt::format("expected 2 or 4, found {}", spec.parity));
    } else if (!own.describing()) {
        check(storage, own, design.servers, spec, c.integer("storage", design.name, "min_servers"),
              c.integer("storage", design.name, "min_servers_technical"));
    }
    spec.overhead = c.number("storage", design.name, "filesystem_overhead_fraction");
    spec.metadata_per_s = c.rate("storage", design.name, "metadata_rate_per_server").per_second;
    spec.rebuild = c.bandwidth("storage", design.name, "rebuild_bandwidth_per_server");
    own.read("rebuild_bandwidth", spec.rebuild, "What one server rebuilds of lost data per time",
             {.bound = Bound::positive, .otherwise = "from the catalogue"});
    spec.create_latency = c.time("storage", design.name, "create_latency");
    spec.open_latency = c.time("storage", design.name, "open_latency");
    spec.first_byte = c.time("storage", design.name, "read_latency");
    spec.failover = c.time("storage", design.name, "failover_time");
    return std::make_unique<WekaStore>(design, spec);
}

}  // namespace railyard
