// Models whose layers are not all alike: states in place of keys and values, experts in some layers, layers
// that are one part alone.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "models/training/plan_check.h"
#include "tests/models/stack.h"

using namespace railyard;

namespace {

ParallelPlan on_8(std::int64_t sequence_length) {
    ParallelPlan p;
    p.data = 8;
    p.global_batch = 8;
    p.sequence_length = sequence_length;
    return p;
}

// A small model of states alone.
TransformerModel states(std::int64_t layers) {
    TransformerModel m;
    m.name = "states";
    m.layers = layers;
    m.hidden = 1024;
    m.ffn = 4096;
    m.heads = m.kv_heads = 8;
    m.head_dim = m.value_dim = 128;
    m.vocab = 32000;
    m.sequence_length = 4096;
    m.state = {.heads = 32,
               .head_dim = 64,
               .size = 128,
               .groups = 8,
               .conv = 4,
               .chunk = 256,
               .kernel_efficiency = 0.1};
    return m;
}

// What is wrong with a model like another that has these keys.
std::string complaint(const std::string& like, const std::string& keys) {
    Diagnostics problems;
    const Document document = parse_document(
        fmt::format("[model.mine]\nlike = \"{}\"\n{}", like, keys), "mine.toml", problems);
    problems.raise_if_any();
    ValueReader reader(problems, "mine.toml");
    const auto own = std::make_shared<OwnEntries>(reader, document.root);
    StandaloneCatalogue catalogue{ValueChoice::corrected, nullptr, "mine.toml", {}, {}, own};
    std::string out;
    try {
        if (problems.ok()) read_model(catalogue.catalogue, "mine");
    } catch (const ScenarioError& error) {
        out = error.what();
    }
    for (const Diagnostics* each : {&problems, &catalogue.diagnostics}) {
        for (const Diagnostic& error : each->errors()) out += error.path + ": " + error.message;
    }
    return out;
}

}  // namespace

TEST_CASE_FIXTURE(Stack, "models of mixed layers have the parameters that are published") {
    const struct {
        const char* name;
        double params, active;
    } published[] = {
        {"nemotron_h_8b", 8.1e9, 8.1e9},
        {"nemotron_3_nano", 31.6e9, 3.6e9},  // with both embeddings
        {"qwen3_next_80b_a3b", 80e9, 3.9e9},
        {"llama4_maverick", 400e9, 17e9},
        {"minimax_01", 456e9, 45.9e9 + 200064.0 * 6144 * 2},
    };
    for (const auto& each : published) {
        CAPTURE(each.name);
        const TransformerModel m = read_model(catalogue, each.name);
        CHECK(parameter_count(m) == doctest::Approx(each.params).epsilon(0.006));
        CHECK(active_parameter_count(m) == doctest::Approx(each.active).epsilon(0.015));
    }
    CHECK(diagnostics.ok());
}

TEST_CASE_FIXTURE(Stack, "each layer is of the kind that the model says, on whatever stage") {
    const auto counts = [&](const char* name) { return count_layers(read_model(catalogue, name)); };
    const LayerCounts nemotron = counts("nemotron_h_8b");
    CHECK(nemotron.with(Mixer::state) == 24);
    CHECK(nemotron.with(Mixer::attention) == 4);
    CHECK(nemotron[{Mixer::none, FeedForward::dense}] == 24);
    const LayerCounts next = counts("qwen3_next_80b_a3b");
    CHECK(next[{Mixer::state, FeedForward::experts}] == 36);
    CHECK(next[{Mixer::attention, FeedForward::experts}] == 12);
    const LayerCounts maverick = counts("llama4_maverick");
    CHECK(maverick[{Mixer::attention, FeedForward::experts}] == 24);
    CHECK(maverick[{Mixer::attention, FeedForward::dense}] == 24);

    for (const char* name : {"nemotron_h_8b", "nemotron_3_nano", "minimax_01", "deepseek_v3"}) {
        CAPTURE(name);
        const TransformerModel m = read_model(catalogue, name);
        ParallelPlan p = on_8(4096);
        p.pipeline = 4;
        p.stage_layers = even_stages(m.layers, p.pipeline);
        LayerCounts sum;
        for (const StageRun& run : stage_runs(m, p)) {
            for (std::size_t i = 0; i < LayerKind::kinds; ++i) {
                sum.of[i] += static_cast<double>(run.count) * run.layers.of[i];
            }
        }
        CHECK(sum == count_layers(m));
    }
}

