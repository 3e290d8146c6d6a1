// Software stacks, precisions and ways of training: what each does to a step.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/models/stack.h"

using namespace railyard;

namespace {

ParallelPlan on_64() {
    ParallelPlan p;
    p.tensor = 4;
    p.data = 16;
    p.global_batch = 64;
    p.sequence_length = 4096;
    return p;
}

// Mixtures on 64 GPUs of eight nodes.
ParallelPlan experts_on_64() {
    ParallelPlan p = on_64();
    p.tensor = 1;
    p.data = 64;
    p.expert = 64;
    return p;
}

}  // namespace

TEST_CASE_FIXTURE(Stack, "every stack is read, and reaches the GPU whole") {
    const TransformerModel m = read_model(catalogue, "llama3_8b");
    ParallelPlan p = on_64();
    p.precision = Precision::fp8;
    CHECK(software_names().size() + 1 == Catalogue::names("software").size());  // the unnamed
    for (const std::string& name : software_names()) {
        CAPTURE(name);
        const Node plain = node("dgx_h100");
        const Software software = read_software(catalogue, software_id(name), plain.gpu);
        Node with = plain;
        run_software(software, with);
        CHECK(with.gpu.sustained_flops(Precision::fp8) ==
              doctest::Approx(
                  plain.gpu.sustained_flops(Precision::fp8) *
                  software.kernels.kernel_quality[static_cast<std::size_t>(Precision::fp8)]));
        CHECK(with.gpu.fused_attention_efficiency == software.kernels.fused_attention_efficiency);
        CHECK(part(m, p, with, "") > 0);
    }
    CHECK(diagnostics.ok());
}

TEST_CASE("layers dealt out evenly differ by one at most, and the last stage has the fewest") {
    CHECK(even_stages(61, 8) == std::vector<std::int64_t>{7, 7, 8, 8, 8, 8, 8, 7});
    for (std::int64_t stages = 1; stages <= 24; ++stages) {
        for (std::int64_t layers = stages; layers <= 80; ++layers) {
            const auto even = even_stages(layers, stages);
            const auto [least, most] = std::ranges::minmax(even);
            CHECK(std::accumulate(even.begin(), even.end(), std::int64_t{0}) == layers);
            CHECK(most - least <= 1);
            CHECK(even.back() == least);
        }
    }
}

TEST_CASE("versions have a dot in a scenario, and none in the catalogue") {
    const auto& names = software_names();
    const auto at = std::find(names.begin(), names.end(), "nemo_25.09");
    REQUIRE(at != names.end());
    CHECK(software_id("nemo_25.09") == "nemo_25_09");
    CHECK(std::count(names.begin(), names.end(), "megatron_2021") == 1);
}

TEST_CASE_FIXTURE(
    Stack, "in two stages a token goes once to each node, and no further than its router says") {
    TransformerModel m = read_model(catalogue, "deepseek_v3");
    const Node n = node("dgx_h100");
    ParallelPlan p = experts_on_64();
    const double copies = part(m, p, n, "expert all-to-all");
    p.dispatch = ExpertDispatch::two_stage;
    m.nodes_per_token = 0;
    const double once = part(m, p, n, "expert all-to-all");
    m.nodes_per_token = 4;
    const double limited = part(m, p, n, "expert all-to-all");
    // Eight copies, seven eighths of them elsewhere, against 8 (1 - (7/8)^8) = 5.25 nodes, seven eighths of
    // them others; and against four.
    CHECK(once / copies == doctest::Approx(5.25 / 8).epsilon(0.03));
    CHECK(limited / once == doctest::Approx(4 / 5.25).epsilon(0.03));
}

TEST_CASE_FIXTURE(Stack, "folded experts are whole: their tensor collectives are gone") {
    const TransformerModel m = read_model(catalogue, "mixtral_8x7b");
    const Node n = node("dgx_h100");
    ParallelPlan split = on_64();
    split.expert = 8;
    ParallelPlan folded = split;
    folded.fold_experts = true;
    CHECK(part(m, folded, n, "tensor-parallel collectives") <
          0.6 * part(m, split, n, "tensor-parallel collectives"));
    // Eight experts on eight ranks: one whole expert each, or a quarter of one on 32.
    const LayerCounts layers{{0, static_cast<double>(m.layers)}};
    CHECK(rank_parameters(m, folded, layers).routed ==
          doctest::Approx(4 * rank_parameters(m, split, layers).routed));
    CHECK(plan_problems(m, folded).empty());
    folded.expert = 64;
    CHECK_FALSE(plan_problems(m, folded).empty());  // there are eight
}

