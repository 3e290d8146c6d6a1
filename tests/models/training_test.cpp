#include "models/training/training.h"

#include <doctest/doctest.h>

#include <set>

#include "models/campaign/campaign.h"
#include "models/training/plan_check.h"
#include "tests/table.h"

using namespace railyard;

namespace {

struct Fixture : StandaloneCatalogue {
    TransformerModel model(const char* name) { return read_model(catalogue, name); }
    Node node(const char* name) { return read_node(catalogue, name); }
    Communicators communicators(const Node& n) {
        return Communicators(read_collective_constants(catalogue, n), n);
    }
    ParameterBytes bytes() { return read_parameter_bytes(catalogue); }
    double traffic() { return catalogue.number("bytes_per_param", "", "optimizer_step_traffic"); }
};

double component(const std::vector<MemoryUse>& uses, const std::string& name) {
    for (const MemoryUse& use : uses) {
        if (use.component == name) return use.bytes;
    }
    return -1;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "activation memory is that of Korthikanti et al., row by row") {
    constexpr double gib = 1024.0 * 1024 * 1024;
    int rows = 0;
    for (const TableRow& row : read_table("14_korthikanti_memory_fig1_fig7.csv")) {
        if (row.at("quantity") != "activations_GiB") continue;
        const bool small = row.at("model") == "22B";
        ParallelPlan p;
        p.tensor = 8;
        p.pipeline = small ? 1 : 8;
        p.interleave = small ? 1 : 3;
        p.microbatch = small ? 4 : 1;
        p.global_batch = p.microbatch * 64;
        p.sequence_length = 2048;
        p.sequence_parallel = row.at("mode") != "none";
        p.fused_attention = false;
        p.recompute = row.at("mode") == "none" ? Recompute::none : Recompute::selective;
        const TransformerModel m = model(small ? "megatron_22b" : "gpt3_175b");
        const double activations =
            component(memory_per_gpu(m, p, bytes(), node("dgx_a100").gpu), "activations");
        CAPTURE(row.at("model"));
        CAPTURE(row.at("mode"));
        CHECK(activations / gib ==
              doctest::Approx(std::stod(row.at("paper_value"))).epsilon(0.001));
        ++rows;
    }
    CHECK(rows == 4);
}

TEST_CASE_FIXTURE(Fixture, "model FLOPs per iteration are Megatron's formula") {
    for (const TableRow& row : read_oracle("74_oracle_training_arithmetic.csv")) {
        if (row.at("oracle") != "model FLOPs/iteration (no recompute)") continue;
        const bool small = row.at("config").starts_with("22B");
        TransformerModel m = model(small ? "megatron_22b" : "gpt3_175b");
        m.vocab = 51200;  // the table's
        const double flops = 3 * forward_flops_per_token(m, 2048) * 2048 * 1536;
        CHECK(flops == doctest::Approx(std::stod(row.at("value"))).epsilon(1e-6));
    }
}

TEST_CASE_FIXTURE(Fixture,
                  "adapters leave frozen weights one backward product, and attention both") {
    const TransformerModel m = model("gpt3_175b");
    ParallelPlan p;
    p.sequence_length = 2048;
    p.global_batch = 3;
    const double whole = model_flops(m, p);
    p.adapter_rank = 16;
    // Both passes over scores and sums stay; a pass over a frozen matrix is 2 h n a token, n outputs.
    const double attention = 96 * 4.0 * 2048 * 12288;
    const double matrices = 2 * (96 * 12 * 12288.0 * 12288 + 12288.0 * real(m.vocab));
    CHECK(mixing_flops_per_token(m, 2048) == doctest::Approx(attention).epsilon(1e-9));
    CHECK(whole == doctest::Approx(3 * 2048 * 3 * (matrices + attention)).epsilon(1e-9));
    CHECK(model_flops(m, p) ==
          doctest::Approx(3 * 2048 * (2 * matrices + 3 * attention)).epsilon(1e-9));
}

TEST_CASE_FIXTURE(
    Fixture, "the pipeline bubble is (p - 1) / (v m) of the ideal, in every row of the table") {
    int rows = 0;
    for (const TableRow& row : read_oracle("74_oracle_training_arithmetic.csv")) {
        if (row.at("oracle") != "pipeline bubble") continue;
        int p = 0, m = 0, v = 0;
        REQUIRE(std::sscanf(row.at("config").c_str(), "p=%d m=%d v=%d", &p, &m, &v) == 3);
        ParallelPlan plan;
        plan.pipeline = p;
        plan.interleave = v;
        plan.global_batch = m;
        plan.sequence_length = 2048;
        Node free_network = node("dgx_h100");
        TransformerModel tall = model("megatron_1t");
        tall.layers = 64 * p;  // logits then don't decide the slowest stage
        tall.vocab = 1;
        Communicators groups = communicators(free_network);
        const StepTime step = model_step(tall, plan, groups, bytes(), 0);
        CHECK(seconds(step.bubble) / seconds(step.compute) ==
              doctest::Approx(std::stod(row.at("value"))).epsilon(0.01));
        ++rows;
    }
    CHECK(rows == 11);
}

namespace {

// A step of Llama 3 70B on 256 H100, and whether it changes with something.
struct StepInputs : Fixture {
    TransformerModel m = model("llama3_70b");
    Node n = node("dgx_h100");
    ParallelPlan plan = of_70b();

