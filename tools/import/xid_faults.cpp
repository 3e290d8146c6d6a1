#include "tools/import/xid_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/check.h"
#include "tools/program/lists.h"

namespace railyard {

const std::vector<XidCause>& xid_causes() {
    static const std::vector<XidCause> causes = {
        {"gpu_hbm", "reset", {48, 64, 95, 140, 171}},
        {"gpu_hbm_contained", "restart", {94}},
        {"gpu_sram", "reset", {172}},
        {"gpu_gsp", "reset", {119, 120}},
        {"gpu_fell_off_bus", "reset", {79}},
        {"gpu_hw", "reset", {46, 62, 109, 110, 136, 143, 151, 156, 158}},
        {"gpu_support", "replace", {142}},
        // No Xid: DCGM's own field says it. NVIDIA replaces such a GPU.
        {"gpu_row_remap_failure", "replace", {}},
        {"gpu_power_cable", "replace", {54}},
        {"nvlink", "reset", {74, 144, 145, 146, 147, 148, 149, 150, 155}},
        {"application", "", {8,   11,  13,  25,  31,  32,  39,  40,  41,  43,  45,  60,  68,
                             69,  70,  71,  72,  75,  76,  77,  80,  82,  83,  84,  85,  86,
                             88,  89,  96,  97,  98,  99,  100, 101, 102, 103, 104, 105, 126,
                             127, 128, 129, 130, 131, 132, 133, 134, 135, 139}},
        {"bookkeeping",
         "",
         {37, 38, 44, 63, 66, 67, 92, 93, 106, 107, 121, 137, 141, 152, 153, 154, 157, 160, 161}},
    };
    return causes;
}

int xid_of(std::string_view cause) {
    for (const XidCause& known : xid_causes()) {
        if (cause == known.cause && !known.codes.empty()) return known.codes.front();
    }
    return 0;
}

namespace {

constexpr std::int64_t one_fault_s = 300;

}  // namespace

void GpuFaults::xid(GpuReport report, int code) {
    for (const XidCause& cause : xid_causes()) {
        if (!contains(cause.codes, code)) continue;
        if (*cause.remedy == 0) {
            ++ignored_[cause.cause];
        } else {
            seen_.push_back({std::move(report), &cause, fmt::format("Xid {}", code)});
        }
        return;
    }
    ++unknown_[code];
}

void GpuFaults::fault(GpuReport report, std::string_view cause, std::string what) {
    const auto known =
        std::ranges::find(xid_causes(), cause, [](const XidCause& c) { return c.cause; });
    RY_CHECK(known != xid_causes().end());
    seen_.push_back({std::move(report), &*known, std::move(what)});
}

std::vector<SeenCause> GpuFaults::by_cause(std::map<std::string, std::int64_t>& by_gpu) const {
    std::vector<const Seen*> by_time = mapped(seen_, [](const Seen& seen) { return &seen; });
    std::ranges::stable_sort(by_time, {}, [](const Seen* seen) { return seen->report.at_s; });
    std::map<std::pair<std::string, const XidCause*>, std::int64_t> last;  // on each host
    std::vector<SeenCause> out;
    for (const Seen* seen : by_time) {
        const GpuReport& report = seen->report;
        const auto [before, first] = last.try_emplace({report.host, seen->cause}, report.at_s);
        const bool same = !first && report.at_s - before->second <= one_fault_s;
        before->second = report.at_s;
        if (same) continue;
        auto cause = std::ranges::find(out, seen->cause->cause, &SeenCause::name);
        if (cause == out.end()) {
            cause = out.insert(out.end(), SeenCause{});
            cause->name = seen->cause->cause;
            cause->remedy = seen->cause->remedy;
            cause->first = report.where;
        }
        ++cause->events;
        if (!contains(cause->what, seen->what)) {
            cause->what.push_back(seen->what);
        }
        ++by_gpu[fmt::format("{} {}", report.host, report.gpu)];
    }
    return out;
}

void GpuFaults::write(double node_days, ImportedPart& part) {
    part.note("Reports of one cause on one node within {} s of each other are one fault.",
              one_fault_s);
    for (const auto& [name, count] : ignored_) {
        part.note("{} Xids are {}: no failure of the machine.", count, name);
    }
    for (const auto& [code, count] : unknown_) {
        part.note("Xid {} came {} times: the catalogue says nothing of it.", code, count);
    }
    std::map<std::string, std::int64_t> by_gpu;
    std::vector<SeenCause> causes = by_cause(by_gpu);
    for (const auto& [gpu, count] : by_gpu) {
        if (count >= 3) part.note("A lemon? {}: {} faults.", gpu, count);
    }
    if (!causes.empty()) add_causes(std::move(causes), node_days, part);
}

}  // namespace railyard