TEST_CASE_FIXTURE(Stack, "folded experts are neighbours whichever ranks come first") {
    const TransformerModel m = read_model(catalogue, "mixtral_8x7b");
    const Node n = node("dgx_h100");
    ParallelPlan plan = on_64();
    plan.expert = 8;
    plan.fold_experts = true;
    plan.data *= plan.tensor;
    plan.tensor = 1;
    const double first = part(m, plan, n, "expert all-to-all");
    CHECK(first > 0);
    for (std::size_t order = 0; order < rank_order_names.size(); ++order) {
        CAPTURE(rank_order_names[order]);
        plan.order = static_cast<RankOrder>(order);
        CHECK(part(m, plan, n, "expert all-to-all") == first);
    }
    plan.tensor = 4;
    plan.data /= 8;
    plan.pipeline = 2;
    plan.order = RankOrder::data_tensor_pipeline;
    CHECK(plan.expert_stride() == 1);
    CHECK(plan_problems(m, plan).empty());
    plan.order = RankOrder::data_pipeline_tensor;
    CHECK(plan_problems(m, plan).empty());  // eight data ranks are neighbours of eight experts
    plan.order = RankOrder::tensor_pipeline_data;
    REQUIRE(plan_problems(m, plan).size() == 1);
    CHECK(plan_problems(m, plan)[0].key == "order");
}

TEST_CASE_FIXTURE(
    Stack,
    "experts that are folded and not split exchange gradients with all ranks that have them") {
    const TransformerModel m = read_model(catalogue, "mixtral_8x7b");
    const Node n = node("dgx_h100");
    ParallelPlan split = on_64();
    split.expert = 1;
    ParallelPlan folded = split;
    folded.fold_experts = true;
    for (const int zero : {0, 1, 2, 3}) {
        CAPTURE(zero);
        split.zero = zero;
        folded.zero = zero;
        // Tensor ranks that fold hold whole experts, so more gradients are exchanged.
        CHECK(part(m, folded, n, "gradients and weights") >
              part(m, split, n, "gradients and weights"));
    }
}

TEST_CASE_FIXTURE(
    Stack,
    "adapters leave a frozen model two thirds of its multiplications, no gradients, no optimizer") {
    const TransformerModel m = read_model(catalogue, "llama2_70b");
    const Node n = node("dgx_h100");
    ParallelPlan whole = on_64();
    whole.tensor = 8;
    whole.data = 8;
    ParallelPlan adapters = whole;
    adapters.adapter_rank = 16;
    const double ratio = part(m, adapters, n, "matrix multiplications") /
                         part(m, whole, n, "matrix multiplications");
    CHECK(ratio > 2.0 / 3);
    CHECK(ratio < 0.75);
    CHECK(part(m, adapters, n, "gradients and weights") == 0);
    // Weights that are shared among ranks have to be gathered, frozen or not.
    ParallelPlan gathered = adapters;
    whole.zero = gathered.zero = 3;
    whole.overlap_data = gathered.overlap_data = false;
    const double all = part(m, whole, n, "gradients and weights");
    CHECK(part(m, gathered, n, "gradients and weights") ==
          doctest::Approx(all * 2 / 3).epsilon(0.05));
    whole.zero = 1;
    CHECK(memory(m, adapters, n, "optimizer state") == 0);
    CHECK(memory(m, adapters, n, "weights") == memory(m, whole, n, "weights"));
}

