#include "models/collective/cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace railyard {

namespace {

// Latency, seconds per byte once the pipeline is full, and the bytes for which it is not.
struct Pace {
    double latency_s = 0;
    double s_per_byte = 0;
    double fill_s_per_byte = 0;
    double fill_bytes = 0;
    double window_s_per_byte = 0;  // where buffers wait for the network's answers

    double seconds(double bytes) const {
        return std::max(
            latency_s + bytes * s_per_byte + std::min(bytes, fill_bytes) * fill_s_per_byte,
            bytes * window_s_per_byte);
    }
};

class Model {
  public:
    Model(const Communicator& c, Collective collective, Protocol protocol)
        : c_(c),
          m_(c.measured),
          p_(static_cast<std::size_t>(protocol)),
          collective_(collective),
          ll_(protocol == Protocol::ll),
          simple_(protocol == Protocol::simple),
          network_(c.domains > 1),
          alone_(network_ && c.per_domain == 1),
          n_(real(c.ranks)),
          hop_s_(m_.hop_s * (simple_ ? m_.simple_hop
                             : ll_   ? 1
                                     : m_.ll128_hop)),
          wire_(simple_ ? 1
                : ll_   ? 0.5
                        : 120.0 / 128),
          nvlink_(alone_ ? std::numeric_limits<double>::infinity()
                         : c.nvlink * c.ring_share * m_.ring_efficiency *
                               (simple_ || ll_ ? wire_ : m_.ll128_efficiency)),
          net_(c.network * wire_) {}

    Pace pace(Algorithm algorithm) const {
        switch (algorithm) {
            case Algorithm::ring:
                return ring();
            case Algorithm::tree:
                return tree();
            case Algorithm::nvls:
                return nvls(m_.network_hop_s + c_.tuner.nvls_network_s + there_and_back_s(),
                            c_.sharp_network);
            case Algorithm::nvls_tree:
                return nvls(2 * c_.tree_depth * (c_.tuner.nvls_tree_network_s + m_.network_hop_s) +
                                there_and_back_s(),
                            c_.tree_network);
            case Algorithm::collnet_direct:
                return collnet();
            case Algorithm::pat:
                return pat();
            case Algorithm::pairwise:
                break;
        }
        return pairwise();
    }

  private:
    // A tree's way up and down goes to another building once each.
    double there_and_back_s() const { return 2 * m_.far_hop_s; }
    bool all_reduce() const { return collective_ == Collective::all_reduce; }
    double domain_bytes() const { return c_.per_domain * m_.fill_bytes; }
    // NVLink, network, NVLink: each has its chunks under way.
    double stages() const { return network_ ? 3 : 1; }

    // The buffer in n parts. A part goes over n - 1 links, twice for an all-reduce, and through the
    // multiprocessors of the GPUs, once more than over links: that bounds rings of few ranks.
    Pace ring() const {
        const bool shared = all_reduce() || collective_ == Collective::all_gather ||
                            collective_ == Collective::reduce_scatter;
        const double hops = all_reduce() ? 2 * (n_ - 1) : n_ - 1;
        const double links = shared ? hops : n_;
        const double copies = all_reduce() ? 2 * n_ - 1 : n_;
        const double ways = all_reduce() ? 2 : 1;
        const double network_hops = ways * real(c_.nodes - 1);
        const double pcie_hops = ways * real(c_.domains - c_.nodes);
        const double link = network_ ? std::min(nvlink_, net_) : nvlink_;
        const double copy = ll_ ? m_.ll_copy_bytes_per_s : m_.copy_bytes_per_s;
        return {m_.launch_s + (hops - network_hops - pcie_hops) * hop_s_ +
                    pcie_hops * c_.tuner.ring_pcie_s[p_] +
                    network_hops * (c_.tuner.ring_network_s[p_] + m_.network_hop_s +
                                    m_.far_share * m_.far_hop_s),
                std::max(links / link, copies / copy) / n_, 0, 0,
                links / n_ * window_s_per_byte(c_.tuner.ring_network_s[p_])};
    }

    // No more is on its way than the buffers of all channels hold, until a hop is over.
    double window_s_per_byte(double hop_s) const {
        constexpr double buffer_bytes = 4194304;  // NCCL_BUFFSIZE, of a channel's connection
        if (c_.nodes == 1 || !simple_) return 0;
        return (hop_s + m_.network_hop_s + m_.far_hop_s) / (c_.tuner.channels * buffer_bytes);
    }

    Pace tree() const {
        Pace pace;
        const double nodes = real(c_.nodes);
        const double pcie_hops = real(c_.domains) / nodes - 1;
        pace.latency_s = m_.launch_s +
                         2 * ((c_.per_domain - 1) * hop_s_ + pcie_hops * c_.tuner.tree_pcie_s[p_] +
                              std::log2(nodes) * (c_.tuner.tree_network_s[p_] + m_.network_hop_s)) +
                         there_and_back_s();
        const double nvlink = 2 / nvlink_;
        pace.s_per_byte = network_ ? std::max(nvlink, 1 / (c_.tree_network * wire_)) : nvlink;
        pace.window_s_per_byte = window_s_per_byte(c_.tuner.tree_network_s[p_]);
        if (ll_) {
            if (c_.nodes > 1) {
                pace.s_per_byte =
                    std::max(pace.s_per_byte, 1 / (c_.tuner.ll_max * m_.network_ll_share));
            }
            return pace;
        }
        pace.fill_s_per_byte = m_.fill_share * stages() * pace.s_per_byte;
        pace.fill_bytes = domain_bytes();
        return pace;
    }

