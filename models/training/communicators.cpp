#include "models/training/communicators.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/check.h"

namespace railyard {

void Communicators::run_on(GpuNetwork network, std::vector<std::int64_t> nodes) {
    network_.emplace(std::move(network));
    nodes_ = std::move(nodes);
    place_ = {};
    for (const std::int64_t node : nodes_) place_.add(node);
    known_.clear();
}

GpuGroups::List Communicators::groups(std::int64_t stride, std::int64_t ranks) const {
    const auto all = static_cast<std::int64_t>(nodes_.size()) * node_.gpus;
    RY_CHECK(all % (stride * ranks) == 0);
    GpuGroups::List out;
    out.reserve(static_cast<std::size_t>(all / ranks));
    for (std::int64_t base = 0; base < all; base += stride * ranks) {
        for (std::int64_t offset = 0; offset < stride; ++offset) {
            GpuGroup& group = out.emplace_back();
            group.reserve(static_cast<std::size_t>(ranks));
            for (std::int64_t k = 0; k < ranks; ++k) {
                const std::int64_t rank = base + offset + k * stride;
                group.push_back(nodes_[rank / node_.gpus] * node_.gpus + rank % node_.gpus);
            }
        }
    }
    return out;
}

std::vector<Communicator*> Communicators::between_switches() {
    std::vector<Communicator*> out;
    for (auto& [key, communicator] : known_) {
        if (!communicator.loads.links.empty()) out.push_back(&communicator);
    }
    return out;
}

const Communicator& Communicators::of(Collective collective, std::int64_t stride,
                                      std::int64_t ranks, std::int64_t nics) {
    const Traffic traffic = traffic_of(collective);
    const auto [found, is_new] = known_.try_emplace({traffic, stride, ranks, nics});
    Communicator& c = found->second;
    if (!is_new) return c;
    // Where nodes and groups don't divide, the worst group: one that is cut into parts that are as equal as
    // they can be.
    const std::int64_t most =
        std::clamp<std::int64_t>(std::gcd(node_.gpus, stride * ranks) / stride, 1, ranks);
    const std::int64_t parts = (ranks + most - 1) / most;
    const std::int64_t in_node = (ranks + parts - 1) / parts;
    c = make_communicator(constants_, node_, {ranks, in_node, sharp_, stride, true});
    if (network_ && ranks > 1) {
        Fingerprint name = place_;
        name.add_all(node_.gpus, stride, ranks);
        measure(*network_, {name, [&] { return groups(stride, ranks); }}, collective, c);
    }
    if (nics > 0) {
        const double part = real(nics) / real(node_.nics);
        c.nominal_network *= part;
        c = c.with_network_slowed(1 / part);
        for (LinkLoads::Load& load : c.loads.links) load.flows *= part;
    }
    return c;
}

}  // namespace railyard