TEST_CASE_FIXTURE(Stack, "narrower products are faster, and their scales cost what they read") {
    const TransformerModel m = read_model(catalogue, "llama3_70b");
    const Node n = node("dgx_b200");
    ParallelPlan p = on_64();
    const auto time = [&](Precision precision, const char* name) {
        p.precision = precision;
        return part(m, p, n, name);
    };
    CHECK(time(Precision::nvfp4, "matrix multiplications") <
          time(Precision::mxfp8, "matrix multiplications"));
    CHECK(time(Precision::mxfp8, "matrix multiplications") <
          time(Precision::bf16, "matrix multiplications"));
    CHECK(cast_bytes(Precision::fp8, true) == 4);
    CHECK(cast_bytes(Precision::fp8_current, true) == 6);
    CHECK(cast_bytes(Precision::fp8_rowwise, true) == 10);
    // Where weights are frozen no product asks for transposed tokens.
    CHECK(cast_bytes(Precision::fp8, false) == 3);
    CHECK(cast_bytes(Precision::fp8_current, false) == 5);
    CHECK(cast_bytes(Precision::fp8_rowwise, false) == 5);
    CHECK(cast_bytes(Precision::nvfp4, false) == 4.5625);
    CHECK(time(Precision::fp8_current, "elementwise kernels") >
          time(Precision::fp8, "elementwise kernels"));
    CHECK(node("dgx_h100").gpu.achievable(Precision::nvfp4).per_second == 0);
}

TEST_CASE_FIXTURE(Stack, "what is quantized before it is gathered travels as narrow as it is") {
    const TransformerModel m = read_model(catalogue, "llama3_70b");
    const Node n = node("dgx_b200");
    const CollectiveConstants constants = read_collective_constants(catalogue, n);
    Communicators groups(constants, n);
    ParallelPlan p = on_64();
    p.cuda_graphs = true;  // nothing waits for launches instead
    const auto saved = [&](Precision precision, std::int64_t adapters = 0) {
        p.precision = precision;
        p.adapter_rank = adapters;
        ParallelPlan narrow = p;
        narrow.quantize_before_gather = true;
        return part(m, p, n, "") - part(m, narrow, n, "");
    };
    // Inputs of two products forward and gradients of two outputs backward; what is scattered is a sum.
    const auto gathers = [&](double width) {
        const double layers = static_cast<double>(p.microbatches() * m.layers);
        return 4 * layers *
               seconds(Collective::all_gather, groups.of(Collective::all_gather, 1, 4),
                       width * p.rank_tokens() * static_cast<double>(m.hidden));
    };
    CHECK(saved(Precision::fp8) == doctest::Approx(gathers(2) - gathers(1)).epsilon(1e-6));
    CHECK(saved(Precision::mxfp8) ==
          doctest::Approx(gathers(2) - gathers(1 + 1.0 / 32)).epsilon(1e-6));
    CHECK(saved(Precision::nvfp4) ==
          doctest::Approx(gathers(2) - gathers(0.5 + 1.0 / 16)).epsilon(1e-6));
    CHECK(saved(Precision::bf16) == 0);
    CHECK(saved(Precision::fp8_rowwise) == 0);
    CHECK(saved(Precision::fp8, 16) == 0);
    p.sequence_parallel = false;  // what is summed up is not gathered
    CHECK(saved(Precision::fp8) == 0);
}

TEST_CASE_FIXTURE(Stack, "what is computed again is paid for, part by part") {
    const TransformerModel m = read_model(catalogue, "llama3_70b");
    const Node n = node("dgx_h100");
    ParallelPlan p = on_64();
    const auto again = [&](Recompute recompute, unsigned parts, std::int64_t layers = 0) {
        p.recompute = recompute;
        p.recompute_parts = parts;
        p.recompute_layers = layers;
        return part(m, p, n, "recomputation");
    };
    const double half = again(Recompute::alternate, 0);
    CHECK(again(Recompute::elementwise, 0) < half);
    CHECK(half < again(Recompute::full, 0));
    CHECK(again(Recompute::selective, recompute_norms) > 0);
    CHECK(again(Recompute::selective, recompute_norms | recompute_feed_forward) >
          again(Recompute::selective, recompute_norms));
    CHECK(again(Recompute::full, 0, m.layers / 4) ==
          doctest::Approx(again(Recompute::full, 0) / 4));
}

