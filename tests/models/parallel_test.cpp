// How a model is split over GPUs: what each way of splitting does to memory and to the step.

#include <doctest/doctest.h>

#include "models/training/training.h"
#include "sim/statistics.h"
#include "tests/table.h"

using namespace railyard;

namespace {

struct Split : StandaloneCatalogue {
    TransformerModel dense = read_model(catalogue, "llama3_70b");
    TransformerModel mixture = read_model(catalogue, "deepseek_v2");
    Node node = read_node(catalogue, "dgx_h100");
    ParameterBytes bytes = read_parameter_bytes(catalogue);

    CollectiveConstants constants = read_collective_constants(catalogue, node);

    Communicators groups() const { return Communicators(constants, node); }
    CriticalPath path(const TransformerModel& m, const ParallelPlan& p) const {
        Communicators groups = this->groups();
        return critical_path(m, p, groups, bytes, 30);
    }
    double part(const TransformerModel& m, const ParallelPlan& p, std::string_view name) const {
        for (const PathPart& each : path(m, p)) {
            if (each.name == name) return each.seconds;
        }
        return -1;
    }
    double step(const TransformerModel& m, const ParallelPlan& p) const {
        Communicators groups = this->groups();
        return seconds(model_step(m, p, groups, bytes, 30).duration());
    }
    double memory(const TransformerModel& m, const ParallelPlan& p, std::string_view name) const {
        for (const MemoryUse& use : memory_per_gpu(m, p, bytes, node.gpu)) {
            if (use.component == name) return use.bytes;
        }
        return -1;
    }
};

// 64 GPUs over eight nodes.
ParallelPlan base_plan() {
    ParallelPlan p;
    p.tensor = 8;
    p.data = 8;
    p.global_batch = 64;
    p.sequence_length = 8192;
    return p;
}

}  // namespace

TEST_CASE_FIXTURE(Split, "a mixture's FLOPs are those of the parameters that a token meets") {
    for (const std::string& name : Catalogue::names("model")) {
        CAPTURE(name);
        const TransformerModel m = read_model(catalogue, name);
        // An input embedding of its own is looked up, not multiplied, and positions are; a sequence of one
        // token attends to one.
        const std::int64_t rows = (m.tied_embedding ? 0 : m.vocab) + m.learned_positions;
        const double met = active_parameter_count(m) - static_cast<double>(rows * m.hidden);
        // States are updated without parameters.
        const double updates = count_layers(m).with(Mixer::state) * (m.state.delta_rule ? 8 : 7) *
                               m.state.width() * static_cast<double>(m.state.size);
        CHECK(forward_flops_per_token(m, 1) == doctest::Approx(2 * met + updates).epsilon(0.005));
    }
}

TEST_CASE_FIXTURE(Split, "two context-parallel ranks halve the activations and keep the weights") {
    ParallelPlan one = base_plan();
    ParallelPlan two = one;
    two.context = 2;
    two.data = 4;
    two.microbatch = 1;
    CHECK(two.gpus() == one.gpus());
    CHECK(memory(dense, two, "activations") ==
          doctest::Approx(memory(dense, one, "activations") / 2));
    CHECK(memory(dense, two, "weights") == memory(dense, one, "weights"));
    CHECK(memory(dense, two, "optimizer state") == memory(dense, one, "optimizer state"));
    CHECK(part(dense, one, "context-parallel exchange") == 0);
    CHECK(part(dense, two, "context-parallel exchange") > 0);
}

TEST_CASE_FIXTURE(Split,
                  "keys and values that pass behind attention cost less than gathered ones") {
    ParallelPlan ring = base_plan();
    ring.context = 4;
    ring.data = 2;
    ParallelPlan gather = ring;
    gather.overlap_context = false;
    CHECK(part(dense, ring, "context-parallel exchange") <
          part(dense, gather, "context-parallel exchange"));
}

