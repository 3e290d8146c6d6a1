#include "tools/export/step_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace railyard {

std::int64_t ProcessGroups::of(std::int64_t rank, std::int64_t stride, std::int64_t ranks) {
    const std::int64_t first = rank - rank / stride % ranks * stride;
    const auto [found, is_new] = numbers_.try_emplace({first, stride, ranks}, 0);
    if (is_new) {
        keys_.push_back(found->first);
        found->second = std::ssize(keys_);
    }
    return found->second;
}

std::string ProcessGroups::json() const {
    std::string out = "{";
    for (std::size_t i = 0; i < keys_.size(); ++i) {
        const auto [first, stride, ranks] = keys_[i];
        out += fmt::format("{}\n  \"{}\": [", i > 0 ? "," : "", i + 1);
        for (std::int64_t k = 0; k < ranks; ++k) {
            out += fmt::format("{}{}", k > 0 ? ", " : "", first + k * stride);
        }
        out += "]";
    }
    return out + "\n}\n";
}

namespace {

using Id = ChakraTrace::Id;
using Ids = std::vector<Id>;

// One pass of a microbatch through one virtual stage.
struct Unit {
    bool backward = false;
    std::int64_t microbatch = 0;
    std::int64_t chunk = 0;
};

// Megatron's order: some forward passes ahead, then one forward and one backward in turn.
std::vector<Unit> schedule(const ParallelPlan& p, std::int64_t stage) {
    const std::int64_t units = p.microbatches() * p.interleave;
    const auto unit = [&](std::int64_t k, bool backward) {
        if (p.interleave == 1) return Unit{backward, k, 0};
        const std::int64_t round = p.pipeline * p.interleave;
        const std::int64_t chunk = k % round / p.pipeline;
        return Unit{backward, k / round * p.pipeline + k % p.pipeline,
                    backward ? p.interleave - 1 - chunk : chunk};
    };
    const std::int64_t behind = p.pipeline - 1 - stage;
    const std::int64_t ahead =
        std::min(units, p.interleave == 1 ? behind : 2 * behind + (p.interleave - 1) * p.pipeline);
    std::vector<Unit> out;
    for (std::int64_t k = 0; k < units + ahead; ++k) {
        if (k < units) out.push_back(unit(k, false));
        if (k >= ahead) out.push_back(unit(k - ahead, true));
    }
    return out;
}

class RankStep {
  public:
    RankStep(const TransformerModel& model, const ParallelPlan& plan, const StepOutline& outline,
             std::int64_t rank, ProcessGroups& groups)
        : m_(model),
          p_(plan),
          outline_(outline),
          rank_(rank),
          groups_(groups),
          stage_(rank / plan.pipeline_stride() % plan.pipeline) {
        const auto& stages = outline.stages;
        here_ = &*std::find_if(stages.begin(), stages.end(), [&](const StageOutline& each) {
            return stage_ < each.run.first + each.run.count;
        });
    }
    std::string trace();

  private:
    void forward(const Unit& unit);
    void backward(const Unit& unit);
    void layer(const PassOutline& pass, const std::string& name);
    void head(double seconds, const std::string& name);
    void recompute(const LayerOutline& layer, std::int64_t number, const std::string& name);

    // Layers of a virtual stage: numbers from `first` on, of the stage's; further tokens' come last.
    std::pair<std::int64_t, std::int64_t> layers_of(std::int64_t chunk) const;
    std::int64_t own_layers() const {
        return static_cast<std::int64_t>(here_->run.layers.dense + here_->run.layers.expert);
    }
    const LayerOutline& layer_at(std::int64_t number) const;
    bool last_of_all(std::int64_t chunk) const {
        return stage_ == p_.pipeline - 1 && chunk == p_.interleave - 1;
    }

    void wait(Id id) { tail_.push_back(id); }
    void chain(Id id) { tail_ = {id}; }
    // Behind `after`, one after another; what the last waits for.
    Ids collectives(const std::vector<CollectiveCall>& calls, CallPurpose purpose,
                    const std::string& name, Ids after, double share = 1);
    std::string place(const Unit& unit) const;
    void receive(const Unit& unit, const Ids& after);
    void send(const Unit& unit);
    void message(const Unit& unit, bool sent, std::int64_t chunk, std::int64_t by,
                 const Ids& after);
    // One layer's share of what the layers exchange with ZeRO-3.
    double layer_share() const {
        return 1.0 / static_cast<double>(std::max<std::int64_t>(1, own_layers()));
    }
    bool layered() const { return p_.zero >= 3; }
    void gather_layer(bool counts, const std::string& name, const Ids& begin);