TEST_CASE_FIXTURE(Stack, "activations on the host leave the GPU and wait for the link to it") {
    const TransformerModel m = read_model(catalogue, "llama3_70b");
    Node n = node("dgx_h100");
    ParallelPlan p = on_64();
    const LayerCounts all{{static_cast<double>(m.layers)}};
    const auto activations = [&](std::int64_t layers) {
        p.offload_layers = layers;
        return memory(m, p, n, "activations");
    };
    const double kept = activations(0);
    CHECK(activations(m.layers / 4) == doctest::Approx(kept * 3 / 4));
    CHECK(activations(m.layers) == doctest::Approx(0));
    CHECK(activations(2 * m.layers) == doctest::Approx(0));
    CHECK(host_bytes_per_gpu(m, p) == doctest::Approx(kept));
    CHECK(offloaded_bytes(m, p, all) == doctest::Approx(kept));

    const auto waited = [&](double gb_per_s) {
        n.gpu.host_bandwidth = Bandwidth::bits_per_second(std::llround(gb_per_s * 8e9));
        return part(m, p, n, "activations to the host and back");
    };
    CHECK(waited(1e5) == 0);
    // Once nothing hides it, each further second on the link is seen, there and back.
    const double moved = 2 * static_cast<double>(p.microbatches()) * kept;  // bytes
    CHECK(waited(0.5) - waited(1) == doctest::Approx(moved / 1e9));
    CHECK(node("gb200_nvl72").gpu.host_bandwidth > node("dgx_h100").gpu.host_bandwidth * 5.0);
}

TEST_CASE_FIXTURE(Stack, "recomputation that stops early leaves a dense layer's ending out") {
    const TransformerModel m = read_model(catalogue, "llama3_70b");
    const Node n = node("dgx_h100");
    const CollectiveConstants constants = read_collective_constants(catalogue, n);
    Communicators groups(constants, n);
    ParallelPlan whole = on_64();
    whole.recompute = Recompute::full;
    ParallelPlan early = whole;
    early.recompute_stops_early = true;
    const double layers = static_cast<double>(whole.microbatches() * m.layers);
    const double h = static_cast<double>(m.hidden);
    const double tokens = whole.rank_tokens();
    const auto saved = [&](const TransformerModel& model, std::string_view name) {
        return part(model, whole, n, name) - part(model, early, n, name);
    };
    // The product that brings the feed-forward back, and the sum of two activations.
    CHECK(
        saved(m, "recomputation") ==
        doctest::Approx(layers * (gemm_seconds(n.gpu, {tokens, h, static_cast<double>(m.ffn) / 4}) +
                                  memory_seconds(n.gpu, 3 * 2 * tokens * h / 4))));
    CHECK(saved(m, "tensor-parallel collectives") ==
          doctest::Approx(layers * seconds(Collective::reduce_scatter,
                                           groups.of(Collective::reduce_scatter, 1, 4),
                                           2 * tokens * h)));
    CHECK(saved(m, "matrix multiplications") == 0);
    // A mixture's router learns from what the experts gave.
    CHECK(saved(read_model(catalogue, "mixtral_8x7b"), "") == 0);
    whole.recompute = early.recompute = Recompute::alternate;
    CHECK(saved(m, "") == 0);
}

TEST_CASE_FIXTURE(Stack, "launches that block are waited for beside kernels of any length") {
    const TransformerModel m = read_model(catalogue, "llama3_70b");
    const Node n = node("dgx_h100");
    ParallelPlan p = on_64();
    p.recompute = Recompute::full;
    p.overlap_data = false;  // gradients would hide behind these waits
    const auto waits = [&](const Node& on) { return part(m, p, on, "waiting for launches"); };
    const auto all = [&](const Node& on) { return part(m, p, on, ""); };
    const double layers = static_cast<double>(p.microbatches() * m.layers);
    // The kernels of this layer are longer: only what is computed again waits, for its random state.
    CHECK(waits(n) == doctest::Approx(layers * seconds(n.gpu.recompute_overhead)));
    const double before = all(n);
    p.launch_blocking = true;
    const double launches =
        2 * seconds(n.gpu.layer_launch_forward) + seconds(n.gpu.layer_launch_backward);
    CHECK(waits(n) == doctest::Approx(layers * launches));
    CHECK(all(n) - before ==
          doctest::Approx(layers * (launches - seconds(n.gpu.recompute_overhead))));
    p.cuda_graphs = true;
    CHECK(waits(n) == 0);
}