TEST_CASE("a layer with states has the parameters of its products, convolution and heads") {
    TransformerModel m = states(1);
    // In front: what is written and its gate 2 x 2048, keys and queries 2 x 1024, a step for each head.
    const double in = 1024.0 * (2 * 2048 + 2 * 1024 + 32);
    const double out = 2048.0 * 1024;
    const double convolution = (2048 + 2 * 1024) * 5.0;  // four taps and a bias
    CHECK(layer_parameters(m).state == in + out + convolution + 3 * 32 + 2048);
    m.state.delta_rule = true;  // two numbers of a token for each head, and no bias
    CHECK(layer_parameters(m).state ==
          in + 1024.0 * 32 + out + convolution * 4 / 5 + 2 * 32 + 2048);
    // Two parts: a state and a dense feed-forward, with a norm each.
    m.state.delta_rule = false;
    CHECK(parameter_count(m) ==
          layer_parameters(m).state + 2 * 1024.0 * 4096 + 2 * 1024 + 2 * 32000.0 * 1024 + 1024);
}

TEST_CASE_FIXTURE(Stack,
                  "a state's kernel takes its products or its bytes, whatever the sequence") {
    const Node n = node("dgx_h100");
    TransformerModel m = states(10);
    const auto kernel = [&](std::int64_t sequence, std::int64_t tensor = 1) {
        ParallelPlan p = on_8(sequence);
        p.tensor = tensor;
        p.data = 8 / tensor;
        p.global_batch = p.data;
        return part(m, p, n, "attention");
    };
    const double gaps = 3.5 * 10 * 5 * seconds(n.gpu.kernel_gap);
    // 256 tokens of a chunk meet in 8 groups' keys of 128 and in 2048 values; states of 128 rows are written
    // and read.
    const double products = 2 * (256.0 * 1024 + 256.0 * 2048 + 2 * 128.0 * 2048);
    const double by_products =
        3.5 * 10 * products * 4096 / (0.1 * n.gpu.sustained_flops(Precision::bf16));
    CHECK(kernel(4096) == doctest::Approx(by_products + gaps));
    // Twice the tokens of a sequence are twice the work, where attention's would be four times.
    CHECK(kernel(8192) - gaps == doctest::Approx(2 * (kernel(4096) - gaps)));
    CHECK(kernel(4096, 2) - gaps == doctest::Approx((kernel(4096) - gaps) / 2));
    // Kernels as good as products are bound by what they move.
    m.state.kernel_efficiency = 1;
    const double bytes = 2 * 2 * (2048.0 + 1024) + 12 * 128.0 * 2048 / 256;
    CHECK(kernel(4096) == doctest::Approx(3.5 * 10 * memory_seconds(n.gpu, bytes * 4096) + gaps));
    m.state.kernel_efficiency = 0.1;
    m.state.delta_rule = true;
    const double delta =
        2 * (32 * 256 * (3 * 128 + 256 / 3.0) + (2 * 256 + 3 * 128) * 2048.0) / products;
    CHECK(kernel(4096) - gaps == doctest::Approx(delta * by_products));
}

TEST_CASE_FIXTURE(Stack, "layers of one part add up to layers of two") {
    const Node n = node("dgx_h100");
    TransformerModel two = states(12);
    two.state = {};
    TransformerModel one = two;
    one.layers = 24;
    for (int i = 0; i < 12; ++i) one.layer_pattern += "*-";
    const ParallelPlan p = on_8(4096);
    CHECK(parameter_count(one) == parameter_count(two));
    CHECK(forward_flops_per_token(one, 4096) == forward_flops_per_token(two, 4096));
    for (const char* name : {"matrix multiplications", "attention", "elementwise kernels"}) {
        CAPTURE(name);
        CHECK(part(one, p, n, name) == doctest::Approx(part(two, p, n, name)));
    }
    for (const char* name : {"weights", "activations"}) {
        CAPTURE(name);
        CHECK(memory(one, p, n, name) == doctest::Approx(memory(two, p, n, name)));
    }
}

