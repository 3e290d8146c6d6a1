// Images in front of a decoder: an encoder's parameters, FLOPs, kernels, memory and what its data does.

#include <doctest/doctest.h>

#include <cmath>

#include "models/training/layer_work.h"
#include "models/training/plan_check.h"
#include "sim/statistics.h"
#include "tests/models/stack.h"

using namespace railyard;

namespace {

struct Images : Stack {
    Node h100 = node("dgx_h100");
    TransformerModel model = read_model(catalogue, "qwen2_vl_7b");

    static ParallelPlan on_8(std::int64_t pipeline = 1) {
        ParallelPlan p;
        p.pipeline = pipeline;
        p.data = 8 / pipeline;
        p.global_batch = 32;
        p.sequence_length = 8192;
        p.images = 4;
        return p;
    }
    LayerWork vision(const ParallelPlan& p) {
        const CollectiveConstants constants = read_collective_constants(catalogue, h100);
        Communicators groups(constants, h100);
        return vision_work(model, p, groups);
    }
    double held(const ParallelPlan& p, const char* component) {
        return memory(model, p, h100, component);
    }
    double time(const ParallelPlan& p, const char* of) { return part(model, p, h100, of); }
};

}  // namespace

TEST_CASE_FIXTURE(Images, "an encoder has the parameters that are published") {
    // 8,291,375,616 of Qwen2-VL 7B less the 7,615,616,512 of Qwen2 7B.
    CHECK(vision_parameters(model.vision, model.hidden).all() == 675'759'104);
    // SigLIP's.
    const TransformerModel gemma = read_model(catalogue, "gemma3_27b");
    CHECK(vision_parameters(gemma.vision, gemma.hidden).layers ==
          doctest::Approx(417e6).epsilon(0.01));
    const struct {
        const char* name;
        double params;
    } published[] = {{"qwen2_vl_7b", 8.29e9}, {"qwen2_5_vl_72b", 73.4e9}, {"gemma3_27b", 27.43e9}};
    for (const auto& each : published) {
        CAPTURE(each.name);
        CHECK(parameter_count(read_model(catalogue, each.name)) ==
              doctest::Approx(each.params).epsilon(0.002));
    }
    CHECK(diagnostics.ok());
}

TEST_CASE_FIXTURE(Images,
                  "an image's FLOPs are its patches' through the layers, its tokens' behind") {
    const VisionEncoder& v = model.vision;
    const double matrices = 4.0 * 1280 * 1280 + 2.0 * 1280 * 5120;  // of a layer
    const double attention = 2.0 * 1024 * 1280;                     // multiply-adds, nothing masked
    const double patch = 32 * (matrices + attention) + 1176.0 * 1280;
    const double token = 5120.0 * 5120 + 5120.0 * 3584;  // four patches side by side
    CHECK(vision_flops(v, model.hidden).layers + vision_flops(v, model.hidden).projector ==
          doctest::Approx(2 * (1024 * patch + 256 * token)).epsilon(1e-3));  // biases
    ParallelPlan p = on_8();
    const double text = 3 * forward_flops_per_token(model, 8192) * 32 * 8192;
    const VisionFlops image = vision_flops(v, model.hidden);
    CHECK(model_flops(model, p) ==
          doctest::Approx(text + 3 * 32 * 4 * (image.layers + image.projector)));
    p.freeze_vision = true;
    CHECK(model_flops(model, p) ==
          doctest::Approx(text + 32 * 4 * (image.layers + 3 * image.projector)));
    // Windows see themselves and no more; each eighth layer of 72 B sees all.
    const TransformerModel windows = vision_layers(read_model(catalogue, "qwen2_5_vl_72b").vision);
    CHECK(attended_tokens(windows, 1024) == doctest::Approx(1024 / 8.0 + 64 * 7 / 8.0));
}