TEST_CASE_FIXTURE(Split,
                  "expert parallelism splits the experts and sends tokens between its ranks") {
    ParallelPlan one;
    one.data = 64;
    one.global_batch = 64;
    one.sequence_length = 4096;
    ParallelPlan eight = one;
    eight.expert = 8;
    const double routed =
        layer_parameters(mixture).routed * count_layers(mixture).with(FeedForward::experts);
    CHECK(memory(mixture, one, "weights") - memory(mixture, eight, "weights") ==
          doctest::Approx(2 * routed * 7 / 8));
    CHECK(part(mixture, one, "expert all-to-all") == 0);
    const double all_to_all = part(mixture, eight, "expert all-to-all");
    CHECK(all_to_all > 0);
    // Inside a node, twice the tokens take twice the time, but for latencies.
    ParallelPlan twice = eight;
    twice.microbatch = 2;
    twice.global_batch = 128;
    CHECK(part(mixture, twice, "expert all-to-all") ==
          doctest::Approx(2 * all_to_all).epsilon(0.05));
    // Beyond a node tokens go over its NICs.
    ParallelPlan far = eight;
    far.expert = 32;
    CHECK(part(mixture, far, "expert all-to-all") > 2 * all_to_all);
}

TEST_CASE_FIXTURE(Split, "the busiest expert rank holds up the others") {
    ParallelPlan even;
    even.data = 8;
    even.expert = 8;
    even.global_batch = 8;
    even.sequence_length = 4096;
    ParallelPlan uneven = even;
    uneven.expert_imbalance = 1.5;
    CHECK(step(mixture, uneven) > step(mixture, even));
    CHECK(part(mixture, uneven, "expert all-to-all") >
          1.4 * part(mixture, even, "expert all-to-all"));
    CHECK(step(dense, uneven) == step(dense, even));
}

TEST_CASE_FIXTURE(Split,
                  "ZeRO-3 gets slower with more ranks, and sharding in a node is in between") {
    const TransformerModel small = read_model(catalogue, "llama2_7b");
    const auto plan = [](std::int64_t ranks, int zero, std::int64_t shards) {
        ParallelPlan p;
        p.data = ranks;
        p.global_batch = ranks;
        p.sequence_length = 512;  // little to hide behind
        p.cuda_graphs = true;     // nor any wait for launches
        p.zero = zero;
        p.shard_ranks = shards;
        return p;
    };
    double before = 0;
    for (const std::int64_t ranks : {8, 64, 512, 4096}) {
        const double now = step(small, plan(ranks, 3, 0));
        CHECK(now > before);
        before = now;
    }
    const double whole = step(small, plan(512, 3, 0));
    const double hybrid = step(small, plan(512, 3, 8));
    CHECK(hybrid < whole);
    CHECK(step(small, plan(8, 3, 0)) < hybrid);
    const double in_node = memory(small, plan(512, 3, 8), "weights");
    CHECK(memory(small, plan(512, 3, 0), "weights") < in_node);
    CHECK(in_node < memory(small, plan(512, 1, 0), "weights"));
}

TEST_CASE_FIXTURE(Split, "gathering parameter by parameter is slower than layer by layer") {
    ParallelPlan flat;
    flat.data = 64;
    flat.global_batch = 64;
    flat.sequence_length = 1024;
    flat.zero = 3;
    ParallelPlan scattered = flat;
    scattered.flat_parameters = false;
    CHECK(step(dense, scattered) > 2 * step(dense, flat));
}

TEST_CASE_FIXTURE(Split, "jitter of zero changes nothing, any other waits for the largest of all") {
    ParallelPlan steady = base_plan();
    ParallelPlan jittery = steady;
    jittery.jitter = 0.01;
    Communicators groups = this->groups();
    CHECK(model_step(dense, steady, groups, bytes, 30).straggler_wait == Duration{});
    const double wait = part(dense, jittery, "waiting for stragglers");
    CHECK(wait ==
          doctest::Approx(step(dense, steady) * 0.01 * expected_max_normal(64)).epsilon(1e-6));
    CHECK(step(dense, jittery) == doctest::Approx(step(dense, steady) + wait).epsilon(1e-6));
}

TEST_CASE_FIXTURE(Split, "the critical path adds up to the step") {
    ParallelPlan p = base_plan();
    p.tensor = 4;
    p.pipeline = 2;
    p.jitter = 0.01;
    double sum = 0;
    for (const PathPart& each : path(dense, p)) {
        CHECK(each.seconds >= 0);
        sum += each.seconds;
    }
    CHECK(sum == doctest::Approx(step(dense, p)).epsilon(1e-6));
}

