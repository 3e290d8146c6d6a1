#include "models/collective/tuner.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace railyard {

namespace {

bool is_pairwise(Collective c) {
    return c == Collective::all_to_all || c == Collective::send_recv;
}
bool gathers_or_scatters(Collective c) {
    return c == Collective::all_gather || c == Collective::reduce_scatter;
}

// nullptr when the choice is available.
const char* obstacle(const Communicator& c, Collective collective, Choice choice) {
    const bool simple = choice.protocol == Protocol::simple;
    if (is_pairwise(collective) != (choice.algorithm == Algorithm::pairwise)) {
        return is_pairwise(collective) ? "it is made of sends and receives: pairwise"
                                       : "pairwise is for all_to_all and send_recv";
    }
    if (choice.protocol == Protocol::ll128 && c.over_pcie()) {
        return "LL128 needs NVLink between the GPUs of a node";
    }
    if (choice.protocol == Protocol::ll128 && c.nodes > 1 && !c.in_order) {
        return "LL128 needs a network that keeps stores in order: InfiniBand or RoCE";
    }
    switch (choice.algorithm) {
        case Algorithm::ring:
            return nullptr;
        case Algorithm::tree:
            return collective == Collective::all_reduce ? nullptr : "trees are for all_reduce";
        case Algorithm::nvls:
        case Algorithm::nvls_tree:
            if (!simple) return "NVLS is Simple only";
            if (!c.nvswitch || c.tuner.nvls_efficiency == 0) {
                return "NVLS needs the NVSwitch of Hopper or a later generation";
            }
            if (choice.algorithm == Algorithm::nvls_tree) {
                if (collective != Collective::all_reduce) return "NVLS trees are for all_reduce";
                if (c.domains == 1) return "an NVLS tree spans NVLink domains, and there is one";
                return c.per_domain > 2 ? nullptr : "NVLS needs more than two GPUs in a domain";
            }
            if (collective != Collective::all_reduce && !gathers_or_scatters(collective)) {
                return "NVLS is for all_reduce, all_gather and reduce_scatter";
            }
            if (c.domains > 1 &&
                !(c.sharp && c.per_domain > 2 && collective == Collective::all_reduce)) {
                return "NVLS stays in one NVLink domain, but for an all_reduce with SHARP: "
                       "nvls_tree spans several";
            }
            return c.ranks >= c.tuner.nvls_ranks_min ? nullptr
                                                     : "too few GPUs: a ring is faster than NVLS";
        case Algorithm::collnet_direct:
            if (collective != Collective::all_reduce) return "CollNet is for all_reduce";
            if (!simple) return "CollNet is Simple only";
            if (c.nodes == 1) return "CollNet spans nodes, and there is one";
            return c.sharp
                       ? nullptr
                       : "CollNet needs SHARP: InfiniBand switches that reduce, above all ranks";
        case Algorithm::pat:
            if (!gathers_or_scatters(collective)) return "PAT is for all_gather and reduce_scatter";
            if (!simple) return "PAT is Simple only";
            return c.nodes > 1 && c.nodes == c.ranks ? nullptr
                                                     : "PAT needs nodes with one GPU of each";
        case Algorithm::pairwise:
            return choice.protocol == Protocol::ll128 ? "sends are LL or Simple" : nullptr;
    }
    return nullptr;
}

// What the tuner's formulas have in common. Their bandwidths are the algorithm's: bytes / time of a large
// message.
struct Call {
    Call(const Communicator& communicator, Collective collective, double of_bytes, Choice which)
        : c(communicator),
          t(communicator.tuner),
          choice(which),
          p(static_cast<std::size_t>(which.protocol)),
          all_reduce(collective == Collective::all_reduce),
          network(communicator.domains > 1),
          bytes(of_bytes),
          n(real(communicator.ranks)),
          steps(all_reduce                        ? 2 * (n - 1)
                : gathers_or_scatters(collective) ? n - 1
                                                  : n),
          link(network ? std::min(c.nvlink, c.nominal_network) : c.nvlink) {}

    double seconds(double latency, double bandwidth) const { return latency + bytes / bandwidth; }
    // Between two domains each carries the tree in one direction only.
    double tree_network() const { return c.nominal_network * (c.domains == 2 ? 2 : 1); }