TEST_CASE_FIXTURE(Stack, "stages that are said one by one are the same stages") {
    const TransformerModel m = read_model(catalogue, "llama3_405b");  // 126 layers
    const Node n = node("dgx_h100");
    ParallelPlan p = on_64();
    p.pipeline = 4;
    p.data = 4;
    ParallelPlan said = p;
    said.stage_layers = {31, 32, 32, 31};
    CHECK(part(m, said, n, "") == part(m, p, n, ""));
    said.stage_layers = {31, 32, 33, 30};
    CHECK(plan_problems(m, said).empty());
    CHECK(part(m, said, n, "") > part(m, p, n, ""));
    said.stage_layers = {31, 32, 32, 32};
    CHECK_FALSE(plan_problems(m, said).empty());
}

TEST_CASE_FIXTURE(Stack, "a window on every other layer is looked at by half of them") {
    TransformerModel m = read_model(catalogue, "gpt_oss_120b");
    REQUIRE(m.full_attention_every == 2);
    const double all = 4096;
    m.full_attention_every = 0;
    const double windowed = attended_tokens(m, 4096);
    CHECK(windowed < 0.1 * all);
    m.full_attention_every = 2;
    CHECK(attended_tokens(m, 4096) == doctest::Approx((all + windowed) / 2));
}

TEST_CASE_FIXTURE(Stack, "the biases of experts are added expert by expert") {
    TransformerModel m = read_model(catalogue, "gpt_oss_120b");
    REQUIRE(m.linear_bias);
    const Node n = node("dgx_h100");
    ParallelPlan p = experts_on_64();
    const auto elementwise = [&](bool bias) {
        m.linear_bias = bias;
        return part(m, p, n, "elementwise kernels");
    };
    const auto added = [&] { return elementwise(true) - elementwise(false); };
    // Forward once, backward half as much again; 128 experts over 64 ranks are two on each.
    const double layers = static_cast<double>(p.microbatches() * m.layers);
    const double h = static_cast<double>(m.hidden);
    const double traffic = memory_seconds(n.gpu, 2 * 6 * p.rank_tokens() * 4 * h);
    const double gap = seconds(n.gpu.kernel_gap);
    CHECK(added() == doctest::Approx(layers * 2.5 * (traffic + 5 * gap)).epsilon(1e-3));
    p.expert = 8;  // 16 on each
    CHECK(added() == doctest::Approx(layers * 2.5 * (traffic + 33 * gap)).epsilon(1e-3));
    m = read_model(catalogue, "gpt3_175b");
    CHECK(added() == 0);
}

TEST_CASE_FIXTURE(Stack, "fused attention of narrow heads waits for exponentials") {
    TransformerModel m = read_model(catalogue, "llama3_8b");
    const Node n = node("dgx_h100");
    REQUIRE(m.head_dim == 128);
    const double wide = part(m, on_64(), n, "attention");
    m.heads *= 2;
    m.head_dim = m.value_dim = 64;  // as many multiplications, twice the scores
    const double exponential = n.gpu.exponential_width;
    CHECK(part(m, on_64(), n, "attention") / wide ==
          doctest::Approx((64 + exponential) / (128 + exponential) * 2).epsilon(0.01));
}

TEST_CASE_FIXTURE(
    Stack, "attention in 8 bits multiplies twice as fast and waits for exponentials as before") {
    // FlashAttention-3 (Shah et al., 2024; quoted from memory), forward on an H100 with heads of 128:
    // 1,008 TFLOP/s in fp8 beside 648 in fp16.
    TransformerModel m = read_model(catalogue, "llama3_8b");
    const Node n = node("dgx_h100");
    ParallelPlan p = on_64();
    p.sequence_length = 1 << 20;  // casts are nothing there
    p.microbatch = 1;
    const double wide = part(m, p, n, "attention");
    p.attention_in_fp8 = true;
    CHECK(wide / part(m, p, n, "attention") == doctest::Approx(1008.0 / 648).epsilon(0.03));
    m.heads *= 2;
    m.head_dim = m.value_dim = 64;
    const double narrow = part(m, p, n, "attention");
    p.attention_in_fp8 = false;
    CHECK(part(m, p, n, "attention") / narrow < 1.4);
}

