#include "models/collective/all_to_all_loads.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/cancel.h"
#include "sim/check.h"

namespace railyard {

namespace {

constexpr std::size_t nic_classes_max = 1 << 13;  // their table has half a gigabyte

}  // namespace

AllToAllLoads::AllToAllLoads(const Topology& topology, const NodeLinks& inside, Router& router,
                             std::size_t links)
    : topology_(topology), inside_(inside), router_(router), load_(links) {
    RY_CHECK(router.by_leaf());
    find_classes();
    if (classes_.size() > nic_classes_max) classes_.clear();
    between_.resize(classes_.size() * classes_.size());
    senders_.resize(classes_.size());
    receivers_.resize(classes_.size());
    neighbours_.resize(classes_.size());
    flows_.resize(class_of_.size());
}

void AllToAllLoads::find_classes() {
    using Port = std::tuple<VertexId, double, double, Picoseconds>;
    std::map<std::vector<Port>, std::uint32_t> known;
    std::vector<Port> ports;
    class_of_.resize(static_cast<std::size_t>(topology_.nodes() * topology_.nics_per_node()));
    for (VertexId nic = 0; nic < class_of_.size(); ++nic) {
        ports.clear();
        for (const LinkId up : topology_.up_links(nic)) {
            const Link& link = topology_.links()[up];
            const double back = topology_.links()[reverse_link(up)].bytes_per_s;
            ports.emplace_back(link.to, link.bytes_per_s, back, link.latency);
        }
        const auto [at, is_new] =
            known.try_emplace(ports, static_cast<std::uint32_t>(classes_.size()));
        if (is_new) classes_.emplace_back();
        NicClass& its = classes_[at->second];
        if (its.nics.size() < 2) its.nics.push_back(nic);
        class_of_[nic] = at->second;
    }
}

std::vector<AllToAllLoads::Part> AllToAllLoads::parts_of(std::span<const std::int64_t> gpus) const {
    std::vector<std::int64_t> sorted(gpus.begin(), gpus.end());
    std::ranges::sort(sorted);
    const std::int64_t nics = inside_.nics_per_gpu();
    std::vector<Part> parts;
    for (const std::int64_t gpu : sorted) {
        const std::int64_t node = inside_.node_of(gpu);
        if (parts.empty() || parts.back().node != node) {
            parts.push_back({.node = node});
            parts.back().to_rail.resize(static_cast<std::size_t>(topology_.nics_per_node()));
        }
        Part& part = parts.back();
        part.gpus.push_back(gpu);
        for (std::int64_t i = 0; i < nics; ++i) ++part.to_rail[inside_.nearest_nic(gpu) + i];
    }
    return parts;
}

void AllToAllLoads::use(std::vector<Usage>& usages, double times) {
    for (const Usage& usage : usages) load_[usage.link] += usage.share * times;
    usages.clear();
}

void AllToAllLoads::add(std::span<const std::int64_t> gpus) {
    heed_cancel();
    const auto ranks = real(gpus.size());
    const std::vector<Part> parts = parts_of(gpus);
    std::vector<double> all_to_rail(static_cast<std::size_t>(topology_.nics_per_node()));
    for (const Part& part : parts) {
        for (std::size_t rail = 0; rail < all_to_rail.size(); ++rail) {
            all_to_rail[rail] += part.to_rail[rail];
        }
    }
    for (const Part& part : parts) add_inside(part, all_to_rail, ranks);
    for (std::size_t rail = 0; rail < all_to_rail.size(); ++rail) {
        if (all_to_rail[rail] > 0) add_between(parts, static_cast<std::int64_t>(rail), ranks);
    }
}

// What its ranks send and receive, up to its NICs.
void AllToAllLoads::add_inside(const Part& part, std::span<const double> all_to_rail,
                               double ranks) {
    const auto here = real(part.gpus.size());
    const std::int64_t nics = inside_.nics_per_gpu();
    const double each = 1 / (ranks - 1) / real(nics);
    for (std::size_t r = 0; r < all_to_rail.size(); ++r) {
        const auto rail = static_cast<std::int64_t>(r);
        Flows& flows = flows_[topology_.nic(part.node, rail)];
        const double sent = (all_to_rail[r] - part.to_rail[r]) * each;  // by each rank
        if (sent > 0) {
            flows.out += here * sent;
            for (const std::int64_t gpu : part.gpus) {
                inside_.to_nic(inside_.next_to(gpu, rail), rail, true, 1, path_);
                use(path_, sent);
            }
        }
        flows.in += part.to_rail[r] * (ranks - here) * each;
    }
    for (const std::int64_t gpu : part.gpus) {
        for (std::int64_t i = 0; i < nics; ++i) {
            const std::int64_t rail = inside_.nearest_nic(gpu) + i;
            inside_.to_nic(inside_.next_to(gpu, rail), rail, false, 1, path_);
            use(path_, (ranks - here) * each);
        }
        for (const std::int64_t to : part.gpus) {
            if (to == gpu) continue;
            inside_.between(gpu, to, 1, path_);
            use(path_, 1 / (ranks - 1));
        }
    }
}

// Over NICs of one rail, all but what stays in a node.
void AllToAllLoads::add_between(std::span<const Part> parts, std::int64_t rail, double ranks) {
    met_.clear();
    for (const Part& part : parts) {
        const std::uint32_t its = class_of_[topology_.nic(part.node, rail)];
        const auto here = real(part.gpus.size());
        const double to_rail = part.to_rail[rail];
        if (senders_[its] == 0) met_.push_back(its);
        senders_[its] += here;
        receivers_[its] += to_rail;
        neighbours_[its] += here * to_rail;
    }
    const double each = 1 / (ranks - 1) / real(inside_.nics_per_gpu());
    for (const std::uint32_t to : met_) {
        for (const std::uint32_t from : met_) {
            const double inside = from == to ? neighbours_[to] : 0;
            between_[to * classes_.size() + from] +=
                (senders_[from] * receivers_[to] - inside) * each;
        }
    }
    for (const std::uint32_t its : met_) senders_[its] = receivers_[its] = neighbours_[its] = 0;
}

// One for all pairs of NICs. False: its ports have another share than in a route before.
bool AllToAllLoads::route(std::uint32_t from, std::uint32_t to, const Show& show) {
    const VertexId a = classes_[from].nics.front();
    const VertexId b = classes_[to].nics[from == to ? 1 : 0];
    if (!router_.route(a, b, 0, path_)) throw NoPath(topology_.name(a), topology_.name(b));
    show(path_);
    const auto up = topology_.up_links(a);
    const auto down = topology_.up_links(b);
    std::vector<double> out(up.size());
    std::vector<double> in(down.size());
    const double bytes = between_[to * classes_.size() + from];
    for (const Usage& usage : path_) {
        const Link& link = topology_.links()[usage.link];
        if (link.from == a) {
            out[std::ranges::find(up, usage.link) - up.begin()] += double{usage.share};
        } else if (link.to == b) {
            in[std::ranges::find(down, reverse_link(usage.link)) - down.begin()] +=
                double{usage.share};
        } else {
            load_[usage.link] += usage.share * bytes;
        }
    }
    path_.clear();
    if (classes_[from].out.empty()) classes_[from].out = out;
    if (classes_[to].in.empty()) classes_[to].in = in;
    return classes_[from].out == out && classes_[to].in == in;
}

std::vector<double> AllToAllLoads::take(const Show& show) {
    const auto classes = static_cast<std::uint32_t>(classes_.size());
    for (std::uint32_t to = 0; to < classes; ++to) {
        heed_cancel();
        for (std::uint32_t from = 0; from < classes; ++from) {
            if (between_[std::size_t{to} * classes + from] == 0) continue;
            if (!route(from, to, show)) return {};
        }
    }
    for (VertexId nic = 0; nic < flows_.size(); ++nic) {
        const NicClass& its = classes_[class_of_[nic]];
        const auto ports = topology_.up_links(nic);
        for (std::size_t p = 0; p < ports.size(); ++p) {
            if (flows_[nic].out > 0) load_[ports[p]] += flows_[nic].out * its.out[p];
            if (flows_[nic].in > 0) load_[reverse_link(ports[p])] += flows_[nic].in * its.in[p];
        }
    }
    return std::move(load_);
}

}  // namespace railyard