TEST_CASE_FIXTURE(Images, "an encoder's kernels are those of its products, with nothing masked") {
    const Gpu& gpu = h100.gpu;
    ParallelPlan p = on_8();
    const auto product = [&](double m, double n, double k) { return gemm_seconds(gpu, {m, n, k}); };
    const double patches = 4 * 1024;
    const double layer = product(patches, 3 * 1280, 1280) + product(patches, 1280, 1280) +
                         product(patches, 5120, 1280) + product(patches, 1280, 5120);
    const double outside =
        product(patches, 1280, 1176) + product(1024, 5120, 5120) + product(1024, 3584, 5120);
    // Rows of 1176 numbers begin at 16 bytes: the patches' product is the library's own, not a layer's.
    CHECK(vision(p).forward.multiplications == doctest::Approx(32 * layer + outside).epsilon(1e-6));
    // The decoder's kernel of the same shape skips its masked half.
    TransformerModel one = vision_layers(model.vision);
    const CollectiveConstants constants = read_collective_constants(catalogue, h100);
    Communicators groups(constants, h100);
    const ParallelPlan of = p.of_images(model.vision, 4);
    const double gap = seconds(gpu.kernel_gap);
    const double all = layer_work(one, of, groups, LayerKind{}).forward.attention - gap;
    one.masked = true;
    CHECK(all ==
          doctest::Approx(2 * (layer_work(one, of, groups, LayerKind{}).forward.attention - gap)));
    // Ten images take twice the time of five; a tenth of an image takes a tenth of one's.
    const auto forward = [&](double images) {
        p.images = images;
        return vision(p).forward.kernels();
    };
    const double single = forward(1);
    CHECK(forward(0.1) == doctest::Approx(0.1 * single));
    CHECK(forward(10) == doctest::Approx(2 * forward(5)).epsilon(0.05));
    CHECK(forward(0) == 0);
}

TEST_CASE_FIXTURE(Images, "a frozen encoder goes forward only, and keeps nothing of its layers") {
    ParallelPlan p = on_8();
    ParallelPlan frozen = p;
    frozen.freeze_vision = true;
    const LayerWork trained = vision(p);
    const LayerWork still = vision(frozen);
    CHECK(still.forward.total() == doctest::Approx(trained.forward.total()));
    CHECK(still.backward.kernels() < 0.1 * trained.backward.kernels());  // the projector's
    CHECK(still.backward.kernels() > 0);
    // Its weights stay, in 2 bytes; gradients and optimizer are of all others.
    const double layers = vision_parameters(model.vision, model.hidden).layers;
    CHECK(held(frozen, "weights") == doctest::Approx(held(p, "weights")));
    CHECK(held(p, "gradients") - held(frozen, "gradients") ==
          doctest::Approx(bytes.gradient * layers));
    CHECK(held(p, "optimizer state") - held(frozen, "optimizer state") ==
          doctest::Approx(bytes.optimizer * layers / 8));
    CHECK(held(p, "activations") > held(frozen, "activations"));
    CHECK(time(p, "gradients and weights") > time(frozen, "gradients and weights"));
    // Adapters leave both alone; 8 bits of the decoder's are not the encoder's.
    p.adapter_rank = 16;
    CHECK(vision(p).backward.total() == 0);
    const double in_16_bits = held(p, "weights");
    p.precision = Precision::fp8;
    p.gather_in_fp8 = true;
    const double all = vision_parameters(model.vision, model.hidden).all();
    CHECK(held(p, "weights") == doctest::Approx((in_16_bits - 2 * all) / 2 + 2 * all));
}

TEST_CASE_FIXTURE(Images, "the first stage has the encoder, and waits less with fewer layers") {
    ParallelPlan p = on_8(4);
    const std::vector<StageRun> runs = stage_runs(model, p);
    REQUIRE(runs.size() == 3);  // the first, the two between, the last
    CHECK(runs[0].layers.vision);
    CHECK_FALSE(runs[1].layers.vision);
    const RankParameters first = rank_parameters(model, p, runs[0].layers);
    const RankParameters second = rank_parameters(model, p, runs[1].layers);
    CHECK(first.common == second.common);
    CHECK(first.vision == doctest::Approx(vision_parameters(model.vision, model.hidden).all()));
    CHECK(second.vision == 0);
    p.images = 16;
    const double even = time(p, "");
    p.stage_layers = {4, 8, 8, 8};
    CHECK(time(p, "") < 0.9 * even);
    // Text alone pays for nothing but the weights.
    p.images = 0;
    CHECK(time(p, "vision encoder") == 0);
}

TEST_CASE_FIXTURE(Images,
                  "more images never take less time, frozen or not, wherever their number") {
    ParallelPlan p = on_8(4);
    p.tensor = 2;
    p.data = 1;
    for (const bool frozen : {false, true}) {
        p.freeze_vision = frozen;
        double before = 0;
        for (p.images = 0.25; p.images < 12; p.images += 0.25) {
            CAPTURE(p.images);
            CHECK(time(p, "") >= before * (1 - 1e-12));
            before = time(p, "");
        }
    }
    p.images = 3;
    const double three = vision(p).total();
    p.images = 4;
    const double four = vision(p).total();
    p.images = 3.25;
    CHECK(vision(p).total() == doctest::Approx(0.75 * three + 0.25 * four));
}