TEST_CASE_FIXTURE(Stack, "attention in 8 bits keeps queries, keys and values as bytes") {
    const TransformerModel m = read_model(catalogue, "llama3_8b");
    const Node n = node("dgx_h100");
    ParallelPlan p = on_64();
    const double kept = memory(m, p, n, "activations");
    p.attention_in_fp8 = true;
    const double inputs = m.query_width() + 2 * m.kv_width();  // bytes that are saved of each token
    CHECK(kept - memory(m, p, n, "activations") ==
          doctest::Approx(static_cast<double>(m.layers) * p.rank_tokens() * inputs /
                          static_cast<double>(p.tensor)));
}

TEST_CASE_FIXTURE(Stack, "heads that begin between 16 bytes do without tensor cores") {
    TransformerModel m = read_model(catalogue, "bloom_176b");
    const Node n = node("dgx_a100");
    ParallelPlan p = on_64();
    const auto attention = [&](std::int64_t head) {
        m.head_dim = m.value_dim = head;
        return part(m, p, n, "attention");
    };
    CHECK(attention(108) < attention(112));
    p.fused_attention = false;
    CHECK(attention(104) < attention(112));
    CHECK(attention(108) > 2 * attention(112));
}

TEST_CASE_FIXTURE(Stack, "predicting a further token costs a layer and a loss") {
    TransformerModel m = read_model(catalogue, "deepseek_v3");
    const Node n = node("dgx_h100");
    const ParallelPlan p = experts_on_64();
    const double plain = part(m, p, n, "output layer and loss");
    m.mtp_layers = 1;
    CHECK(part(m, p, n, "output layer and loss") == doctest::Approx(2 * plain));
}

TEST_CASE_FIXTURE(Stack, "a step's error is wider the further it is from what was validated") {
    for (const bool experts : {false, true}) {
        const auto error = [&](const char* software, const char* on) {
            return read_step_error(catalogue, experts, software, node(on).gpu);
        };
        const StepError named = error("nemo_25_02", "dgx_h100");
        const StepError any = error("", "dgx_h100");
        const StepError new_gpu = error("nemo_25_02", "mi300x_8");
        CHECK(named.shown);
        // Its runs were on other GPUs, or were one training's.
        for (const StepError& other :
             {error("nemo_25_02", "dgx_a100"), error("deepspeed_2022", "dgx_a100")}) {
            CHECK(other.named);
            CHECK_FALSE(other.shown);
            CHECK(other.nine_tenths == any.nine_tenths);
        }
        CHECK(named.measured);
        CHECK_FALSE(new_gpu.measured);
        for (const StepError& each : {named, any, new_gpu}) CHECK(each.half < each.nine_tenths);
        CHECK(named.half <= any.half);
        CHECK(any.half <= new_gpu.half);
        CHECK(named.nine_tenths <= any.nine_tenths);
        CHECK(any.nine_tenths <= new_gpu.nine_tenths);
    }
}

TEST_CASE_FIXTURE(Stack, "memory keeps what is needed again, as narrow as it is read") {
    const TransformerModel m = read_model(catalogue, "llama2_70b");
    const Node n = node("dgx_h100");
    ParallelPlan p;
    p.tensor = 8;
    p.pipeline = 2;
    p.data = 4;
    p.global_batch = 64;
    p.sequence_length = 4096;
    const auto of = [&](const ParallelPlan& plan, const std::string& component) {
        for (const MemoryUse& use : memory_per_gpu(m, plan, bytes, n.gpu)) {
            if (use.component == component) return use.bytes;
        }
        FAIL(component);
        return 0.0;
    };
    const double kept = of(p, "activations");
    ParallelPlan narrow = p;
    narrow.precision = Precision::fp8;
    CHECK(of(narrow, "activations") < 0.9 * kept);
    ParallelPlan narrower = narrow;
    narrower.keep_in_fp8 = true;
    CHECK(of(narrower, "activations") < 0.9 * of(narrow, "activations"));
    ParallelPlan frozen = p;
    frozen.adapter_rank = 16;
    CHECK(of(frozen, "activations") < 0.9 * kept);
    CHECK(of(frozen, "optimizer state") == 0);
    ParallelPlan full = p;
    full.recompute = Recompute::full;
    ParallelPlan whole = full;
    whole.sequence_parallel = false;
    CHECK(of(whole, "activations") == doctest::Approx(8 * of(full, "activations")));
    ParallelPlan again = p;
    again.recompute_parts = recompute_attention;
    CHECK(of(again, "activations") < kept);
    ParallelPlan half = p;
    half.reduce_in_fp32 = false;
    CHECK(of(half, "gradients") == doctest::Approx(0.5 * of(p, "gradients")));
    // What an H100 is sold by is less than it has.
    CHECK(n.gpu.usable_memory > n.gpu.hbm_capacity);
}

