// A model's parameters are those of its shape, wherever they are asked for.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "models/training/plan_check.h"
#include "models/training/training.h"
#include "sim/rng.h"

using namespace railyard;

namespace {

// The catalogue under a scenario's [override].
struct Overridden {
    explicit Overridden(const std::string& toml)
        : document(parse_document(toml, "overrides", problems)) {
        problems.raise_if_any();
    }
    TransformerModel model(const std::string& name) { return read_model(own.catalogue, name); }
    std::string text() {
        std::string out;
        for (const Diagnostic& each : own.diagnostics.errors())
            out += each.path + ": " + each.message;
        return out;
    }

    Diagnostics problems;
    Document document;
    StandaloneCatalogue own{ValueChoice::corrected, &document.root};
};

double parameters(const std::string& name, const std::string& overrides) {
    Overridden o(fmt::format("[model.{}]\n{}", name, overrides));
    const TransformerModel m = o.model(name);
    CHECK_MESSAGE(o.own.diagnostics.ok(), o.text());
    return parameter_count(m);
}

std::string complaint(const std::string& name, const std::string& overrides) {
    Overridden o(fmt::format("[model.{}]\n{}", name, overrides));
    o.model(name);
    return o.text();
}

// One of the shapes that a model's entry can be overridden to: layers, widths, experts at random.
std::string random_shape(const TransformerModel& m, RandomStream& random) {
    const auto pick = [&](std::int64_t most) {
        return 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most)));
    };
    std::string out = fmt::format("vocab = {}\n", 1000 * pick(200));
    if (m.layer_pattern.empty()) out += fmt::format("layers = {}\n", m.dense_layers + pick(96));
    if (Catalogue::entry("model", m.name)->find("ffn"))
        out += fmt::format("ffn = {}\n", 256 * pick(200));
    if (m.experts > 0) out += fmt::format("experts = {}\n", m.topk * pick(40));
    return out;
}

// Any plan at all; most of them don't divide.
ParallelPlan random_plan(const TransformerModel& m, RandomStream& random) {
    const auto power = [&](int most) {
        return std::int64_t{1} << random.below(static_cast<std::uint64_t>(most) + 1);
    };
    ParallelPlan p;
    p.tensor = power(3);
    p.context = power(2);
    p.pipeline = random.chance(0.5) ? power(4) : m.layers;
    p.data = power(5);
    if (m.experts > 0) p.expert = power(5);
    if (random.chance(0.5)) p.shard_ranks = power(4);
    if (p.pipeline > 1 && random.chance(0.3)) p.first_stage_layers = power(2);
    p.interleave = power(2);
    p.microbatch = power(2);
    p.global_batch = p.data * p.microbatch * p.pipeline * power(2);
    p.sequence_length = 1024 * power(4);
    p.zero = static_cast<int>(random.below(4));
    p.sequence_parallel = random.chance(0.5);
    p.fused_attention = random.chance(0.5);
    p.recompute = static_cast<Recompute>(random.below(4));
    p.expert_imbalance = 1 + random.uniform();
    return p;
}

}  // namespace

TEST_CASE("every model's shape has the parameters that are printed of it") {
    StandaloneCatalogue own;
    for (const std::string& name : Catalogue::names("model")) {
        CAPTURE(name);
        const TransformerModel m = read_model(own.catalogue, name);
        const auto printed = [&](const char* key) {
            return static_cast<double>(own.catalogue.integer("model", name, key));
        };
        CHECK(parameter_count(m) == doctest::Approx(printed("params")).epsilon(2e-4));
        CHECK(own.catalogue.has("model", name, "active_params") == (m.experts > 0));
        if (m.experts > 0) {
            CHECK(active_parameter_count(m) ==
                  doctest::Approx(printed("active_params")).epsilon(0.005));
        }
    }
    CHECK(own.diagnostics.ok());
}

TEST_CASE("a shape that a scenario overrides has its own parameters") {
    StandaloneCatalogue own;
    const TransformerModel llama = read_model(own.catalogue, "llama2_13b");
    const double outside = outer_parameters(llama);
    const double once = parameters("llama2_13b", "");
    CHECK(parameters("llama2_13b", "layers = 80") - outside ==
          doctest::Approx(2 * (once - outside)));
    // Twice the experts: twice their matrices and as many more rows of the router.
    const TransformerModel mixtral = read_model(own.catalogue, "mixtral_8x7b");
    const double more = static_cast<double>(mixtral.layers) *
                        (layer_parameters(mixtral).routed + layer_parameters(mixtral).shared);
    CHECK(parameters("mixtral_8x7b", "experts = 16") - parameters("mixtral_8x7b", "") ==
          doctest::Approx(more));
    CHECK(parameters("llama2_13b", "tied_embedding = true") ==
          doctest::Approx(once - 32000 * 5120));
    CHECK(parameters("llama2_13b", "kv_heads = 8") < once);
}

TEST_CASE("a count that the shape does not have, and a shape that no model has, are errors") {
    CHECK(complaint("llama2_13b", "").empty());
    CHECK(complaint("llama2_13b", "params = 13000000000").empty());  // 0.1 % off
    CHECK(complaint("llama2_13b", "params = 26000000000").find("has 1.30159e+10") !=
          std::string::npos);
    CHECK(complaint("llama2_13b", "layers = 80").empty());
    CHECK(complaint("llama2_13b", "layers = 80\nparams = 13016000000").find("params") !=
          std::string::npos);
    CHECK(complaint("llama2_13b", "heads = 39").find("override.model.llama2_13b.heads") !=
          std::string::npos);
    CHECK(complaint("llama3_8b", "kv_heads = 7").find("kv_heads") != std::string::npos);
    CHECK(complaint("mixtral_8x7b", "topk = 9").find("topk") != std::string::npos);
    CHECK(complaint("deepseek_v3", "layers = 2").find("layers") != std::string::npos);
    CHECK(complaint("llama2_13b", "glu = 3").find("true or false") != std::string::npos);
}