TEST_CASE_FIXTURE(Images, "a context's ranks share images out whole") {
    ParallelPlan p = on_8();
    p.data = 1;
    p.context = 8;
    const double of_four = vision(p).forward.kernels();
    p.images = 8;
    CHECK(vision(p).forward.kernels() == of_four);
    p.images = 9;
    CHECK(vision(p).forward.kernels() > 1.5 * of_four);
    p.images = 8.5;
    CHECK(vision(p).forward.kernels() > 1.2 * of_four);
    CHECK(vision(p).forward.kernels() < 1.8 * of_four);
}

TEST_CASE_FIXTURE(Images, "a frozen encoder makes no step longer, whatever is sharded") {
    ParallelPlan p = on_8();
    p.images = 0.1;
    p.sequence_length = 2048;
    for (p.zero = 0; p.zero <= 3; ++p.zero) {
        CAPTURE(p.zero);
        p.freeze_vision = false;
        const double trained = time(p, "");
        p.freeze_vision = true;
        CHECK(time(p, "") <= trained);
    }
}

TEST_CASE_FIXTURE(Images,
                  "the encoder recomputes all of itself, and none of it leaves for the host") {
    ParallelPlan p = on_8(4);
    p.images = 24;
    p.recompute = Recompute::full;
    // Four images of each microbatch, on the first stage, which is the fullest with and without.
    const auto of_four = [&] {
        ParallelPlan fewer = p;
        fewer.images = 20;
        return held(p, "activations") - held(fewer, "activations");
    };
    const double full = of_four();
    const double again = time(p, "vision encoder");
    CHECK(full > 0);
    CHECK(again > 0);
    p.recompute_layers = 1;
    CHECK(time(p, "vision encoder") == again);
    CHECK(of_four() == doctest::Approx(full));
    p.recompute_layers = 0;
    p.offload_layers = 7;
    CHECK(of_four() == doctest::Approx(full));
}

TEST_CASE_FIXTURE(Images,
                  "replicas wait for the one with most images, once its first stage is slowest") {
    ParallelPlan p = on_8();
    const double even = time(p, "waiting for stragglers");
    p.images_spread = 2;
    const double wait = time(p, "waiting for stragglers") - even;
    // A replica has 4 sequences, and a deviation of 2 x sqrt(4) images. One more takes what a fifth does.
    const double four = vision(p).total();
    p.images = 5;
    const double image = vision(p).total() - four;
    CHECK(wait == doctest::Approx(image * 2 * std::sqrt(4.0) * expected_max_normal(8)));
    // A first stage with room to spare waits for less.
    p = on_8(4);
    p.images_spread = 8;
    const auto waits = [&](std::int64_t first) {
        p.stage_layers = {first, 8, 8, 12 - first};
        return time(p, "waiting for stragglers");
    };
    CHECK(waits(8) > 0);
    CHECK(waits(4) < waits(8));
}

TEST_CASE_FIXTURE(Images, "an outline of a step sends what its images send, once") {
    const CollectiveConstants constants = read_collective_constants(catalogue, h100);
    const auto sent = [&](double images, std::int64_t microbatch) {
        ParallelPlan p = on_8();
        p.tensor = 2;
        p.data = 4;
        p.images = images;
        p.microbatch = microbatch;
        Communicators groups(constants, h100);
        double sum = 0;
        for (const CollectiveCall& call :
             step_outline(model, p, groups, bytes, 30).vision.forward.calls) {
            sum += call.count * call.bytes;
        }
        return sum;
    };
    const double one = sent(1, 1);
    CHECK(one > 0);
    CHECK(sent(0, 1) == 0);
    CHECK(sent(0.25, 1) == doctest::Approx(0.25 * one));
    CHECK(sent(29.0 / 7, 7) == doctest::Approx(29 * one));
    CHECK(sent(3.5, 2) == doctest::Approx(7 * one));
}

TEST_CASE_FIXTURE(Images, "a plan that has no room for its images is refused") {
    ParallelPlan p = on_8();
    CHECK(plan_problems(model, p).empty());
    p.images = 33;  // of 256 tokens each
    REQUIRE(plan_problems(model, p).size() == 1);
    CHECK(plan_problems(model, p)[0].key == "images");
    p.images = 1;
    model.heads = 32;
    model.vision.heads = 20;
    p.tensor = 8;
    p.data = 1;
    REQUIRE(plan_problems(model, p).size() == 1);
    CHECK(plan_problems(model, p)[0].message.find("20 heads of the vision encoder") == 0);
}