    static ParallelPlan of_70b() {
        ParallelPlan p;
        p.tensor = 8;
        p.pipeline = 4;
        p.data = 8;
        p.interleave = 2;
        p.global_batch = 128;
        p.sequence_length = 4096;
        return p;
    }
    std::array<std::int64_t, 4> step(const ParallelPlan& p, const Node& on) {
        Communicators groups = communicators(on);
        const StepTime s = model_step(m, p, groups, bytes(), traffic());
        return {s.compute.count(), s.exposed_communication.count(), s.bubble.count(),
                s.straggler_wait.count()};
    }
    template <class Change>
    bool plan_changes(Change change) {
        ParallelPlan changed = plan;
        change(changed);
        return step(changed, n) != step(plan, n);
    }
    template <class Change>
    bool node_changes(Change change) {
        Node changed = n;
        change(changed);
        ParallelPlan exposed = plan;
        exposed.overlap_data = false;
        return step(exposed, changed) != step(exposed, n);
    }
};

}  // namespace

TEST_CASE_FIXTURE(StepInputs, "every input of a plan changes the step") {
    CHECK(plan_changes([](ParallelPlan& p) { p.tensor = 4; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.pipeline = 8; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.data = 4; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.interleave = 4; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.microbatch = 2; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.global_batch = 256; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.sequence_length = 8192; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.zero = 3; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.sequence_parallel = false; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.overlap_data = false; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.overlap_tensor = true; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.fused_attention = false; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.context = 2; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.shard_ranks = 2; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.overlap_pipeline = false; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.fused_loss = true; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.precision = Precision::fp8; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.jitter = 0.01; }));
    CHECK(plan_changes([](ParallelPlan& p) { p.recompute = Recompute::full; }));
}

TEST_CASE_FIXTURE(StepInputs, "every input of a node changes the step") {
    CHECK(node_changes([](Node& x) { x.gpu.bf16_achievable.per_second *= 0.9; }));
    CHECK(node_changes([](Node& x) { x.gpu.sustained_fraction *= 0.9; }));
    CHECK(node_changes([](Node& x) { x.gpu.hbm_bandwidth = x.gpu.hbm_bandwidth * 0.5; }));
    CHECK(node_changes([](Node& x) { x.gpu.fused_attention_efficiency *= 0.5; }));
    CHECK(node_changes([](Node& x) { x.gpu.loss_traffic *= 2; }));
    CHECK(node_changes([](Node& x) { x.gpu.step_overhead *= 2; }));
    CHECK(node_changes([](Node& x) { x.gpu.elementwise_traffic *= 2; }));
    CHECK(node_changes([](Node& x) { x.gpu.sms = 100000; }));
    CHECK(node_changes([](Node& x) { x.gpu.kernel_gap *= 2; }));
    CHECK(node_changes([](Node& x) { x.gpu.layer_launch_forward *= 100; }));
    CHECK(node_changes([](Node& x) { x.gpu.layer_launch_backward *= 100; }));
    CHECK(node_changes(
        [](Node& x) { x.gpu.nccl_nvlink_bandwidth = x.gpu.nccl_nvlink_bandwidth * 0.5; }));
    CHECK(node_changes([](Node& x) { x.nic_bandwidth = x.nic_bandwidth * 0.5; }));
    CHECK(node_changes([](Node& x) { x.nics = 4; }));
}

TEST_CASE_FIXTURE(Fixture,
                  "the plan search returns the fastest plan of each split that fits, in order") {
    const TransformerModel m = model("llama2_70b");
    const Node n = node("dgx_h100");
    ParallelPlan base;
    base.global_batch = 256;
    base.sequence_length = 4096;
    Communicators groups = communicators(n);
    const PlanSearch all = search_plans({m, base, 128, bytes(), traffic()}, groups);
    CHECK(all.fitting < all.tried);
    std::set<std::vector<std::int64_t>> splits;
    for (std::size_t i = 0; i < all.best.size(); ++i) {
        const RankedPlan& r = all.best[i];
        CHECK(r.plan.gpus() == 128);
        CHECK(plan_problems(m, r.plan).empty());
        CHECK(r.memory_bytes <= static_cast<double>(n.gpu.usable_memory.count()));
        if (i > 0) CHECK(all.best[i - 1].step.duration() <= r.step.duration());
        splits.insert({r.plan.tensor, r.plan.context, r.plan.pipeline, r.plan.data, r.plan.expert});
    }
    CHECK(splits.size() == all.best.size());
    CHECK(splits.size() > 10);
}

TEST_CASE_FIXTURE(Fixture,
                  "the plan search deals out layers that don't divide, and folds experts") {
    const Node n = node("dgx_h200");
    Communicators groups = communicators(n);
    ParallelPlan base;
    base.global_batch = 256;
    base.sequence_length = 4096;
    base.fold_experts = true;
    const TransformerModel m = model("deepseek_v3");  // 61 layers
    const PlanSearch all = search_plans({m, base, 128, bytes(), traffic()}, groups);
    std::size_t uneven = 0;
    std::size_t folded = 0;
    for (const RankedPlan& r : all.best) {
        CHECK(plan_problems(m, r.plan).empty());
        uneven += r.plan.stage_layers.empty() ? 0 : 1;
        folded += r.plan.expert > r.plan.replica_ranks() ? 1 : 0;
    }
    CHECK(uneven > 10);
    CHECK(folded > 10);
    // Layers with states allow fewer splits than layers with attention.
    const TransformerModel states = model("nemotron_h_8b");
    base.fold_experts = false;
    for (const RankedPlan& r : search_plans({states, base, 64, bytes(), traffic()}, groups).best) {
        CHECK(plan_problems(states, r.plan).empty());
    }
}

TEST_CASE_FIXTURE(Fixture, "the plan search is never slower than the plan that it begins with") {
    const Node n = node("dgx_h100");
    Communicators groups = communicators(n);
    const TransformerModel m = model("llama2_7b");
    ParallelPlan base;
    base.tensor = 2;
    base.data = 36;  // no power of two
    base.microbatch = 3;
    base.global_batch = 36 * 6;
    base.sequence_length = 4096;
    base.recompute = Recompute::alternate;  // which the search does not try
    REQUIRE(plan_problems(m, base).empty());
    const auto of_split = [&](const TransformerModel& of, const ParallelPlan& b) {
        for (const RankedPlan& r :
             search_plans({of, b, b.gpus(), bytes(), traffic()}, groups).best) {
            const ParallelPlan& p = r.plan;
            if (p.tensor == b.tensor && p.context == b.context && p.pipeline == b.pipeline &&
                p.data == b.data && p.expert == b.expert) {
                return r;
            }
        }
        return RankedPlan{};
    };
    CHECK(of_split(m, base).plan.microbatch > 0);
    // A last stage with fewer layers, beside a head that takes as long as several.
    ParallelPlan uneven;
    uneven.pipeline = 4;
    uneven.data = 2;
    uneven.microbatch = 1;
    uneven.global_batch = 64;
    uneven.sequence_length = 2048;
    uneven.recompute = Recompute::selective;
    uneven.zero = 1;
    uneven.interleave = 2;
    TransformerModel wide = model("llama3_8b");
    wide.vocab = 1'000'000;
    uneven.stage_layers = {11, 10, 9, 2};
    REQUIRE(plan_problems(wide, uneven).empty());
    const Duration given = model_step(wide, uneven, groups, bytes(), traffic()).duration();
    ParallelPlan even = uneven;
    even.stage_layers.clear();
    even.interleave = 1;
    CHECK(given < of_split(wide, even).step.duration());
    CHECK(of_split(wide, uneven).step.duration() <= given);
    base.tensor = 3;  // of no split that the search would try
    base.data = 24;
    TransformerModel three = m;
    three.heads = three.kv_heads = 24;
    const PlanSearch odd = search_plans({three, base, 72, bytes(), traffic()}, groups);
    CHECK(std::ranges::any_of(odd.best, [](const RankedPlan& r) { return r.plan.tensor == 3; }));
}

TEST_CASE_FIXTURE(Fixture, "the plan search keeps to the memory of the hosts") {
    const Node n = node("dgx_h100");
    Communicators groups = communicators(n);
    const TransformerModel m = model("llama2_7b");
    ParallelPlan base;
    base.global_batch = 216;
    base.sequence_length = 4096;
    // What leaves the GPUs has to fit beside them.
    base.tensor = 1;
    base.data = 72;
    base.microbatch = 1;
    base.offload_layers = 16;
    PlanTask task{m, base, 72, bytes(), traffic()};
    const PlanSearch free = search_plans(task, groups);
    task.host_bytes_per_gpu = 2e9;
    const PlanSearch bound = search_plans(task, groups);
    CHECK(bound.fitting < free.fitting);
    for (const RankedPlan& r : bound.best) CHECK(host_bytes_per_gpu(m, r.plan) <= 2e9);
}

TEST_CASE("every category of the ledger has a name, a meaning and Google's word for it") {
    for (std::size_t i = 0; i < category_count; ++i) {
        const auto category = static_cast<Category>(i);
        CHECK_FALSE(category_name(category).empty());
        CHECK_FALSE(category_doc(category).empty());
        CHECK_FALSE(category_goodput_name(category).empty());
    }
}

TEST_CASE("a drawn number of virtual stages is the nearest that the layers allow") {
    const char* const text = R"(
cluster.nodes = 2
[job]
model = "llama3_8b"
[job.parallel]
tensor = 4
pipeline = 4
global_batch = 64
interleave = { value = 8, class = "estimate", source = "none", low = 1, high = 8 }
)";
    for (const auto& [factor, stages] :
         {std::pair{1.0, 8}, {0.75, 8}, {0.6, 4}, {0.4, 4}, {0.3, 2}, {0.1, 1}}) {
        CAPTURE(factor);
        ScenarioChanges changes;
        changes.perturbations = {{"job.parallel.interleave", factor}};
        changes.must_run = false;
        CHECK(load_scenario(text, "drawn", changes).plan.interleave == stages);
    }
}