    const TransformerModel& m_;
    const ParallelPlan& p_;
    const StepOutline& outline_;
    std::int64_t rank_;
    ProcessGroups& groups_;
    std::int64_t stage_;
    const StageOutline* here_;
    ChakraTrace out_;
    Ids tail_;         // what the next of the chain waits for
    Ids before_work_;  // what the last kernels waited for
    Ids gradients_;    // that the optimizer waits for
};

Ids RankStep::collectives(const std::vector<CollectiveCall>& calls, CallPurpose purpose,
                          const std::string& name, Ids after, double share) {
    for (const CollectiveCall& call : calls) {
        if (call.purpose != purpose || call.ranks == 1) continue;
        const auto ranks = static_cast<double>(call.ranks);
        const bool gathers = call.collective == Collective::all_gather;
        const std::int64_t bytes = std::llround(gathers ? call.bytes / ranks : call.bytes);
        const bool split = call.count > 1 && share < 1;
        const std::int64_t times =
            split ? std::llround(call.count * share) : std::llround(call.count);
        for (std::int64_t k = 0; k < times && bytes > 0; ++k) {
            after = {out_.collective(fmt::format("{} {}", name, to_text(call.collective)),
                                     call.collective, bytes,
                                     groups_.of(rank_, call.stride, call.ranks), after)};
        }
    }
    return after;
}

void RankStep::layer(const PassOutline& pass, const std::string& name) {
    const auto beside = [&](CallPurpose purpose, const char* what, const Ids& after) {
        const Ids end = collectives(pass.calls, purpose, name + what, after);
        return end == after ? Ids{} : end;
    };
    if (pass.attention_s + pass.other_s <= 0) return;
    before_work_ = tail_;
    Ids hidden;
    if (p_.overlap_expert) hidden = beside(CallPurpose::expert, " experts", tail_);
    Ids keys;
    if (p_.overlap_context) keys = beside(CallPurpose::context, " context", tail_);
    if (!p_.overlap_context) {
        tail_ = collectives(pass.calls, CallPurpose::context, name + " context", tail_);
    }
    if (pass.attention_s > 0) {
        chain(out_.compute(name + " attention", pass.attention_s, tail_));
    }
    for (const Id id : keys) wait(id);
    if (p_.overlap_tensor) {
        for (const Id id : beside(CallPurpose::tensor, " tensor", tail_)) hidden.push_back(id);
    }
    if (pass.other_s > 0) chain(out_.compute(name + " products", pass.other_s, tail_));
    if (!p_.overlap_tensor) {
        tail_ = collectives(pass.calls, CallPurpose::tensor, name + " tensor", tail_);
    }
    if (!p_.overlap_expert) {
        tail_ = collectives(pass.calls, CallPurpose::expert, name + " experts", tail_);
    }
    for (const Id id : hidden) wait(id);
}

void RankStep::head(double seconds, const std::string& name) {
    before_work_ = tail_;
    chain(out_.compute(name + " output and loss", seconds, tail_));
}

std::pair<std::int64_t, std::int64_t> RankStep::layers_of(std::int64_t chunk) const {
    const std::int64_t all = own_layers();
    const std::int64_t further = last_of_all(chunk) ? m_.mtp_layers : 0;
    return {all * chunk / p_.interleave, all * (chunk + 1) / p_.interleave + further};
}

const LayerOutline& RankStep::layer_at(std::int64_t number) const {
    const bool further = number >= own_layers();
    const bool dense =
        further ? m_.experts == 0 : number < static_cast<std::int64_t>(here_->run.layers.dense);
    return dense ? outline_.dense : outline_.expert;
}

// ZeRO-3: the layer waits for its weights, which come beside the one before it.
void RankStep::gather_layer(bool counts, const std::string& name, const Ids& begin) {
    if (!layered() || !counts) return;
    const Ids after = p_.overlap_data ? begin : tail_;
    const Ids end = collectives(here_->exchanges, CallPurpose::weights, name + " weights", after,
                                layer_share());
    if (end == after) return;
    if (!p_.overlap_data) tail_ = end;
    if (p_.overlap_data) {
        for (const Id id : end) wait(id);
    }
}

void RankStep::forward(const Unit& unit) {
    const auto [first, end] = layers_of(unit.chunk);
    before_work_ = tail_;
    for (std::int64_t i = first; i < end; ++i) {
        const std::string name = fmt::format("{} layer {}", place(unit), i);
        gather_layer(i < own_layers(), name, before_work_);
        layer(layer_at(i).forward, name);
    }
    if (last_of_all(unit.chunk)) {
        head(outline_.head_s * static_cast<double>(1 + m_.mtp_layers) / 3, place(unit));
    }
}

void RankStep::recompute(const LayerOutline& each, std::int64_t number, const std::string& name) {
    const bool some = p_.recompute == Recompute::full && p_.recompute_layers > 0;
    if (!some || number < p_.recompute_layers || number >= own_layers()) {
        layer(each.recompute, name + " again");
    }
}

void RankStep::backward(const Unit& unit) {
    const auto [first, end] = layers_of(unit.chunk);
    if (last_of_all(unit.chunk)) {
        head(outline_.head_s * static_cast<double>(1 + m_.mtp_layers) * 2 / 3, place(unit));
    }
    before_work_ = tail_;
    Ids scattered;
    for (std::int64_t i = end; i-- > first;) {
        const std::string name = fmt::format("{} layer {}", place(unit), i);
        gather_layer(i < own_layers(), name, before_work_);
        recompute(layer_at(i), i, name);
        layer(layer_at(i).backward, name);
        if (!layered() || i >= own_layers()) continue;
        // Those that no sharing splits by layer follow the stage's first.
        std::vector<CollectiveCall> calls = here_->exchanges;
        std::erase_if(calls, [&](const CollectiveCall& call) {
            return call.collective == Collective::all_reduce && i > 0;
        });
        const Ids sent =
            collectives(calls, CallPurpose::gradients, name + " gradients", tail_, layer_share());
        if (!p_.overlap_data) {
            tail_ = sent;
        } else if (sent != tail_) {
            scattered.insert(scattered.end(), sent.begin(), sent.end());
        }
    }
    for (const Id id : scattered) wait(id);
}

std::string RankStep::place(const Unit& unit) const {
    return p_.interleave == 1
               ? fmt::format("{} {}", unit.backward ? "backward" : "forward", unit.microbatch)
               : fmt::format("{} {}.{}", unit.backward ? "backward" : "forward", unit.microbatch,
                             unit.chunk);
}

// `chunk` is the sender's when sent, else the receiver's; `by` leads to the other stage.
void RankStep::message(const Unit& unit, bool sent, std::int64_t chunk, std::int64_t by,
                       const Ids& after) {
    const std::int64_t other = (stage_ + by + p_.pipeline) % p_.pipeline;
    const std::int64_t peer = rank_ + (other - stage_) * p_.pipeline_stride();
    ChakraTrace::Message message{sent, sent ? rank_ : peer, sent ? peer : rank_, 0,
                                 std::llround(outline_.boundary_bytes)};
    message.tag =
        ((unit.backward ? p_.interleave : 0) + chunk) * p_.microbatches() + unit.microbatch;
    const Id id =
        out_.message(fmt::format("{} {}", place(unit), sent ? "send" : "receive"), message, after);
    if (!sent) wait(id);
}

void RankStep::receive(const Unit& unit, const Ids& after) {
    const bool begins = unit.backward ? last_of_all(unit.chunk) : stage_ == 0 && unit.chunk == 0;
    if (!begins) message(unit, false, unit.chunk, unit.backward ? 1 : -1, after);
}

// A message's tag has the receiver's virtual stage.
void RankStep::send(const Unit& unit) {
    const bool ends = unit.backward ? stage_ == 0 && unit.chunk == 0 : last_of_all(unit.chunk);
    if (ends) return;
    const std::int64_t by = unit.backward ? -1 : 1;
    const bool around = unit.backward ? stage_ == 0 : stage_ == p_.pipeline - 1;
    message(unit, true, unit.chunk + (around ? by : 0), by, tail_);
}

std::string RankStep::trace() {
    const std::vector<Unit> units = schedule(p_, stage_);
    const std::int64_t last = std::ssize(units) - p_.interleave;  // of the last backward passes
    Ids weights;
    if (!layered()) {
        weights = collectives(here_->exchanges, CallPurpose::weights, "weights", {});
        if (!p_.overlap_data) tail_ = std::exchange(weights, {});
    }
    Ids before;
    for (std::int64_t i = 0; i < std::ssize(units); ++i) {
        const Unit& unit = units[static_cast<std::size_t>(i)];
        const Ids begun = tail_;
        receive(unit, p_.overlap_pipeline ? before : tail_);
        before = begun;
        const bool scatters =
            !layered() && unit.backward && (p_.zero == 2 ? unit.chunk == 0 : i == last);
        Ids scattered;
        if (scatters && p_.overlap_data) {
            scattered = collectives(here_->exchanges, CallPurpose::gradients,
                                    place(unit) + " gradients", tail_);
            if (scattered == tail_) scattered.clear();
        }
        unit.backward ? backward(unit) : forward(unit);
        send(unit);
        if (i == 0) {
            for (const Id id : weights) wait(id);
        }
        const Ids ahead = std::exchange(scattered, {});
        gradients_.insert(gradients_.end(), ahead.begin(), ahead.end());
        if (p_.zero == 2) {
            for (const Id id : std::exchange(gradients_, {})) wait(id);
        }
        const bool at_end = p_.zero == 2 ? scatters : i + 1 == std::ssize(units);
        if (!layered() && !p_.overlap_data && at_end) {
            tail_ = collectives(here_->exchanges, CallPurpose::gradients, "gradients", tail_);
        }
    }
    for (const Id id : gradients_) wait(id);
    out_.compute("optimizer", here_->optimizer_s, tail_);
    return out_.bytes();
}

}  // namespace

std::string step_trace(const TransformerModel& model, const ParallelPlan& plan,
                       const StepOutline& outline, std::int64_t rank, ProcessGroups& groups) {
    return RankStep(model, plan, outline, rank, groups).trace();
}

}  // namespace railyard
