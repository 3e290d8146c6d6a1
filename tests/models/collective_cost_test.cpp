#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "models/collective/collective.h"

using namespace railyard;

namespace {

constexpr double mib = 1048576;
constexpr double large = 1e15;  // bytes: latency and the pipeline's filling are nothing

Communicator communicator(const char* node_name, std::int64_t ranks, std::int64_t per_node,
                          bool sharp = false) {
    StandaloneCatalogue own;
    const Node node = read_node(own.catalogue, node_name);
    Communicator c = read_communicator(own.catalogue, node, {ranks, per_node, sharp});
    own.diagnostics.raise_if_any();
    return c;
}

double time_of(const Communicator& c, Collective collective, double bytes, Algorithm algorithm,
               Protocol protocol = Protocol::simple) {
    return collective_cost(c, collective, bytes, {algorithm, protocol}).value().seconds;
}

double bus_bandwidth(const Communicator& c, Collective collective, double bytes,
                     Algorithm algorithm) {
    return bytes * bus_factor(collective, c.ranks) / time_of(c, collective, bytes, algorithm);
}

bool near(double a, double b, double tolerance) {
    return std::abs(a / b - 1) < tolerance;
}

template <class Visit>
void for_each_choice(const Communicator& c, const Visit& visit) {
    for (std::size_t kind = 0; kind < collective_names.size(); ++kind) {
        for (std::size_t a = 0; a < algorithm_names.size(); ++a) {
            for (std::size_t p = 0; p < protocol_names.size(); ++p) {
                const auto collective = static_cast<Collective>(kind);
                const Choice choice{static_cast<Algorithm>(a), static_cast<Protocol>(p)};
                if (!available(c, collective, choice)) continue;
                CAPTURE(collective_names[kind]);
                CAPTURE(algorithm_names[a]);
                CAPTURE(protocol_names[p]);
                visit(collective, choice);
            }
        }
    }
}

}  // namespace

TEST_CASE("the tuner's estimates on 16,384 GPUs are those of NCCL's source by hand") {
    const Communicator c = communicator("dgx_h100", 16384, 8);
    REQUIRE(c.domains == 2048);
    CHECK(near(tuner_seconds(c, Collective::all_reduce, 32768, {Algorithm::ring, Protocol::ll}),
               39.7e-3, 0.002));
    CHECK(near(tuner_seconds(c, Collective::all_reduce, 32768, {Algorithm::tree, Protocol::ll}),
               127e-6, 0.03));
    CHECK(choose(c, Collective::all_reduce, 32768)->algorithm == Algorithm::tree);
}

TEST_CASE("large messages run at the speed of the slowest link") {
    const Communicator node = communicator("dgx_h100", 8, 8);
    const double nvlink = node.nvlink;
    CHECK(near(bus_bandwidth(node, Collective::all_reduce, large, Algorithm::ring),
               nvlink * node.measured.ring_efficiency, 1e-6));
    CHECK(near(bus_bandwidth(node, Collective::all_gather, large, Algorithm::ring),
               nvlink * node.measured.ring_efficiency, 1e-6));
    CHECK(near(bus_bandwidth(node, Collective::all_to_all, large, Algorithm::pairwise),
               nvlink * node.measured.pairwise_efficiency, 1e-6));
    const double nvls_wire = 1 + 1.0 / 8 + 8 * node.measured.nvls_rank_cost;
    CHECK(near(large / time_of(node, Collective::all_reduce, large, Algorithm::nvls),
               nvlink * node.measured.nvls_efficiency / nvls_wire, 1e-6));

    Communicator nodes = communicator("dgx_h100", 64, 8);
    nodes.set_network(nodes.network / 2);
    CHECK(near(bus_bandwidth(nodes, Collective::all_reduce, large, Algorithm::ring), nodes.network,
               1e-6));
    // A tree's buffer goes to a parent and to two children, halved.
    CHECK(near(large / time_of(nodes, Collective::all_reduce, large, Algorithm::nvls_tree),
               nodes.network / 2, 1e-6));
    // All of a node's GPUs send 56 of 64 parts to other nodes.
    CHECK(near(large / time_of(nodes, Collective::all_to_all, large, Algorithm::pairwise),
               nodes.network / 8 * 64 / 56, 1e-6));
    CHECK(near(large / time_of(nodes, Collective::send_recv, large, Algorithm::pairwise),
               nodes.network / 8, 1e-6));

    const Communicator single = communicator("dgx_h100", 16, 1);
    CHECK(near(bus_bandwidth(single, Collective::all_gather, large, Algorithm::pat),
               0.75 * single.network, 1e-6));
}