TEST_CASE_FIXTURE(Stack,
                  "of gradients and weights in buckets the last and the first one are seen") {
    const TransformerModel m = read_model(catalogue, "llama3_8b");
    Node n = node("dgx_h100");
    n.gpu.overlap_tax = 0;
    ParallelPlan p = on_64();
    p.microbatch = 4;
    const auto seen = [&] { return part(m, p, n, "gradients and weights"); };
    REQUIRE(seen() == 0);  // as one exchange all of it hides
    p.buckets = true;
    CHECK(p.bucket_parameters() == 40e6);
    const CollectiveConstants constants = read_collective_constants(catalogue, n);
    Communicators groups(constants, n);
    const auto exchange = [&](double parameters, double buckets) {
        const auto time = [&](Collective kind, double bytes_each) {
            return seconds(kind, groups.of(kind, p.replica_stride(), p.data),
                           parameters * bytes_each / buckets);
        };
        return time(Collective::reduce_scatter, bytes.gradient) +
               time(Collective::all_gather, bytes.weight);
    };
    const double held = rank_parameters(m, p, {static_cast<double>(m.layers), 0}).common;
    CHECK(seen() == doctest::Approx(exchange(held, std::ceil(held / 40e6))));
    // More ranks have larger ones: what each sends stays as large.
    p.data = 128;
    p.global_batch = 512;
    CHECK(p.bucket_parameters() == 128e6);
    // Without overlap each bucket is.
    p.overlap_data = false;
    const double buckets = std::ceil(held / 128e6);
    CHECK(seen() == doctest::Approx(buckets * exchange(held, buckets)));
}

TEST_CASE_FIXTURE(
    Stack, "gradients and weights in buckets hide behind collectives that stay inside a node") {
    const TransformerModel m = read_model(catalogue, "llama3_8b");
    Node n = node("dgx_h100");
    n.gpu.overlap_tax = 0;
    ParallelPlan p = on_64();
    p.tensor = 8;
    p.data = p.global_batch = 8;  // one microbatch
    p.sequence_length = 1024;     // so short that they stick out
    p.cuda_graphs = true;         // and nothing waits for launches
    p.buckets = true;
    Node slow = n;
    slow.gpu.nccl_nvlink_bandwidth = slow.gpu.nccl_nvlink_bandwidth * 0.5;
    const auto longer = [&](std::string_view name) {
        return part(m, p, slow, name) - part(m, p, n, name);
    };
    REQUIRE(part(m, p, slow, "gradients and weights") > 0);
    CHECK(longer("tensor-parallel collectives") > 0);
    CHECK(longer("gradients and weights") ==
          doctest::Approx(-longer("tensor-parallel collectives")));
}

TEST_CASE_FIXTURE(Stack, "a layer that is computed again needs its room, beside the logits' only") {
    const TransformerModel m = read_model(catalogue, "llama2_70b");
    const Node n = node("dgx_h100");
    ParallelPlan p;
    p.tensor = 8;
    p.pipeline = 4;
    p.data = 2;
    p.global_batch = 16;
    p.microbatch = 2;
    p.sequence_length = 65536;
    p.fused_loss = true;
    const auto activations = [&](ParallelPlan plan) {  // of one layer and microbatch
        plan.microbatch = 2;
        return memory(m, plan, n, "activations") / (20 * 4);
    };
    const double kept = activations(p);
    p.recompute = Recompute::full;
    CHECK(memory(m, p, n, "recomputed layer") == doctest::Approx(kept - activations(p)));
    // On one stage what the logits need is free again by then.
    p.pipeline = 1;
    p.data = 8;
    const double again = memory(m, p, n, "recomputed layer");
    const double logits = memory(m, p, n, "logits");
    CHECK(std::max(0.0, again) + logits ==
          doctest::Approx(std::max(logits, kept - activations(p))).epsilon(0.01));
    p.recompute = Recompute::selective;
    CHECK(memory(m, p, n, "recomputed layer") == -1);
}

