#include "tools/study/collective_test.h"

#include <fmt/format.h>

#include "tools/program/lists.h"

namespace railyard {

namespace {

// How many ranks on how many GPUs of each node.
CommunicatorShape shape_of(const Scenario& s, const CollectiveQuestion& question) {
    const std::int64_t node_count = s.nodes.nodes;
    const std::int64_t nodes = question.nodes.value_or(0);
    if (question.nodes && (nodes < 1 || nodes > node_count)) {
        throw ScenarioError(fmt::format("--nodes: expected 1 to {}, found {}", node_count, nodes),
                            "cluster.nodes says how many there are");
    }
    const std::int64_t available = (nodes > 0 ? nodes : node_count) * s.node.gpus;
    CommunicatorShape shape;
    shape.ranks = question.gpus.value_or(available);
    if (shape.ranks < 1 || shape.ranks > available) {
        throw ScenarioError(
            fmt::format("--gpus: expected 1 to {}, found {}", available, shape.ranks),
            fmt::format("a node has {}", s.node.gpus));
    }
    if (nodes > 0 && shape.ranks % nodes != 0) {
        throw ScenarioError(
            fmt::format("{} GPUs can't be spread evenly over {} nodes", shape.ranks, nodes));
    }
    shape.ranks_per_node = nodes > 0 ? shape.ranks / nodes : s.node.gpus;
    shape.sharp = s.networks[0].sharp;
    return shape;
}

// The faults of the nodes that the ranks are on.
std::vector<PartFault> faults_of(const Scenario& s, const CommunicatorShape& shape) {
    std::vector<PartFault> out;
    for (const PartFault& fault : s.faults) {
        if (fault.node * shape.ranks_per_node < shape.ranks) out.push_back(fault);
    }
    return out;
}

// The ranks' GPUs, in order.
GpuGroup gpus_of(const Scenario& s, const CommunicatorShape& shape) {
    GpuGroup group;
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
        group.push_back(rank / shape.ranks_per_node * s.node.gpus + rank % shape.ranks_per_node);
    }
    return group;
}

constexpr std::int64_t element_bytes = 4;  // float, as nccl-tests without -d

// As nccl-tests counts elements: of one rank's part where each has a part.
std::int64_t count_of(Collective collective, std::int64_t bytes, std::int64_t ranks) {
    const bool parts = collective == Collective::all_gather ||
                       collective == Collective::reduce_scatter ||
                       collective == Collective::all_to_all;
    return bytes / element_bytes / (parts ? ranks : 1);
}

// Says what stands in the way of a wish, for the algorithm that comes nearest to it.
[[noreturn]] void throw_unavailable(const Communicator& c, Collective collective, Wish wish) {
    const std::optional<Choice> usual = choose(c, collective, 0, {wish.algorithm, {}});
    const Choice wanted{wish.algorithm ? *wish.algorithm
                        : usual        ? usual->algorithm
                                       : Algorithm::ring,
                        wish.protocol.value_or(Protocol::simple)};
    std::string words;
    if (wish.algorithm) words = " --algorithm " + to_text(*wish.algorithm);
    if (wish.protocol) words += " --protocol " + to_text(*wish.protocol);
    throw ScenarioError(fmt::format("{} is not available with{}", to_text(collective), words),
                        why_unavailable(c, collective, wanted));
}

// On each draw of the network's hashes; on the one that is given.
std::vector<Communicator> on_draws(const Scenario& s, const Communicator& nominal,
                                   const CommunicatorShape& shape, Collective collective,
                                   Wish wish) {
    std::vector<HashSeed> seeds;
    if (hashes_are_drawn(s)) {
        for (const NetworkDraw& draw : draw_networks(s)) seeds.emplace_back(draw.hash_seed);
    }
    if (seeds.empty()) seeds.emplace_back();
    std::vector<Communicator> out;
    for (const HashSeed& seed : seeds) {
        out.push_back(nominal);
        if (nominal.ranks < 2) break;
        GpuNetwork network = gpu_network(s, s.fidelity, s.faults, false, seed);
        const std::vector<GpuGroup> groups = {gpus_of(s, shape)};
        measure(network, groups, collective, out.back());
        if (chooses(out.back(), collective, Algorithm::pat, wish)) {
            out.back().pat_network = pat_bytes_per_s(network, groups);
        }
    }
    return out;
}

}  // namespace

std::int64_t parse_size(const std::string& option, const std::string& text) {
    constexpr std::int64_t bytes_max = std::int64_t{1} << 50;
    std::size_t digits = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
    const std::string suffix = text.substr(digits);
    const std::size_t power = std::string_view("KMGT").find(suffix.empty() ? '?' : suffix[0]);
    const bool known = suffix.empty() || (suffix.size() == 1 && power != std::string_view::npos);
    if (digits == 0 || digits > 16 || !known) {
        throw ScenarioError(fmt::format("{}: expected a size, found '{}'", option, text),
                            "write 8, 64K, 32M or 8G: K, M, G and T are powers of 1024");
    }
    const std::int64_t number = std::stoll(text.substr(0, digits));
    const std::int64_t unit = suffix.empty() ? 1 : std::int64_t{1} << (10 * (power + 1));
    if (number > bytes_max / unit) {
        throw ScenarioError(fmt::format("{}: {} is more than 1024T", option, text));
    }
    return number * unit;
}

CollectiveTest::CollectiveTest(const Scenario& s, const CollectiveQuestion& question)
    : collective_(question.collective), wish_(question.wish) {
    const CommunicatorShape shape = shape_of(s, question);
    StandaloneCatalogue own = s.open_catalogue();
    ideal_ = read_communicator(own.catalogue, with_faults(s.node, faults_of(s, shape)), shape);
    own.diagnostics.raise_if_any();
    draws_ = {ideal_};
    if (s.fidelity != Fidelity::analytic) {
        const Communicator nominal = read_communicator(own.catalogue, s.node, shape);
        draws_ = on_draws(s, nominal, shape, collective_, wish_);
    }
    for (const Communicator& each : {draws_[0], ideal_}) {
        if (!choose(each, collective_, 0, wish_)) throw_unavailable(each, collective_, wish_);
    }
}

CollectiveTime CollectiveTest::time(std::int64_t size) const {
    const double bytes = static_cast<double>(size);
    const std::vector<double> times = times_on_draws(size);
    const Communicator& c = draws_[middle_of(times)];
    CollectiveTime out;
    out.size = size;
    out.count = count_of(collective_, size, c.ranks);
    out.choice = *choose(c, collective_, bytes, wish_);
    out.cost = *collective_cost(c, collective_, bytes, out.choice);
    out.algbw = out.cost.seconds > 0 ? bytes / out.cost.seconds : 0;
    out.busbw = out.algbw * bus_factor(collective_, c.ranks);
    out.analytic_s = seconds_on(ideal_, bytes);
    out.over_draws = range_of_draws(times);
    return out;
}

const Communicator& CollectiveTest::communicator(std::int64_t largest) const {
    return draws_[middle_of(times_on_draws(largest))];
}

std::vector<double> CollectiveTest::times_on_draws(std::int64_t size) const {
    return mapped(draws_, [&](const Communicator& each) {
        return seconds_on(each, static_cast<double>(size));
    });
}

double CollectiveTest::seconds_on(const Communicator& c, double bytes) const {
    return collective_cost(c, collective_, bytes, *choose(c, collective_, bytes, wish_))->seconds;
}

}  // namespace railyard