    // The switch adds the buffers up on the way to the rank that owns a part and copies its result
    // to all: a GPU sends and receives the buffer once, and its own part once more. Between domains, where
    // there are several, trees or switches add up.
    Pace nvls(double network_latency_s, double network_bytes_per_s) const {
        const double g = c_.per_domain;
        const double wire = all_reduce() ? 1 + 1 / g : 1;
        const double nvlink = (wire + m_.nvls_rank_cost * g) / (c_.nvlink * m_.nvls_efficiency);
        Pace pace{m_.launch_s + m_.nvls_setup_s, nvlink, nvlink, domain_bytes(), 0};
        if (network_) {
            pace.latency_s += network_latency_s;
            pace.s_per_byte = std::max(nvlink, 1 / network_bytes_per_s);
            pace.fill_s_per_byte = std::max(nvlink, 1 / c_.network);
        }
        pace.fill_s_per_byte *= m_.fill_share * stages();
        return pace;
    }

    // In each node a reduce-scatter and an all-gather; between nodes the switches add up.
    Pace collnet() const {
        const TunerConstants& t = c_.tuner;
        const double nvlink = 2 * (c_.per_domain - 1) / c_.per_domain / nvlink_;
        const double s_per_byte = std::max(nvlink, 1 / c_.sharp_network);
        return {m_.launch_s +
                    2 * (t.collnet_nvlink_s + t.collnet_per_rank_s * (c_.per_domain - 1)) +
                    t.collnet_network_s + m_.network_hop_s + there_and_back_s(),
                s_per_byte, m_.fill_share * stages() * s_per_byte, domain_bytes(), 0};
    }

    Pace pat() const {
        const TunerConstants& t = c_.tuner;
        return {m_.launch_s + c_.tree_depth * (t.pat_network_s + m_.network_hop_s) +
                    t.pat_per_rank_s * n_ + m_.far_hop_s,
                (n_ - 1) / n_ / (t.pat_bandwidth * c_.pat_network), 0, 0, 0};
    }

    // All at once: what leaves a GPU over NVLink, what goes to any one peer, and what the GPUs of a
    // domain send to other domains.
    Pace pairwise() const {
        const bool all = collective_ == Collective::all_to_all;
        const double peers = all ? n_ - 1 : 1;
        const double part = all ? 1 / n_ : 1;  // of the buffer, to each peer
        const double copied = ll_ ? m_.peer_ll_bytes_per_s : m_.peer_bytes_per_s;
        const double links = m_.pairwise_efficiency;  // of what they carry
        const double peer = c_.pair > 0 ? std::min(copied, c_.pair * links) : copied;
        const double nvlink = alone_ ? 0 : part * std::max(peers / (c_.nvlink * links), 1 / peer);
        Pace pace{m_.launch_s + hop_s_ + m_.peer_hop * m_.hop_s * (peers - 1), nvlink, 0, 0, 0};
        if (!ll_) {
            pace.fill_s_per_byte = m_.fill_share * nvlink;
            pace.fill_bytes = m_.fill_bytes / part;
        }
        if (all && c_.by_pcie && !network_) {
            pace.s_per_byte = std::max(nvlink, part * peers / c_.all_to_all_network);
        }
        if (network_) {
            // In send_recv one rank of a domain sends to another domain, with a GPU's share of the NICs.
            const double outside = all ? n_ - c_.per_domain : 1;
            pace.latency_s += c_.nodes == 1
                                  ? c_.tuner.ring_pcie_s[p_]
                                  : c_.tuner.ring_network_s[p_] + m_.network_hop_s + m_.far_hop_s;
            const double network = all ? c_.all_to_all_network : c_.send_network;
            pace.s_per_byte = std::max(nvlink, part * outside * c_.per_domain / network);
        }
        return pace;
    }

    const Communicator& c_;
    const MeasuredConstants& m_;
    std::size_t p_;
    Collective collective_;
    bool ll_, simple_;
    bool network_;  // domains are joined by it, or by PCIe
    bool alone_;    // each GPU is in a domain of its own
    double n_;
    double hop_s_;
    double wire_;    // data in what the protocol sends
    double nvlink_;  // bytes/s of data that a GPU gets to a neighbour
    double net_;     // bytes/s of data that a domain gets to others
};

CollectiveCost cost_of(const Communicator& c, Collective collective, double bytes, Choice choice) {
    const Pace pace = Model(c, collective, choice.protocol).pace(choice.algorithm);
    CollectiveCost out;
    out.choice = choice;
    out.channels = static_cast<std::int64_t>(c.tuner.channels);
    if (c.ranks == 1) return out;
    out.latency_s = pace.latency_s;
    out.bytes_per_s = 1 / std::max(pace.s_per_byte, pace.window_s_per_byte);
    if (bytes > 0) out.seconds = pace.seconds(bytes);
    return out;
}

}  // namespace

CollectiveCost collective_cost(const Communicator& communicator, Collective collective,
                               double bytes) {
    return cost_of(communicator, collective, bytes, *choose(communicator, collective, bytes));
}

std::optional<CollectiveCost> collective_cost(const Communicator& communicator,
                                              Collective collective, double bytes, Choice choice) {
    if (!available(communicator, collective, choice)) return std::nullopt;
    return cost_of(communicator, collective, bytes, choice);
}

}  // namespace railyard
