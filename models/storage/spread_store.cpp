#include "models/storage/spread_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace railyard {

namespace {

// What is left when servers and drives are gone, as fractions of a healthy store, and what a client's byte
// costs in reads, as a lost strip costs those of all its piece.
struct SpreadParts {
    double servers = 0;
    double drives = 0;
    double reads = 1;
};

SpreadParts spread_parts(const StoreDesign& design, std::int64_t data, const StoreState& state) {
    const auto n = real(design.servers);
    const auto all = real(design.drive_count());
    const double up = std::max(0.0, n - real(state.servers_down));
    const double drives_lost = all > 0 ? real(state.drives_down) / all : 0;
    const double lost = std::min(1.0, 1 - up / n + drives_lost);
    return {up, all * std::max(0.0, up / n - drives_lost), 1 + lost * real(data - 1)};
}

class SpreadStore : public StorageSystem {
  public:
    SpreadStore(const StoreDesign& design, const SpreadSpec& spec) : d_(design), s_(spec) {}

    StoreLimits limits(const StoreState& state) const override {
        const auto [up, drives, reads] = spread_parts(d_, s_.data, state);
        const double written = real(strips()) / real(s_.data);

        StoreLimits out = sound_limits(d_);
        out.read = read_ceilings(d_, {up / reads, drives / reads, up / reads});
        // Each copy or strip comes in over a server's NICs. A server's own rate is counted in what clients
        // send.
        const double comes_in = s_.servers_spread ? 1 + written : written;
        out.write = write_ceilings(d_, {up, drives / written, up / comes_in});
        if (state.rebuilds > 0) {
            const Bandwidth rebuilt = s_.rebuild * up;
            take(out.read, rebuilt * s_.data);
            take(out.write, rebuilt);
        }
        if (s_.file_read.bits_per_second() > 0) out.file_read = s_.file_read;
        if (s_.file_write.bits_per_second() > 0) out.file_write = s_.file_write;
        if (s_.metadata_per_server > 0) out.all_at(s_.metadata_per_server * up);
        if (state.servers_down > s_.parity) {
            out.unreachable = stripes_hit(strips(), d_.servers, s_.parity + 1);
            if (s_.stops_whole) stop(out);
        }
        return out;
    }

    StoreCapacity capacity() const override {
        const std::int64_t spares = s_.spares.value_or(0);
        if (spares == 0 && s_.overhead == 0) {
            const double share = real(s_.data) / real(strips());
            return {d_.raw(), share_of(d_.raw(), share),
                    fmt::format("raw x {}/{}", s_.data, strips())};
        }
        const std::int64_t n = d_.servers;
        const long double net = static_cast<long double>(d_.raw().count()) *
                                static_cast<long double>(s_.data * (n - spares)) /
                                static_cast<long double>(strips() * n) * (1 - s_.overhead);
        return {d_.raw(), Bytes::of(std::llround(net)),
                fmt::format("raw x {}/{} x ({}-{})/{} x {:g}", s_.data, strips(), n, spares, n,
                            1 - s_.overhead)};
    }

    Protection protection() const override {
        Protection p;
        p.servers = d_.servers;
        p.servers_lost_max = s_.parity;
        p.servers_hold_data = true;
        p.groups = 1;
        p.group_drives = d_.drive_count();
        p.stripe_drives = strips();
        p.drives_lost_max = s_.parity;
        p.drive_capacity = d_.drives.capacity;
        if (s_.spares) p.spare_drives = *s_.spares * d_.drives.count;
        p.rebuild = s_.rebuild * d_.servers;
        p.rebuild_reads = real(s_.data);
        p.rebuild_over_all = true;
        p.rebuild_after = s_.rebuild_after;
        p.failover = s_.failover;
        return p;
    }

  private:
    std::int64_t strips() const { return s_.data + s_.parity; }

    StoreDesign d_;
    SpreadSpec s_;
};

}  // namespace

std::unique_ptr<StorageSystem> make_spread_store(Section& storage, const StoreDesign& design,
                                                 const SpreadSpec& spec) {
    warn_of_keys(storage, {"drive_rebuild_bandwidth"},
                 "has no effect: servers rebuild together what is lost, each at a rate of its own");
    return std::make_unique<SpreadStore>(design, spec);
}

}  // namespace railyard