TEST_CASE_FIXTURE(Split, "graphs take away the wait for launches, and only that") {
    const TransformerModel small = read_model(catalogue, "llama2_7b");
    ParallelPlan eager;
    eager.tensor = 8;
    eager.sequence_length = 512;
    ParallelPlan graphs = eager;
    graphs.cuda_graphs = true;
    const double wait = part(small, eager, "waiting for launches");
    CHECK(wait > 0);
    CHECK(step(small, graphs) == doctest::Approx(step(small, eager) - wait));
}

TEST_CASE_FIXTURE(Split, "no step is faster on slower GPUs, whatever hides behind what") {
    const TransformerModel small = read_model(catalogue, "llama2_7b");
    for (const std::int64_t tensor : {1, 8}) {
        for (const std::int64_t sequence : {512, 2048, 4096}) {
            for (const std::int64_t zero : {0, 1, 2, 3}) {
                for (const Recompute recompute : {Recompute::none, Recompute::full}) {
                    ParallelPlan p = base_plan();
                    p.tensor = tensor;
                    p.data = 64 / tensor;
                    p.sequence_length = sequence;
                    p.zero = zero;
                    p.recompute = recompute;
                    CAPTURE(tensor);
                    CAPTURE(sequence);
                    CAPTURE(zero);
                    double faster_gpu = 0;
                    for (const double speed : {1.0, 0.9, 0.7, 0.5, 0.25}) {
                        CAPTURE(speed);
                        Split slower;
                        slower.node = with_faults(node, {{Part::gpu, 0, 0, speed}});
                        const double time = slower.step(small, p);
                        CHECK(time >= faster_gpu);
                        faster_gpu = time;
                    }
                }
            }
        }
    }
}

TEST_CASE_FIXTURE(Split,
                  "fp8 speeds up multiplications by the ratio of what was measured, at most") {
    const ParallelPlan wide = base_plan();
    ParallelPlan narrow = wide;
    narrow.precision = Precision::fp8;
    const double ratio = node.gpu.fp8_achievable.per_second / node.gpu.bf16_achievable.per_second;
    const double gain =
        part(dense, wide, "matrix multiplications") / part(dense, narrow, "matrix multiplications");
    CHECK(gain > 1.2);
    CHECK(gain <= ratio);
    CHECK(part(dense, narrow, "attention") == part(dense, wide, "attention"));
}

TEST_CASE_FIXTURE(Split, "one fused block needs half the tensor-parallel collectives") {
    TransformerModel parallel = dense;
    parallel.parallel_block = true;
    const ParallelPlan p = base_plan();
    CHECK(part(parallel, p, "tensor-parallel collectives") ==
          doctest::Approx(part(dense, p, "tensor-parallel collectives") / 2));
}

TEST_CASE_FIXTURE(Split, "a window bounds what attention costs") {
    const TransformerModel m = read_model(catalogue, "mistral_7b");
    CHECK(attended_tokens(m, 4096) == 4096);
    CHECK(attended_tokens(m, 8192) == 2 * 4096 - 4096.0 * 4096 / 8192);
    CHECK(attended_tokens(dense, 8192) == 8192);
}

TEST_CASE_FIXTURE(Split,
                  "a step is computed once for each condition, and every condition is its own") {
    int computed = 0;
    StepModel model({dense, bytes, 30}, [&](const std::vector<PartFault>& faults) {
        ++computed;
        return Communicators(constants, with_faults(node, faults));
    });
    ParallelPlan plan;
    plan.tensor = 8;
    plan.data = 4;
    plan.global_batch = 16;
    plan.sequence_length = 4096;
    const Duration sound = model.step(plan).duration();
    CHECK(model.step(plan).duration() == sound);
    CHECK(computed == 1);
    const PartFault slow{Part::gpu, 1, 2, 0.9};
    CHECK(model.step(plan, {slow}).duration() > sound);
    CHECK(model.step(plan, {slow}).duration() == model.step(plan, {slow}).duration());
    CHECK(computed == 2);
    for (auto change :
         {+[](PartFault& f) { f.part = Part::nic; }, +[](PartFault& f) { f.node = 0; },
          +[](PartFault& f) { f.index = 0; }, +[](PartFault& f) { f.speed = 0.8; }}) {
        PartFault other = slow;
        change(other);
        const int before = computed;
        model.step(plan, {other});
        CHECK(computed == before + 1);
    }
    plan.order = RankOrder::data_tensor_pipeline;
    CHECK(model.step(plan).duration() > sound);
}

