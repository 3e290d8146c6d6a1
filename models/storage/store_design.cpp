#include "models/storage/store_design.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard {

namespace {

// Server: its own rate. Drive: that of one of its drives.
std::vector<Ceiling> ceilings(const StoreDesign& design, const std::optional<Bandwidth>& server,
                              Bandwidth drive, const Parts& parts) {
    std::vector<Ceiling> out;
    if (server) out.push_back({"servers", *server * parts.servers});
    if (design.nics_bound || !server) {
        out.push_back({"server NICs", design.server_nics * parts.nics});
    }
    if (design.drives.count > 0 && (design.drives.bound || !server)) {
        out.push_back({"drives", drive * parts.drives});
    }
    return out;
}

}  // namespace

const Ceiling& least(const std::vector<Ceiling>& ceilings) {
    RY_CHECK(!ceilings.empty());
    return *std::ranges::min_element(
        ceilings, [](const Ceiling& a, const Ceiling& b) { return a.bandwidth < b.bandwidth; });
}

Parts all_parts(const StoreDesign& design) {
    const auto servers = real(design.servers);
    return {servers, real(design.drive_count()), servers};
}

std::vector<Ceiling> read_ceilings(const StoreDesign& design, const Parts& parts) {
    return ceilings(design, design.server_read, design.drives.read, parts);
}

std::vector<Ceiling> write_ceilings(const StoreDesign& design, const Parts& parts) {
    return ceilings(design, design.server_write, design.drives.write, parts);
}

void take(std::vector<Ceiling>& ceilings, Bandwidth taken) {
    for (Ceiling& each : ceilings) {
        const std::int64_t left = each.bandwidth.bits_per_second() - taken.bits_per_second();
        each.bandwidth = Bandwidth::bits_per_second(std::max<std::int64_t>(0, left));
    }
}

void stop(StoreLimits& limits) {
    for (auto* ceilings : {&limits.read, &limits.write}) {
        for (Ceiling& each : *ceilings) each.bandwidth = Bandwidth();
    }
    limits.unreachable = 1;
}

StoreLimits sound_limits(const StoreDesign& design) {
    StoreLimits out;
    static_cast<StoreCalls&>(out) = design.calls;
    out.read = read_ceilings(design, all_parts(design));
    out.write = write_ceilings(design, all_parts(design));
    out.client_read = design.client_read;
    out.client_write = design.client_write;
    out.file_read = out.file_write = Bandwidth::bits_per_second(INT64_MAX);
    return out;
}

void read_latencies(Catalogue& c, StoreDesign& design) {
    design.calls.create_latency = c.time("storage", design.name, "create_latency");
    design.calls.open_latency = c.time("storage", design.name, "open_latency");
}

Bytes share_of(Bytes bytes, double factor) {
    return Bytes::of(static_cast<std::int64_t>(static_cast<long double>(bytes.count()) * factor));
}

double stripes_hit(std::int64_t width, std::int64_t drives, std::int64_t lost) {
    double share = 1;
    for (std::int64_t i = 0; i < lost; ++i) {
        if (i >= width) return 0;
        share *= real(width - i) / real(std::max<std::int64_t>(1, drives - i));
    }
    return std::min(1.0, share);
}

}  // namespace railyard