TEST_CASE("switches that reduce send every byte over the network once") {
    Communicator c = communicator("dgx_h100", 64, 8, true);
    const double sharp = c.sharp_network;
    c.set_network(c.network / 4);
    c.sharp_network = sharp;
    CHECK(time_of(c, Collective::all_reduce, large, Algorithm::collnet_direct) <
          0.6 * time_of(c, Collective::all_reduce, large, Algorithm::nvls_tree));
}

TEST_CASE("on two nodes an all-reduce passes the rate of the NICs, on four it does not") {
    const double bytes = 8192 * mib;
    const auto bus = [&](const Communicator& c) {
        return bytes * bus_factor(Collective::all_reduce, c.ranks) /
               seconds(Collective::all_reduce, c, bytes);
    };
    const Communicator two = communicator("dgx_h100", 16, 8);
    const Communicator four = communicator("dgx_h100", 32, 8);
    CHECK(bus(two) > 1.1 * two.network);
    CHECK(bus(four) < four.network);
}

TEST_CASE("the protocol goes from LL to Simple as messages grow, the algorithm to NVLS") {
    const Communicator c = communicator("dgx_h100", 8, 8);
    CHECK(choose(c, Collective::all_reduce, 1024)->protocol == Protocol::ll);
    CHECK(choose(c, Collective::all_reduce, 1024)->algorithm == Algorithm::ring);
    CHECK(choose(c, Collective::all_gather, 8 * mib)->protocol == Protocol::ll128);
    CHECK(choose(c, Collective::all_gather, 1024 * mib)->protocol == Protocol::simple);
    CHECK(choose(c, Collective::all_reduce, 1024 * mib)->algorithm == Algorithm::nvls);
}

TEST_CASE("a tree has less latency than a ring on many nodes") {
    const Communicator c = communicator("dgx_h100", 1024, 8);
    CHECK(time_of(c, Collective::all_reduce, 8, Algorithm::tree, Protocol::ll) <
          0.1 * time_of(c, Collective::all_reduce, 8, Algorithm::ring, Protocol::ll));
}

TEST_CASE("more bytes never take less time by the same algorithm and protocol") {
    for (const Communicator& c :
         {communicator("dgx_a100", 8, 8), communicator("dgx_h100", 24, 8),
          communicator("aws_p5_h100", 16, 8), communicator("mi300x_8", 8, 8),
          communicator("dgx_h100", 7, 1), communicator("gb200_nvl72", 72, 72)}) {
        for_each_choice(c, [&](Collective collective, Choice choice) {
            double before = 0;
            for (double bytes = 1; bytes < 1e12; bytes *= 1.7) {
                const double now = collective_cost(c, collective, bytes, choice)->seconds;
                CHECK(now >= before);
                CHECK(std::isfinite(now));
                before = now;
            }
        });
    }
}

TEST_CASE("no bytes and one rank take no time, whatever is asked") {
    const Communicator one = communicator("dgx_h100", 1, 8);
    const Communicator many = communicator("dgx_h100", 24, 8);
    for (std::size_t kind = 0; kind < collective_names.size(); ++kind) {
        const auto collective = static_cast<Collective>(kind);
        CHECK(seconds(collective, one, 0) == 0);
        CHECK(seconds(collective, one, 1e9) == 0);
        CHECK(seconds(collective, many, 0) == 0);
        CHECK(collective_cost(many, collective, 0).latency_s > 0);
    }
}

TEST_CASE("any number of ranks has a cost, and a rack is one NVLink domain") {
    for (const std::int64_t ranks : {2, 3, 5, 6, 7, 12, 100, 1000}) {
        const Communicator c = communicator("dgx_h100", ranks, 8);
        CHECK(c.domains == (ranks + 7) / 8);
        CHECK(seconds(Collective::all_reduce, c, mib) > 0);
    }
    const Communicator rack = communicator("gb200_nvl72", 72, 72);
    CHECK(rack.domains == 1);
    CHECK(choose(rack, Collective::all_reduce, 1024 * mib)->algorithm == Algorithm::nvls);
    CHECK(communicator("gb200_nvl72", 144, 72).domains == 2);
}

