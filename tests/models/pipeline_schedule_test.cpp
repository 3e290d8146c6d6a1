// The closed forms of bubbles beside the schedules that they are of, done operation by operation.

#include "models/training/pipeline_schedule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

using namespace railyard;

namespace {

enum class StageWork : std::uint8_t { forward, inputs, weights };
struct StageOperation {
    StageWork work;
    int part = 0;  // of the model, first to last
    int microbatch = 0;
};
using RankWork = std::vector<StageOperation>;  // of one rank

struct StageLengths {
    double forward, inputs, weights;  // of a whole stage
    double total() const { return forward + inputs + weights; }
};

// When the last rank has ended. Ranks do what they have to in their order, as soon as what it needs is there.
double makespan(const std::vector<RankWork>& orders, int parts, const StageLengths& stage,
                double sends = 0) {
    const double share = static_cast<double>(orders.size()) / parts;
    std::map<std::tuple<StageWork, int, int>, std::pair<double, std::size_t>>
        done;  // when, and by whom
    std::vector<double> free(orders.size());
    std::vector<std::size_t> next(orders.size());
    const auto needs = [&](const StageOperation& o) {
        std::vector<std::tuple<StageWork, int, int>> out;
        if (o.work == StageWork::forward && o.part > 0)
            out.emplace_back(StageWork::forward, o.part - 1, o.microbatch);
        if (o.work == StageWork::inputs) {
            out.emplace_back(StageWork::forward, o.part, o.microbatch);
            if (o.part + 1 < parts) out.emplace_back(StageWork::inputs, o.part + 1, o.microbatch);
        }
        if (o.work == StageWork::weights) out.emplace_back(StageWork::inputs, o.part, o.microbatch);
        return out;
    };
    const auto step = [&](std::size_t rank) {
        const StageOperation& o = orders[rank][next[rank]];
        double start = free[rank];
        for (const auto& need : needs(o)) {
            const auto found = done.find(need);
            if (found == done.end()) return false;
            const auto& [when, who] = found->second;
            start = std::max(start, when + (who == rank ? 0 : sends));
        }
        const double length = o.work == StageWork::forward  ? stage.forward
                              : o.work == StageWork::inputs ? stage.inputs
                                                            : stage.weights;
        free[rank] = start + length * share;
        done[{o.work, o.part, o.microbatch}] = {free[rank], rank};
        ++next[rank];
        return true;
    };
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t rank = 0; rank < orders.size(); ++rank) {
            while (next[rank] < orders[rank].size() && step(rank)) moved = true;
        }
    }
    for (std::size_t rank = 0; rank < orders.size(); ++rank) {
        REQUIRE(next[rank] == orders[rank].size());
    }
    return *std::ranges::max_element(free);
}

// PyTorch's interleaved schedules, v parts of each of p ranks: with gradients of weights at once (1F1B),
// or as many microbatches later as there are ranks before (ZB-H1).
std::vector<RankWork> interleaved(int p, int v, int microbatches, bool later) {
    std::vector<RankWork> out;
    const int rounds = std::max(1, microbatches / p);
    const int of_round = microbatches / rounds;
    for (int rank = 0; rank < p; ++rank) {
        const int all = v * microbatches;
        const int before = (later || v == 1 ? 1 : 2) * (p - 1 - rank);
        const int warm_up = std::min(all, (v - 1) * of_round + before);
        RankWork order;
        std::map<std::pair<StageWork, int>, int> count;
        const auto add = [&](StageWork work, int i) {
            const int turn = i / of_round % v;
            const int part = (work == StageWork::forward ? turn : v - 1 - turn) * p + rank;
            order.push_back({work, part, count[{work, part}]++});
        };
        int back = 0;
        int weights = 0;
        const auto backward = [&] {
            add(StageWork::inputs, back++);
            if (back - weights > (later ? rank : 0)) add(StageWork::weights, weights++);
        };
        for (int i = 0; i < warm_up; ++i) add(StageWork::forward, i);
        for (int i = warm_up; i < all; ++i) {
            add(StageWork::forward, i);
            backward();
        }
        while (back < all) backward();
        while (weights < all) add(StageWork::weights, weights++);
        out.push_back(std::move(order));
    }
    return out;
}

// 1F1B does both gradients before it sends: one operation.
std::vector<RankWork> one_forward_one_backward(int p, int v, int microbatches,
                                               StageLengths& stage) {
    std::vector<RankWork> out = interleaved(p, v, microbatches, false);
    for (RankWork& order : out) {
        std::erase_if(order, [](const StageOperation& o) { return o.work == StageWork::weights; });
    }
    stage = {stage.forward, stage.inputs + stage.weights, 0};
    return out;
}

