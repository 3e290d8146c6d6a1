// Object stores that speak S3: objects move in parts, a request for each, so many of them at once. A
// cloud's has no servers to count, but a rate of requests for each prefix, and prices; one on the premises
// has servers.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/storage/spread_store.h"
#include "models/storage/storage_kinds.h"

namespace railyard {

namespace {

// How a client moves an object.
struct ObjectParts {
    Bytes size;
    std::int64_t connections = 1;  // of one node
    Bandwidth stream;              // one request's
    Duration first_byte{};

    // One connection moves part after part, each after its first byte's latency.
    Bandwidth connection() const {
        const double bytes = real(size.count());
        const double time = seconds(first_byte) + bytes / stream.bytes_per_second();
        return Bandwidth::bits_per_second(std::llround(8 * bytes / time));
    }
    Bandwidth client() const { return connection() * connections; }
};

ObjectParts read_parts(Section& own, Catalogue& c, const std::string& name) {
    ObjectParts parts;
    parts.size = c.data("storage", name, "part_size");
    own.read("part_size", parts.size,
             "Bytes of one request: a part of an upload, a range of a read",
             {Bound::positive, "from the catalogue"});
    parts.connections = c.integer("storage", name, "connections_per_client");
    own.read("connections", parts.connections, "Requests that one node has under way",
             {Bound::count, "from the catalogue"});
    parts.stream = c.bandwidth("storage", name, "stream_bandwidth");
    parts.first_byte = c.time("storage", name, "first_byte_latency");
    const Bytes part_min = c.data("storage", "s3", "multipart_min_part");
    if (parts.size < part_min) {
        own.error("part_size", fmt::format("S3 takes parts of {} or more", to_text(part_min)));
    }
    return parts;
}

class S3Store : public StorageSystem {
  public:
    struct Spec {
        ObjectParts parts;
        double puts_per_s = 0;  // of all prefixes
        double gets_per_s = 0;
        StorePrices prices;
    };
    S3Store(const StoreDesign& design, const Spec& spec) : d_(design), s_(spec) {}

    // Nothing of it is ours to lose.
    StoreLimits limits(const StoreState&) const override {
        StoreLimits out;
        out.read = {{"GET requests", requests(s_.gets_per_s)}};
        out.write = {{"PUT requests", requests(s_.puts_per_s)}};
        out.client_read = std::min(d_.client_read, s_.parts.client());
        out.client_write = std::min(d_.client_write, s_.parts.client());
        out.file_read = out.file_write = s_.parts.client();
        out.creates_per_s = out.removes_per_s = s_.puts_per_s;
        out.opens_per_s = out.stats_per_s = s_.gets_per_s;
        out.create_latency = out.first_byte = s_.parts.first_byte;
        return out;
    }
    StoreCapacity capacity() const override {
        return {Bytes::of(INT64_MAX), Bytes::of(INT64_MAX), "no end to it"};
    }
    Protection protection() const override { return {}; }
    StorePrices prices() const override { return s_.prices; }

  private:
    Bandwidth requests(double per_s) const {
        return Bandwidth::bits_per_second(8) * (per_s * real(s_.parts.size.count()));
    }

    StoreDesign d_;
    Spec s_;
};

// An object store on the premises: its pieces are spread over its servers, its clients move parts.
class ObjectStore : public StorageSystem {
  public:
    ObjectStore(std::unique_ptr<StorageSystem> servers, const ObjectParts& parts,
                double egress_price)
        : servers_(std::move(servers)), parts_(parts), egress_price_(egress_price) {}

    StoreLimits limits(const StoreState& state) const override {
        StoreLimits out = servers_->limits(state);
        out.client_read = std::min(out.client_read, parts_.client());
        out.client_write = std::min(out.client_write, parts_.client());
        return out;
    }
    StoreCapacity capacity() const override { return servers_->capacity(); }
    Protection protection() const override { return servers_->protection(); }
    StorePrices prices() const override {
        StorePrices p;
        p.write_part = p.read_part = parts_.size;
        p.per_egress_byte = egress_price_;
        return p;
    }

  private:
    std::unique_ptr<StorageSystem> servers_;
    ObjectParts parts_;
    double egress_price_;  // USD per byte
};

constexpr double bytes_per_gb = 1e9;

// In USD per byte; nothing while data stays where it is.
double read_egress(Section& own, std::optional<double> price) {
    bool egress = false;
    own.read("egress", egress, "What is read leaves the store's network, and is paid for");
    std::optional<double> given;
    own.read("egress_price", given, "USD per GB that leaves",
             {Bound::non_negative, "s3: from the catalogue"});
    if (given) price = given;
    if (egress && !price) {
        own.error("egress", "data leaves, at no known price",
                  fmt::format("give {}; 0 says that it is free", own.path("egress_price")));
    }
    if (!egress && given) {
        own.warning("egress_price",
                    fmt::format("has no effect without {} = true", own.path("egress")));
    }
    return egress && price ? *price / bytes_per_gb : 0;
}

}  // namespace

std::unique_ptr<StorageSystem> build_s3(Section&, Section& own, Catalogue& c, StoreDesign design) {
    const auto& name = design.name;
    S3Store::Spec spec;
    spec.parts = read_parts(own, c, name);
    std::int64_t prefixes = 1;
    own.read("prefixes", prefixes, "Prefixes that the keys are spread over (s3)", {Bound::count});
    spec.puts_per_s = c.rate("storage", name, "put_rate_per_prefix").per_second * real(prefixes);
    spec.gets_per_s = c.rate("storage", name, "get_rate_per_prefix").per_second * real(prefixes);
    spec.prices.write_part = spec.prices.read_part = spec.parts.size;
    spec.prices.per_write_request = c.price("storage", name, "put_price") / 1000;
    spec.prices.per_read_request = c.price("storage", name, "get_price") / 1000;
    spec.prices.per_byte_month = c.price("storage", name, "capacity_price") / bytes_per_gb;
    spec.prices.per_egress_byte = read_egress(own, c.price("storage", name, "egress_price"));
    return std::make_unique<S3Store>(design, spec);
}

std::unique_ptr<StorageSystem> build_object(Section& storage, Section& own, Catalogue& c,
                                            StoreDesign design) {
    const auto& name = design.name;
    const ObjectParts parts = read_parts(own, c, name);
    SpreadSpec spec{.data = c.integer("storage", name, "data_drives"),
                    .parity = c.integer("storage", name, "parity")};
    own.read("data_drives", spec.data, "Drives of a stripe that hold data (object)",
             {Bound::count, "from the catalogue"});
    own.read("parity", spec.parity, "Drives of a stripe that may be lost (object)",
             {Bound::count, "from the catalogue"});
    const double price = read_egress(own, std::nullopt);
    if (spec.data + spec.parity > design.servers && !own.describing()) {
        storage.error(
            "servers",
            fmt::format("stripes of {}+{} on servers of their own need {}, found {}", spec.data,
                        spec.parity, spec.data + spec.parity, design.servers),
            fmt::format("{} = {} or more", storage.path("servers"), spec.data + spec.parity));
    }
    design.calls.all_at(c.rate("storage", name, "request_rate_per_server").per_second *
                        real(design.servers));
    design.calls.create_latency = design.calls.first_byte = parts.first_byte;
    spec.failover = c.time("storage", name, "failover_time");
    spec.rebuild = c.bandwidth("storage", name, "recovery_bandwidth_per_server");
    spec.file_read = spec.file_write = parts.client();
    return std::make_unique<ObjectStore>(make_spread_store(storage, design, spec), parts, price);
}

}  // namespace railyard