TEST_CASE_FIXTURE(Split, "the fullest stage counts, though it be neither the first nor the last") {
    TransformerModel m =
        read_model(catalogue, "llama3_405b");  // 126 layers: 7, 8, 8, ... 7 on 16 stages
    ParallelPlan p = base_plan();
    p.pipeline = 16;
    p.data = 4;
    p.global_batch = 256;
    const double second = memory(m, p, "activations");
    p.pipeline = 18;  // 7 on each
    const double first = memory(m, p, "activations");
    CHECK(second / first == doctest::Approx(8.0 * 15 / (7 * 18)).epsilon(1e-9));
}

TEST_CASE_FIXTURE(Split, "layers of the ends may be given, and the fullest stage sets the pace") {
    TransformerModel m = read_model(catalogue, "deepseek_v3");  // 61 layers, three of them dense
    ParallelPlan p = base_plan();
    p.pipeline = 16;
    p.tensor = 1;
    CHECK_FALSE(layers_split(m, p));
    p.first_stage_layers = 3;
    CHECK_FALSE(layers_split(m, p));
    p.last_stage_layers = 2;
    REQUIRE(layers_split(m, p));
    const std::vector<StageRun> runs = stage_runs(m, p);
    REQUIRE(runs.size() == 3);
    CHECK(runs[0].layers == LayerCounts{{3, 0}});
    CHECK(runs[1].first == 1);
    CHECK(runs[1].count == 14);
    CHECK(runs[1].layers == LayerCounts{{0, 4}});
    CHECK(runs[2].layers == LayerCounts{{0, 2}});
    p.first_stage_layers = p.last_stage_layers = 0;
    p.pipeline = 21;  // two dense layers, then one with two others, then three with experts each
    REQUIRE(layers_split(m, p));
    CHECK(stage_runs(m, p)[1].layers == LayerCounts{{1, 2}});
    for (const PathPart& part : path(m, p)) {
        if (part.name == "matrix multiplications") {
            CHECK(part.count == 3 * static_cast<double>(p.microbatches()));
        }
    }
}

TEST_CASE_FIXTURE(Split,
                  "a slow GPU holds up every microbatch, and not the stages that it isn't in") {
    ParallelPlan p = base_plan();
    p.pipeline = 8;
    p.data = 1;
    p.global_batch = 8;
    StepModel steps({dense, bytes, 30}, [&](const std::vector<PartFault>& faults) {
        return Communicators(constants, with_faults(node, faults));
    });
    const std::vector<PartFault> slow = {{Part::gpu, 0, 0, 0.5}};
    const StepTime sound = steps.step(p);
    const StepTime one = steps.step(p, slow);
    const StepTime all = steps.step(p, {}, slow);
    CHECK(one.compute == all.compute);
    CHECK(one.bubble == sound.bubble);
    CHECK(all.bubble > sound.bubble * 1.5);
}

TEST_CASE_FIXTURE(Split, "pairs of GPUs on bridges meet over PCIe, not through their NICs") {
    const Node pairs = read_node(catalogue, "h100_pcie_8");
    const CollectiveConstants its = read_collective_constants(catalogue, pairs);
    Communicators groups(its, pairs);
    const double pcie = pcie_ring_bytes_per_s(pairs, pairs.gpus);
    CHECK(groups.of(Collective::all_gather, 1, 8).network == doctest::Approx(pcie));
    CHECK(groups.of(Collective::all_gather, 1, 2).domains == 1);
    CHECK(make_communicator(its, pairs, {8, 8}).network == doctest::Approx(pcie));
}

TEST_CASE_FIXTURE(Split, "context-parallel ranks share out experts as others do") {
    TransformerModel m = read_model(catalogue, "mixtral_8x7b");
    ParallelPlan p = base_plan();
    p.tensor = 1;
    p.expert = 8;
    p.data = 64;
    p.overlap_data = false;
    const double alone = part(m, p, "gradients and weights");
    p.context = 8;
    p.data = 8;
    CHECK(part(m, p, "gradients and weights") == doctest::Approx(alone).epsilon(1e-9));
}