TEST_CASE(
    "the ranks of any plan of any model hold its parameters once, and need memory for each part") {
    StandaloneCatalogue own;
    const ParameterBytes bytes = read_parameter_bytes(own.catalogue);
    const Gpu gpu = read_node(own.catalogue, "dgx_h100").gpu;
    RandomStream random(7, 0, "plans");
    for (const std::string& name : Catalogue::names("model")) {
        int valid = 0;
        for (int i = 0; i < 1000; ++i) {
            const TransformerModel as_printed = read_model(own.catalogue, name);
            Overridden o(fmt::format("[model.{}]\n{}", name,
                                     i % 3 == 0 ? "" : random_shape(as_printed, random)));
            const TransformerModel m = o.model(name);
            REQUIRE_MESSAGE(o.own.diagnostics.ok(), o.text());
            const ParallelPlan p = random_plan(m, random);
            if (!plan_problems(m, p).empty()) continue;
            ++valid;
            CAPTURE(name);
            CAPTURE(split_text(p));
            double held = 0;
            bool layers_everywhere = true;
            for (const StageRun& run : stage_runs(m, p)) {
                layers_everywhere &= run.layers.all() > 0;
                const RankParameters rank = rank_parameters(m, p, run.layers);
                CHECK(rank.common > 0);
                CHECK(rank.routed >= 0);
                held += static_cast<double>(run.count * p.tensor) *
                        (rank.common + rank.vision + rank.routed * static_cast<double>(p.expert));
            }
            CHECK(held == doctest::Approx(parameter_count(m)).epsilon(1e-9));
            const std::vector<MemoryUse> uses = memory_per_gpu(m, p, bytes, gpu);
            for (const MemoryUse& use : uses) {
                CAPTURE(use.component);
                CHECK(std::isfinite(use.bytes));
                CHECK(use.bytes >= 0);
                // A stage of embeddings alone can be the fullest.
                const bool may_be_none = use.component == "logits" ||
                                         (use.component == "activations" && !layers_everywhere);
                if (!may_be_none) CHECK(use.bytes > 0);
            }
            CHECK(total_bytes(uses) == doctest::Approx(memory_bytes_per_gpu(m, p, bytes, gpu)));
        }
        CHECK_MESSAGE(valid >= 50, name, ": ", valid, " plans");
    }
}

TEST_CASE("one expert-parallel rank has the mean of all tokens, however uneven the experts are") {
    StandaloneCatalogue own;
    const ParameterBytes bytes = read_parameter_bytes(own.catalogue);
    const Node node = read_node(own.catalogue, "dgx_h100");
    const CollectiveConstants constants = read_collective_constants(own.catalogue, node);
    for (const std::string& name : Catalogue::names("model")) {
        const TransformerModel m = read_model(own.catalogue, name);
        for (const std::int64_t expert : {1, 8}) {
            CAPTURE(name);
            CAPTURE(expert);
            ParallelPlan even;
            even.data = 8;
            even.expert = expert;
            even.global_batch = 8;
            even.sequence_length = 2048;
            if (!plan_problems(m, even).empty()) continue;
            ParallelPlan uneven = even;
            uneven.expert_imbalance = 1.5;
            Communicators groups(constants, node);
            const auto step = [&](const ParallelPlan& p) {
                return model_step(m, p, groups, bytes, 30).duration();
            };
            const auto memory = [&](const ParallelPlan& p) {
                return memory_bytes_per_gpu(m, p, bytes, node.gpu);
            };
            const bool matters = expert > 1;
            CHECK((step(uneven) > step(even)) == matters);
            CHECK((memory(uneven) > memory(even)) == matters);
        }
    }
}

TEST_CASE("what a rank has whole anyway, ZeRO-3 does not gather") {
    StandaloneCatalogue own;
    const ParameterBytes bytes = read_parameter_bytes(own.catalogue);
    const Gpu gpu = read_node(own.catalogue, "dgx_h100").gpu;
    const auto gathered = [&](const char* name, std::int64_t data, std::int64_t expert,
                              std::int64_t shards) {
        ParallelPlan p;
        p.data = data;
        p.expert = expert;
        p.shard_ranks = shards;
        p.global_batch = data;
        p.sequence_length = 2048;
        p.zero = 3;
        const TransformerModel m = read_model(own.catalogue, name);
        REQUIRE(plan_problems(m, p).empty());
        for (const MemoryUse& use : memory_per_gpu(m, p, bytes, gpu)) {
            if (use.component == "gathered layers") return use.bytes;
        }
        return 0.0;
    };
    CHECK(gathered("llama2_7b", 1, 1, 0) == 0);
    CHECK(gathered("llama2_7b", 8, 1, 1) == 0);  // shards of one
    CHECK(gathered("llama2_7b", 2, 1, 0) > 0);
    // There is one copy of the experts: each rank has its own, and gathers the rest of the layer only.
    const TransformerModel m = read_model(own.catalogue, "mixtral_8x7b");
    const double common = layer_parameters(m).attention;
    CHECK(gathered("mixtral_8x7b", 8, 8, 0) < 2 * 2 * 1.5 * common);
    CHECK(gathered("mixtral_8x7b", 16, 8, 0) > 2 * 2 * layer_parameters(m).routed / 8);
}