TEST_CASE("what is not available says why") {
    const auto why = [](const Communicator& c, Collective collective, Algorithm algorithm,
                        Protocol protocol = Protocol::simple) {
        return why_unavailable(c, collective, {algorithm, protocol});
    };
    const Communicator ampere = communicator("dgx_a100", 8, 8);
    const Communicator hopper = communicator("dgx_h100", 16, 8);
    const Communicator efa = communicator("aws_p5_h100", 16, 8, true);
    CHECK(why(ampere, Collective::all_reduce, Algorithm::nvls).find("Hopper") != std::string::npos);
    CHECK(why(hopper, Collective::all_gather, Algorithm::tree) != "");
    CHECK(why(efa, Collective::all_reduce, Algorithm::collnet_direct).find("InfiniBand") !=
          std::string::npos);
    CHECK(why(efa, Collective::all_reduce, Algorithm::tree, Protocol::ll128) != "");
    CHECK(why(hopper, Collective::all_to_all, Algorithm::ring) != "");
    CHECK(why(hopper, Collective::all_reduce, Algorithm::tree) == "");
    CHECK_FALSE(choose(ampere, Collective::all_reduce, mib, {Algorithm::nvls, {}}));
}

TEST_CASE("a full mesh of links gives a pair one link") {
    const Communicator pair = communicator("mi300x_8", 2, 8);
    const Communicator all = communicator("mi300x_8", 8, 8);
    CHECK(near(all.nvlink / pair.nvlink, 7, 1e-9));
}

namespace {

// Rings through all `n` of a full mesh, each link in one direction used by one of them at most.
class MeshRings {
  public:
    explicit MeshRings(int n) : n_(n) {
        std::vector<int> order(static_cast<std::size_t>(n));
        std::iota(order.begin(), order.end(), 0);
        do {
            rings_.push_back(order);
        } while (std::next_permutation(order.begin() + 1, order.end()));
        used_.assign(static_cast<std::size_t>(n * n), false);
        search(0, 0);
    }
    int most() const { return most_; }

  private:
    bool mark(const std::vector<int>& ring, bool on) {
        for (std::size_t i = 0; i < ring.size(); ++i) {
            const int link = ring[i] * n_ + ring[(i + 1) % ring.size()];
            if (on && used_[static_cast<std::size_t>(link)]) {
                for (std::size_t k = 0; k < i; ++k) {
                    used_[static_cast<std::size_t>(ring[k] * n_ + ring[k + 1])] = false;
                }
                return false;
            }
            used_[static_cast<std::size_t>(link)] = on;
        }
        return true;
    }
    void search(std::size_t from, int found) {
        most_ = std::max(most_, found);
        for (std::size_t i = from; i < rings_.size() && most_ < n_ - 1; ++i) {
            if (!mark(rings_[i], true)) continue;
            search(i + 1, found + 1);
            mark(rings_[i], false);
        }
    }

    int n_;
    int most_ = 0;
    std::vector<std::vector<int>> rings_;
    std::vector<bool> used_;
};

}  // namespace

TEST_CASE("rings of a full mesh use as many links of a GPU as share none, by trying all") {
    const double pair = bus_bandwidth(communicator("mi300x_8", 2, 8), Collective::all_gather, large,
                                      Algorithm::ring);
    for (int gpus = 3; gpus <= 6; ++gpus) {
        CAPTURE(gpus);
        const Communicator c = communicator("mi300x_8", gpus, 8);
        CHECK(bus_bandwidth(c, Collective::all_gather, large, Algorithm::ring) ==
              doctest::Approx(MeshRings(gpus).most() * pair));
    }
}

TEST_CASE("NVLS with SHARP stays at NVLink's rate on any number of nodes") {
    const Communicator one = communicator("dgx_h100", 8, 8);
    const Communicator many = communicator("dgx_h100", 128, 8, true);
    CHECK(near(time_of(many, Collective::all_reduce, large, Algorithm::nvls),
               time_of(one, Collective::all_reduce, large, Algorithm::nvls), 1e-3));
    CHECK(time_of(many, Collective::all_reduce, large, Algorithm::nvls) <
          0.8 * time_of(many, Collective::all_reduce, large, Algorithm::nvls_tree));
    const Communicator plain = communicator("dgx_h100", 128, 8);
    CHECK(why_unavailable(plain, Collective::all_reduce, {Algorithm::nvls, Protocol::simple})
              .find("SHARP") != std::string::npos);
    CHECK(!available(many, Collective::all_gather, {Algorithm::nvls, Protocol::simple}));
}

TEST_CASE("half the network takes an all-reduce between nodes twice as long") {
    Communicator c = communicator("dgx_h100", 64, 8);
    const double full = seconds(Collective::all_reduce, c, large);
    c.set_network(c.network / 2);
    CHECK(near(seconds(Collective::all_reduce, c, large), 2 * full, 1e-6));
}
