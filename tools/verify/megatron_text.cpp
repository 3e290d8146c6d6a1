#include "tools/verify/megatron_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/campaign/campaign.h"
#include "models/collective/collective.h"

namespace railyard {

namespace {

// Section 5.6's model, by its dimensions: 145 billion parameters.
constexpr std::int64_t layers_145b = 80;
constexpr std::int64_t batch_small_max = 32;  // Fig. 17: where both fit

class MegatronText {
  public:
    explicit MegatronText(const Value* overrides) : own_(ValueChoice::corrected, overrides) {}

    void verify(const Fields& f, std::vector<VerifiedRow>& out) {
        const std::string& quantity = f.text("quantity");
        if (quantity == "ckpt_size_1T_TB") {
            out.push_back({quantity, "TB", f.figure("value"), checkpoint_tb("megatron_1t")});
        } else if (quantity == "interleaved_bubble") {
            for (const std::int64_t v : {1, 2, 4}) out.push_back(bubble(v));
        } else if (quantity == "recompute_slowdown_small_batch_pct") {
            out.push_back({quantity, "% fewer sequences/s, up to", f.figure("value"),
                           recomputation_percent(), Published::at_most});
        }
    }
    void check() const { own_.diagnostics.raise_if_any(); }

  private:
    double checkpoint_tb(const char* model) {
        return parameter_count(read_model(own_.catalogue, model)) *
               own_.catalogue.number("checkpoint", "", "persisted_bytes_per_param") * 1e-12;
    }

    StepTime step_of(const TransformerModel& m, const ParallelPlan& p, const Node& node,
                     double optimizer_traffic) {
        Communicators groups(read_collective_constants(own_.catalogue, node), node);
        return model_step(m, p, groups, read_parameter_bytes(own_.catalogue), optimizer_traffic);
    }

    // (p - 1) / (v m) of the ideal time: equal stages, whose logits cost nothing, over a network that costs
    // nothing.
    VerifiedRow bubble(std::int64_t interleave) {
        ParallelPlan p;
        p.pipeline = 12;
        p.interleave = interleave;
        p.global_batch = 48;
        p.sequence_length = 2048;
        TransformerModel m = read_model(own_.catalogue, "gpt3_175b");
        m.vocab = 0;
        Node node = read_node(own_.catalogue, "dgx_a100");
        node.gpu.kernel_gap = {};
        node.gpu.step_overhead = {};
        const StepTime step = step_of(m, p, node, 0);
        const double formula = static_cast<double>(p.pipeline - 1) /
                               static_cast<double>(interleave * p.microbatches());
        return {fmt::format("interleaved_bubble, p = 12, m = 48, v = {}", interleave),
                "bubble over ideal time", formula, seconds(step.bubble) / seconds(step.compute)};
    }

    // 128 GPUs, (t, p) = (8, 16), the batch at which it costs most.
    double recomputation_percent() {
        TransformerModel m = read_model(own_.catalogue, "gpt3_175b");
        m.layers = layers_145b;
        const Node node = read_node(own_.catalogue, "dgx_a100");
        ParallelPlan p;
        p.tensor = 8;
        p.pipeline = 16;
        p.sequence_length = 2048;
        p.fused_attention = p.sequence_parallel = p.overlap_data = p.overlap_pipeline = false;
        const double traffic =
            own_.catalogue.number("bytes_per_param", "", "optimizer_step_traffic");
        const auto step_s = [&](Recompute recompute) {
            p.recompute = recompute;
            return seconds(step_of(m, p, node, traffic).duration());
        };
        double most = 0;
        for (p.global_batch = 1; p.global_batch <= batch_small_max; p.global_batch *= 2) {
            most = std::max(most, 1 - step_s(Recompute::none) / step_s(Recompute::full));
        }
        return 100 * most;
    }

    StandaloneCatalogue own_;
};

}  // namespace

VerifiedTable verify_megatron_text(const CsvTable& table, const Value* overrides) {
    VerifiedTable out{table.name, "Megatron-LM SC'21, numbers of the text", table.rows.size()};
    MegatronText text(overrides);
    each_row(table, out.unused, [&](const Fields& f) { text.verify(f, out.expressed); });
    text.check();
    return out;
}

}  // namespace railyard