TEST_CASE_FIXTURE(Stack,
                  "a part that a layer has not frees no memory, and one that it has takes time") {
    const Node n = node("dgx_h100");
    ParallelPlan p = on_64();
    const TransformerModel plain = read_model(catalogue, "llama2_7b");
    const double kept = memory(plain, p, n, "activations");
    p.recompute_parts = recompute_latent_up;
    CHECK(memory(plain, p, n, "activations") == kept);
    p = experts_on_64();
    const TransformerModel latent = read_model(catalogue, "deepseek_v3");
    const double all = memory(latent, p, n, "activations");
    const double time = part(latent, p, n, "");
    p.recompute_parts = recompute_latent_up;
    CHECK(memory(latent, p, n, "activations") < all);
    CHECK(part(latent, p, n, "") > time);
}

TEST_CASE_FIXTURE(Stack, "without fused attention, what keeps no scores computes them again") {
    const TransformerModel m = read_model(catalogue, "gpt3_175b");
    const Node n = node("dgx_a100");
    ParallelPlan p = on_64();
    p.tensor = 8;
    p.data = 8;
    p.fused_attention = false;
    p.recompute = Recompute::none;
    const double none = part(m, p, n, "");
    p.recompute = Recompute::selective;
    const double selective = part(m, p, n, "");
    CHECK(selective > none);
    for (const unsigned more : {recompute_norms, recompute_activation, recompute_feed_forward}) {
        p.recompute_parts = more;
        CHECK(part(m, p, n, "") > selective);
    }
    p.recompute_parts = 0;
    p.recompute = Recompute::full;
    double before = selective;
    for (const std::int64_t layers : {1, 24, 48, 95}) {  // of 96
        p.recompute_layers = layers;
        const double now = part(m, p, n, "");
        CHECK(now > before);
        before = now;
    }
    p.recompute_layers = 0;
    CHECK(part(m, p, n, "") > before);
}

TEST_CASE_FIXTURE(
    Stack, "experts that are tensor ranks too are added up and updated where they are held") {
    TransformerModel m = read_model(catalogue, "mixtral_8x7b");
    Node n = node("dgx_h100");
    n.gpu.accumulation_traffic = 8;
    ParallelPlan p = on_64();
    p.tensor = 4;
    p.data = 16;
    p.expert = 8;
    p.zero = 1;
    p.cuda_graphs = true;
    const auto accumulated = [&](const ParallelPlan& plan) {
        Node without = n;
        without.gpu.accumulation_traffic = 0;
        return part(m, plan, n, "elementwise kernels") -
               part(m, plan, without, "elementwise kernels");
    };
    ParallelPlan folded = p;
    folded.fold_experts = true;
    const LayerParameters layer = layer_parameters(m);
    const auto of_layer = [&](double split) {
        return 32 * (layer.attention + layer.shared) / 4 + 32 * layer.routed / 8 / split;
    };
    const double passes = static_cast<double>(p.microbatches());
    const double bandwidth = n.gpu.hbm_bandwidth.bytes_per_second() * n.gpu.hbm_efficiency;
    CHECK(accumulated(p) == doctest::Approx(passes * 8 * of_layer(4) / bandwidth).epsilon(0.01));
    CHECK(accumulated(folded) ==
          doctest::Approx(passes * 8 * of_layer(1) / bandwidth).epsilon(0.01));
    // Either way a rank updates as much as it has optimizer state of.
    CHECK(memory(m, folded, n, "optimizer state") ==
          doctest::Approx(memory(m, p, n, "optimizer state")));
    CHECK(part(m, folded, n, "optimizer") == doctest::Approx(part(m, p, n, "optimizer")));
}