TEST_CASE_FIXTURE(Stack, "experts in each second layer cost half of what they cost in all") {
    const Node n = node("dgx_h100");
    TransformerModel m = states(24);
    m.state = {};
    m.experts = 64;
    m.topk = 2;
    m.expert_ffn = 2048;
    ParallelPlan p = on_8(4096);
    p.expert = 8;
    const double all = part(m, p, n, "expert all-to-all");
    m.experts_every = 2;
    CHECK(part(m, p, n, "expert all-to-all") == doctest::Approx(all / 2));
    const LayerParameters each = layer_parameters(m);
    CHECK(parameter_count(m) == 24 * each.attention + 12 * (each.ffn + each.dense_vectors) +
                                    12 * (each.shared + each.routed + each.expert_vectors) +
                                    outer_parameters(m));
}

TEST_CASE_FIXTURE(Stack, "ranks of a context take heads of a state, and gather keys of attention") {
    const Node n = node("dgx_h100");
    TransformerModel m = states(10);
    ParallelPlan p = on_8(8192);
    p.context = 2;
    p.data = 4;
    p.global_batch = 4;
    const double of_states = part(m, p, n, "context-parallel exchange");
    const CollectiveConstants constants = read_collective_constants(catalogue, n);
    Communicators groups(constants, n);
    double by_hand = 0;
    for (const double width : {2 * 2048 + 2 * 1024 + 32.0, 2048.0}) {
        by_hand += 2 * 10 *
                   seconds(Collective::all_to_all, groups.of(Collective::all_to_all, 1, 2),
                           4096 * width * 2);
    }
    CHECK(of_states == doctest::Approx(by_hand));
    m.attention_every = 1;  // no layer is left with a state
    m.state.heads = 33;     // and those would not divide
    CHECK(count_layers(m).with(Mixer::state) == 0);
    CHECK(plan_problems(m, p).empty());
    m.attention_every = 0;
    CHECK(plan_problems(m, p).front().message.find("33 heads with a state") != std::string::npos);
}

TEST_CASE("a pattern that says something else than the model is an error") {
    const auto said = [](const std::string& keys, const char* what) {
        return complaint("nemotron_h_8b", keys).find(what) != std::string::npos;
    };
    CHECK(complaint("nemotron_h_8b", "").empty());
    CHECK(complaint("nemotron_h_8b", "layers = 4\nlayer_pattern = \"M-M*\"").empty());
    CHECK(said("layer_pattern = \"M-M*\"", "4 letters for 52 layers"));
    CHECK(said("layers = 4\nlayer_pattern = \"M-X*\"", "found 'X'"));
    CHECK(said("layers = 4\nlayer_pattern = \"MEM*\"", "has 'E'"));
    CHECK(said("attention_every = 2", "letters say which"));
    CHECK(said("state_chunk = 0", "expected more than zero"));
    CHECK(said("parallel_block = true", "no other beside it"));
    CHECK(said("layers = 4\nlayer_pattern = \"-*-*\"", "where no layer has a state"));
    CHECK(
        complaint("nemotron_3_nano", "layers = 3\nlayer_pattern = \"M-E\"").find("have no width") !=
        std::string::npos);
    for (const char* key : {"experts_every = 2", "attention_every = 2", "state_chunk = 64",
                            "full_attention_every = 2"}) {
        CAPTURE(key);
        CHECK(complaint("llama2_7b", key).find("has no effect") != std::string::npos);
    }
    CHECK(said("state_groups = 7", "don't divide into 7 groups"));
    CHECK(complaint("llama3_8b", "state_heads = 8").find("is missing: it is needed here") !=
          std::string::npos);
}