    const Communicator& c;
    const TunerConstants& t;
    Choice choice;
    std::size_t p;
    bool all_reduce;
    bool network;
    double bytes;
    double n;
    double steps;
    double link;
};

double ring_seconds(const Call& call) {
    const TunerConstants& t = call.t;
    const Protocol protocol = call.choice.protocol;
    const bool network = call.c.nodes > 1;
    const double network_steps = (call.all_reduce ? 2 : 1) * real(call.c.nodes - 1);
    const double inside = (call.c.over_pcie() ? t.ring_pcie_s : t.ring_nvlink_s)[call.p];
    const double overhead =
        network ? t.network_overhead_s * (protocol == Protocol::simple ? 3 : 1) : 0;
    double latency = t.ring_base_s[call.p] +
                     (call.steps - network_steps) * std::max(inside, overhead) +
                     network_steps * t.ring_network_s[call.p];
    double bandwidth = call.link;
    if (protocol == Protocol::ll) {
        bandwidth = std::min(t.ll_max, 0.5 * call.link);
    } else if (protocol == Protocol::ll128) {
        bandwidth = std::min(t.ll128_share * call.link, t.ring_ll128_max);
    } else if (network && call.all_reduce && call.bytes / (t.channels * call.n) >= 64) {
        latency *= t.network_plateau;
    }
    return call.seconds(latency, bandwidth * (call.n / call.steps));
}

double tree_seconds(const Call& call) {
    const TunerConstants& t = call.t;
    const Communicator& c = call.c;
    const double nodes = real(c.nodes);
    const double inside = (c.over_pcie() ? t.tree_pcie_s : t.tree_nvlink_s)[call.p];
    const double latency =
        t.tree_base_s[call.p] +
        2 * ((call.n / nodes - 1) * inside + std::log2(nodes) * t.tree_network_s[call.p]);
    const double link = call.network ? std::min(c.nvlink, call.tree_network()) : c.nvlink;
    double bandwidth = std::min(t.tree_bandwidth * link, t.tree_max);
    if (call.choice.protocol == Protocol::ll) {
        bandwidth = std::min(bandwidth * t.tree_ll_share, t.ll_max);
    } else if (call.choice.protocol == Protocol::ll128) {
        bandwidth *= t.tree_ll128_share;
    }
    bandwidth *= 0.5;
    const auto size = static_cast<std::uint64_t>(call.bytes) / 64;
    if (size > 0) {
        const auto at = static_cast<std::size_t>(std::bit_width(size) - 1);
        if (at < t.tree_correction[call.p].size()) bandwidth *= t.tree_correction[call.p][at];
    }
    return call.seconds(latency, bandwidth);
}

double nvls_seconds(const Call& call) {
    const TunerConstants& t = call.t;
    const Communicator& c = call.c;
    double latency = t.nvls_s;
    double bandwidth = c.nvlink * t.nvls_efficiency * (t.channels - 1) / t.channels *
                       (call.all_reduce ? 2 : (c.per_domain - 1) / c.per_domain);
    if (call.choice.algorithm == Algorithm::nvls_tree) {
        latency += 2 * c.tree_depth * t.nvls_tree_network_s;
        bandwidth = std::min({bandwidth, t.nvls_tree_max, call.tree_network()});
    } else if (call.network) {
        latency += t.nvls_network_s;
        bandwidth = std::min(bandwidth, c.nominal_network);
    }
    return call.seconds(latency, bandwidth * (call.n / call.steps));
}

double collnet_seconds(const Call& call) {
    const TunerConstants& t = call.t;
    const double latency =
        2 * (t.collnet_nvlink_s + t.collnet_per_rank_s * (call.c.per_domain - 1)) +
        t.collnet_network_s;
    const double factor = std::max(1.0, call.c.per_domain / t.channels);
    return call.seconds(latency,
                        0.5 * call.link * t.collnet_bandwidth / (factor - (factor - 1) / 2));
}

double pat_seconds(const Call& call) {
    const TunerConstants& t = call.t;
    return call.seconds(
        t.pat_base_s + call.c.tree_depth * t.pat_network_s + t.pat_per_rank_s * call.n,
        t.pat_bandwidth * call.link);
}

}  // namespace

std::string why_unavailable(const Communicator& communicator, Collective collective,
                            Choice choice) {
    const char* why = obstacle(communicator, collective, choice);
    return why == nullptr ? "" : why;
}

bool available(const Communicator& communicator, Collective collective, Choice choice) {
    return obstacle(communicator, collective, choice) == nullptr;
}

double tuner_seconds(const Communicator& c, Collective collective, double bytes, Choice choice) {
    const Call call(c, collective, bytes, choice);
    switch (choice.algorithm) {
        case Algorithm::ring:
            return ring_seconds(call);
        case Algorithm::tree:
            return tree_seconds(call);
        case Algorithm::nvls:
        case Algorithm::nvls_tree:
            return nvls_seconds(call);
        case Algorithm::collnet_direct:
            return collnet_seconds(call);
        case Algorithm::pat:
            return pat_seconds(call);
        case Algorithm::pairwise:
            break;
    }
    return call.seconds(0, 0);
}

std::optional<Choice> choose(const Communicator& communicator, Collective collective, double bytes,
                             Wish wish) {
    constexpr Algorithm algorithms[] = {
        Algorithm::ring,           Algorithm::tree, Algorithm::nvls,    Algorithm::nvls_tree,
        Algorithm::collnet_direct, Algorithm::pat,  Algorithm::pairwise};
    constexpr Protocol protocols[] = {Protocol::ll, Protocol::ll128, Protocol::simple};
    if (is_pairwise(collective) && !wish.protocol) {
        constexpr double ll_bytes_max = 16384;  // NCCL_P2P_LL_THRESHOLD
        const double peers = collective == Collective::all_to_all ? real(communicator.ranks) : 1;
        wish.protocol = bytes / peers <= ll_bytes_max ? Protocol::ll : Protocol::simple;
    }
    std::optional<Choice> best;
    double best_s = 0;
    for (const Algorithm algorithm : algorithms) {
        if (wish.algorithm && algorithm != *wish.algorithm) continue;
        for (const Protocol protocol : protocols) {
            if (wish.protocol && protocol != *wish.protocol) continue;
            const Choice choice{algorithm, protocol};
            if (!available(communicator, collective, choice)) continue;
            const double s = algorithm == Algorithm::pairwise
                                 ? 0
                                 : tuner_seconds(communicator, collective, bytes, choice);
            if (!best || s < best_s) {
                best = choice;
                best_s = s;
            }
        }
    }
    return best;
}

bool chooses(const Communicator& communicator, Collective collective, Algorithm algorithm,
             Wish wish) {
    for (double bytes = 1; bytes < 1e15; bytes *= 2) {
        const std::optional<Choice> choice = choose(communicator, collective, bytes, wish);
        if (choice && choice->algorithm == algorithm) return true;
    }
    return false;
}

}  // namespace railyard
