// SimAI's workload: a step of the job's first stage, as its generator AICB writes it. Its simulator makes
// messages of the collectives; what hides behind what, and the pipeline, are its own.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/export/export.h"

namespace railyard {

namespace {

// A collective as a row has it.
struct RowMessage {
    std::string kind = "NONE";
    std::int64_t bytes = 0;
};

std::string simai_row(const std::string& name, double forward_s, const RowMessage& forward,
                      double input_s, const RowMessage& input, const RowMessage& weights) {
    const auto ns = [](double s) { return std::max<std::int64_t>(1, std::llround(s * 1e9)); };
    return fmt::format("{}\t-1\t{}\t{}\t{}\t{}\t{}\t{}\t1\t{}\t{}\t100\n", name, ns(forward_s),
                       forward.kind, forward.bytes, ns(input_s), input.kind, input.bytes,
                       weights.kind, weights.bytes);
}

std::string simai_kind(Collective collective) {
    switch (collective) {
        case Collective::all_reduce:
            return "ALLREDUCE";
        case Collective::all_gather:
            return "ALLGATHER";
        case Collective::reduce_scatter:
            return "REDUCESCATTER";
        case Collective::all_to_all:
            return "ALLTOALL";
        default:
            return {};
    }
}

class SimaiWorkload {
  public:
    explicit SimaiWorkload(const Scenario& s) : s_(s), p_(s.plan) {}
    std::string text() {
        check();
        Communicators groups = communicators(s_, s_.fidelity);
        const StepOutline outline =
            step_outline(s_.model, p_, groups, s_.parameter_bytes, s_.optimizer_traffic);
        stage_ = &outline.stages.front();
        exchange(CallPurpose::weights, "grad_gather", "moe_grad_norm1");
        exchange(CallPurpose::gradients, "grad_param_comm", "moe_grad_norm2");
        row(simai_row("grad_param_compute", 0, {}, stage_->optimizer_s, {}, {}));
        for (std::int64_t microbatch = 0; microbatch < p_.microbatches(); ++microbatch) {
            if (stage_->run.layers.vision && p_.images > 0) layer("vision_encoder", outline.vision);
            for (std::int64_t i = 0; i < layers(); ++i) {
                const LayerKind kind = s_.model.layer(i);
                layer(fmt::format("{}{}", kind.experts() ? "moelayer" : "layer", i),
                      outline.layer(kind));
            }
            if (p_.offload_layers > 0) {
                row(simai_row("offload", stage_->to_host_s, {}, stage_->from_host_s, {}, {}));
            }
            if (p_.pipeline > 1) continue;
            row(simai_row("cross_entropy", outline.head_s / 3, {}, outline.head_s * 2 / 3, {}, {}));
        }
        return head(outline) + rows_;
    }

  private:
    void check() const {
        const auto refuse = [&](const char* what, const char* help) {
            throw ScenarioError(fmt::format("{}: SimAI's workload has no {}", s_.file, what), help);
        };
        if (p_.context > 1) refuse("exchange of keys and values", "job.parallel.context = 1");
        if (p_.zero >= 3) refuse("weights that come layer by layer", "job.parallel.zero = 1 or 2");
        if (p_.schedule != PipelineSchedule::one_forward_one_backward) {
            refuse("pipeline but 1F1B's", "job.parallel.schedule = \"1f1b\"");
        }
        if (p_.expert > 1 && p_.dispatch == ExpertDispatch::two_stage) {
            refuse("dispatch to experts in two stages", "job.parallel.dispatch = \"all_to_all\"");
        }
    }

    std::int64_t layers() const { return static_cast<std::int64_t>(stage_->run.layers.all()); }
    void exchange(CallPurpose purpose, const char* name, const char* of_experts) {
        std::vector<CollectiveCall> calls = stage_->exchanges;
        std::erase_if(calls, [&](const CollectiveCall& call) { return call.purpose != purpose; });
        for (const RowMessage& each : messages(calls)) {
            const bool experts = each.kind.ends_with("_EP");
            row(simai_row(experts ? of_experts : name, 0, {}, 0, {}, each));
        }
    }

    // A row has one collective for each direction: a layer is as many rows, which share its kernels' time.
    // Rows go back in the opposite order.
    void layer(const std::string& name, const LayerOutline& layer) {
        std::vector<CollectiveCall> calls = layer.recompute.calls;
        calls.insert(calls.end(), layer.backward.calls.begin(), layer.backward.calls.end());
        std::vector<RowMessage> forward = messages(layer.forward.calls);
        std::vector<RowMessage> back = messages(calls);
        const std::size_t rows = std::max<std::size_t>({1, forward.size(), back.size()});
        forward.resize(rows);
        back.resize(rows);
        std::ranges::reverse(back);
        const auto share = [&](const PassOutline& pass) {
            return (pass.attention_s + pass.other_s) / static_cast<double>(rows);
        };
        for (std::size_t i = 0; i < rows; ++i) {
            row(simai_row(fmt::format("{}_{}", name, i), share(layer.forward), forward[i],
                          share(layer.recompute) + share(layer.backward), back[i], {}));
        }
    }

    // One after another, each as often as it comes. A group of experts' has another name.
    std::vector<RowMessage> messages(const std::vector<CollectiveCall>& calls) const {
        std::vector<RowMessage> out;
        for (const CollectiveCall& call : calls) {
            RowMessage one{simai_kind(call.collective), std::llround(call.bytes)};
            if (call.ranks == 1 || one.kind.empty() || one.bytes == 0) continue;
            const bool exchange =
                call.purpose == CallPurpose::weights || call.purpose == CallPurpose::gradients;
            if (call.purpose == CallPurpose::expert) one.kind += "_EP";
            if (exchange && call.ranks < p_.data) one.kind += "_DP_EP";
            for (std::int64_t k = std::llround(call.count); k > 0; --k) out.push_back(one);
        }
        return out;
    }

    std::string head(const StepOutline& outline) const {
        const std::string between =
            p_.pipeline > 1 ? fmt::format(" pp_comm {}", std::llround(outline.boundary_bytes)) : "";
        return fmt::format(
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {} ep: {} pp: {} vpp: {} "
            "ga: {} all_gpus: {} checkpoints: 0 checkpoint_initiates: 0{}\n{}\n",
            p_.tensor, p_.expert, p_.pipeline, layers(), p_.microbatches(), p_.gpus(), between,
            count_);
    }

    void row(const std::string& line) {
        rows_ += line;
        ++count_;
    }

    const Scenario& s_;
    const ParallelPlan& p_;
    const StageOutline* stage_ = nullptr;
    std::string rows_;
    std::int64_t count_ = 0;
};

}  // namespace

std::string simai_workload(const Scenario& s) {
    if (s.world || s.model.name.empty() || s.given_step || s.trace) return {};
    return SimaiWorkload(s).text();
}

}  // namespace railyard