// ZB-V as PyTorch has it: rank r has parts r and 2 p - 1 - r.
std::vector<RankWork> there_and_back(int p, int microbatches) {
    std::vector<RankWork> out;
    const int rounded = std::max(2 * p - 1, microbatches);
    for (int rank = 0; rank < p; ++rank) {
        RankWork order;
        std::map<std::pair<StageWork, int>, int> count;
        const auto add = [&](StageWork work, int half) {
            const int part = half == 0 ? rank : 2 * p - 1 - rank;
            const int i = count[{work, half}]++;
            if (i < microbatches) order.push_back({work, part, i});
        };
        const auto both = [&](int half) {
            add(StageWork::inputs, half);
            add(StageWork::weights, half);
        };
        for (int i = 0; i < 2 * (p - rank) - 1; ++i) add(StageWork::forward, 0);
        for (int i = 0; i < rank; ++i) {
            add(StageWork::forward, 1);
            add(StageWork::forward, 0);
        }
        for (int i = 0; i < p - rank; ++i) {
            add(StageWork::forward, 1);
            both(1);
        }
        const auto forwards = [&](int half) { return count[{StageWork::forward, half}]; };
        while (forwards(1) < forwards(0) || forwards(0) < rounded) {
            if (forwards(0) < rounded) add(StageWork::forward, 0);
            both(0);
            add(StageWork::forward, 1);
            both(1);
        }
        for (int i = 0; i < rank; ++i) {
            add(StageWork::inputs, 0);
            add(StageWork::inputs, 1);
        }
        for (int i = 0; i < p - rank; ++i) both(0);
        for (const int half : {1, 0}) {
            while (count[{StageWork::weights, half}] < rounded) add(StageWork::weights, half);
        }
        out.push_back(std::move(order));
    }
    return out;
}

// F <= I, W <= I, in all proportions.
std::vector<StageLengths> proportions() {
    std::vector<StageLengths> out;
    for (const double forward : {0.3, 0.5, 0.8, 1.0}) {
        for (const double weights : {0.0, 0.2, 0.5, 0.7, 1.0}) {
            out.push_back({1.3 * forward, 1.3, 1.3 * weights});
        }
    }
    return out;
}

double expected_bubble(PipelineSchedule schedule, const StageLengths& l, int p, int v, int m) {
    return (p - 1) * stage_bubble(schedule, {l.total(), l.forward, l.weights}, p, m) / v;
}

TEST_CASE("bubbles are what the schedules come to, operation by operation") {
    for (const StageLengths& lengths : proportions()) {
        for (const int p : {2, 4, 8}) {
            CAPTURE(p);
            CAPTURE(lengths.forward);
            CAPTURE(lengths.weights);
            for (const int v : {1, 2, 3}) {
                const int m = 3 * p;
                CAPTURE(v);
                StageLengths stage = lengths;
                const auto plain = one_forward_one_backward(p, v, m, stage);
                CHECK(makespan(plain, p * v, stage) - m * lengths.total() ==
                      doctest::Approx(expected_bubble(PipelineSchedule::one_forward_one_backward,
                                                      lengths, p, v, m)));
                CHECK(makespan(interleaved(p, v, m, true), p * v, lengths) - m * lengths.total() ==
                      doctest::Approx(
                          expected_bubble(PipelineSchedule::zero_bubble, lengths, p, v, m)));
            }
            CHECK(makespan(there_and_back(p, 2 * p), 2 * p, lengths) - 2 * p * lengths.total() ==
                  doctest::Approx(
                      expected_bubble(PipelineSchedule::zero_bubble_v, lengths, p, 1, 2 * p)));
        }
    }
}

TEST_CASE("few microbatches leave less to fill a pipeline's waits with") {
    for (const StageLengths& lengths :
         {StageLengths{1, 1.3, 0.9}, StageLengths{1, 1.1, 1}, StageLengths{0.6, 1, 0.5}}) {
        for (const int p : {4, 8}) {
            for (int m = 1; m < 2 * p; ++m) {
                CAPTURE(p);
                CAPTURE(m);
                const double work = m * lengths.total();
                if (m <= p) {  // one round
                    CHECK(makespan(interleaved(p, 1, m, true), p, lengths) - work ==
                          doctest::Approx(
                              expected_bubble(PipelineSchedule::zero_bubble, lengths, p, 1, m)));
                }
                const double v = expected_bubble(PipelineSchedule::zero_bubble_v, lengths, p, 1, m);
                // The corner between the two forms is round.
                CHECK(makespan(there_and_back(p, m), 2 * p, lengths) - work ==
                      doctest::Approx(v).epsilon(0.12));
            }
        }
    }
}

TEST_CASE("schedules without slack wait for sends both while they fill and while they drain") {
    const StageLengths lengths{1, 1.3, 0.9};
    constexpr double send = 0.01;
    for (const int p : {4, 8}) {
        const auto waited = [&](const std::vector<RankWork>& orders, int parts) {
            return (makespan(orders, parts, lengths, send) - makespan(orders, parts, lengths)) /
                   send;
        };
        const auto each_way = [&](PipelineSchedule schedule) {
            return doctest::Approx(2 * sends_waited_for(schedule, p));
        };
        CHECK(waited(interleaved(p, 1, 3 * p, true), p) == each_way(PipelineSchedule::zero_bubble));
        CHECK(waited(there_and_back(p, 3 * p), 2 * p) ==
              each_way(PipelineSchedule::zero_bubble_v).epsilon(0.2));
    }
}

TEST_CASE("DualPipe's bubble is its authors' formula") {
    // (PP/2 - 1)(F&B + B - 3W), B with W.
    const StagePasses stage{3.6, 1, 1};
    CHECK(15 * stage_bubble(PipelineSchedule::dualpipe, stage, 16, 100) ==
          doctest::Approx(7 * (3.6 + 2.6 - 3)));
    // The same stages cut in half.
    CHECK(7 * stage_bubble(PipelineSchedule::dualpipe_v, stage, 8, 100) ==
          doctest::Approx(7 * (1.8 + 1.3 - 1.5)));
}

}  // namespace
