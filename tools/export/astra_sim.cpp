// ASTRA-sim 3: its analytical network, its system, memory and process groups, and the workload.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "tools/export/chakra_trace.h"
#include "tools/export/export.h"

namespace railyard {

namespace {

// Process groups, numbered from 1 in the order in which ranks ask for them.
class ProcessGroups {
  public:
    // The group of `rank` with `ranks` members that are `stride` apart.
    std::int64_t of(std::int64_t rank, std::int64_t stride, std::int64_t ranks) {
        const std::int64_t first = rank - rank / stride % ranks * stride;
        const auto [found, is_new] = numbers_.try_emplace({first, stride, ranks}, 0);
        if (is_new) {
            keys_.push_back(found->first);
            found->second = std::ssize(keys_);
        }
        return found->second;
    }

    // ASTRA-sim's --comm-group-configuration: {"1": [0, 1], ...}.
    std::string json() const {
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

  private:
    using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // first rank, stride, ranks
    std::map<Key, std::int64_t> numbers_;
    std::vector<Key> keys_;  // by number - 1
};

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

double seconds_of(const std::vector<CollectiveCall>& calls, CallPurpose purpose,
                  Communicators& network) {
    double sum = 0;
    for (const CollectiveCall& call : calls) {
        if (call.purpose != purpose || call.ranks == 1) continue;
        sum +=
            call.count * seconds(call.collective,
                                 network.of(call.collective, call.stride, call.ranks), call.bytes);
    }
    return sum;
}

// Tensor-parallel collectives: the first, with so much of all bytes, and the others. One at most is cut.
std::pair<std::vector<CollectiveCall>, std::vector<CollectiveCall>> cut_tensor(
    const std::vector<CollectiveCall>& calls, double share) {
    std::pair<std::vector<CollectiveCall>, std::vector<CollectiveCall>> out;
    double left = 0;
    for (const CollectiveCall& call : calls) {
        if (call.purpose == CallPurpose::tensor) left += share * call.bytes;
    }
    for (CollectiveCall call : calls) {
        if (call.purpose != CallPurpose::tensor) continue;
        const double bytes = call.bytes;
        call.bytes = std::min(left, bytes);
        left -= call.bytes;
        if (call.bytes > 0) out.first.push_back(call);
        call.bytes = bytes - call.bytes;
        if (call.bytes > 0) out.second.push_back(call);
    }
    return out;
}

// A layer's kernels and what hides behind them, of the collectives that may.
void slow_layer(PassOutline& pass, const ParallelPlan& p, Communicators& network) {
    const Gpu& gpu = network.node().gpu;
    const auto beside = [&](bool hides, CallPurpose purpose, double work) {
        return hides ? std::min(work, seconds_of(pass.calls, purpose, network)) : 0;
    };
    const double work = pass.attention_s + pass.other_s;
    const double experts = beside(p.overlap_expert, CallPurpose::expert, work);
    const double keys = beside(p.overlap_context, CallPurpose::context, pass.attention_s);
    const double tensor =
        gpu.piecewise_overlap * beside(p.overlap_tensor, CallPurpose::tensor, pass.other_s);
    if (work <= 0) return;
    const double each = gpu.overlap_tax * experts / work;
    pass.attention_s += each * pass.attention_s + gpu.overlap_tax * keys;
    pass.other_s += each * pass.other_s + gpu.overlap_tax * tensor;
}

// The outline with what the layers' hidden collectives take from their kernels.
StepOutline slowed_by_hidden(StepOutline outline, const ParallelPlan& plan,
                             Communicators& network) {
    const auto slow = [&](LayerOutline& layer) {
        for (PassOutline* pass : {&layer.forward, &layer.recompute, &layer.backward}) {
            slow_layer(*pass, plan, network);
        }
    };
    for (LayerOutline& layer : outline.layers) slow(layer);
    slow(outline.vision);
    return outline;
}

// One step of a job, node by node, as each rank does it: what step.h adds up, in the order of Megatron's
// schedule (one forward, one backward; interleaved with virtual stages).
//
// What may not hide behind other work stands in one chain with it. What may begins with what it may hide
// behind and is waited for at that work's end: tensor-parallel collectives with a layer's products,
// context-parallel ones with its attention, expert-parallel ones with the layer, gradients with the last
// backward pass and weights with the first forward pass (of ZeRO-3 with the layer before), a message between
// stages with the pass before. What a hidden collective takes from the kernels beside it makes these longer,
// as in the step model: a layer's own on every stage, gradients and weights on the slowest, whose time is
// the step's. Of a tensor-parallel collective a share can't hide: so many of its bytes follow the products.
// Ignored: such shares of ZeRO-3's, gathers over one channel, jitter.
class RankStep {
  public:
    RankStep(const TransformerModel& model, const ParallelPlan& plan, const StepOutline& outline,
             std::int64_t rank, ProcessGroups& groups, Communicators& network)
        : m_(model),
          p_(plan),
          outline_(outline),
          rank_(rank),
          groups_(groups),
          piecewise_(network.node().gpu.piecewise_overlap),
          stage_(rank / plan.pipeline_stride() % plan.pipeline) {
        const auto& stages = outline.stages;
        here_ = &*std::ranges::find_if(stages, [&](const StageOutline& each) {
            first_layer_ += layers_on(each.run) * std::min(each.run.count, stage_ - each.run.first);
            return stage_ < each.run.first + each.run.count;
        });
        slow_down(network);
    }

    std::string trace() {
        const std::vector<Unit> units = schedule(p_, stage_);
        const std::int64_t last = std::ssize(units) - p_.passes_beside();  // backward passes
        Ids weights;
        if (!layered()) {
            tail_ = collectives(exchanges(true), CallPurpose::weights, "weights", {});
            weights = collectives(exchanges(false), CallPurpose::weights, "weights", tail_);
            if (weights == tail_) weights.clear();
            if (!p_.overlap_data && !weights.empty()) tail_ = std::exchange(weights, {});
        }
        const bool each_pass = p_.scatters_each_pass();
        Ids before;
        for (std::int64_t i = 0; i < std::ssize(units); ++i) {
            const Unit& unit = units[static_cast<std::size_t>(i)];
            const Ids begun = tail_;
            receive(unit, p_.overlap_pipeline ? before : tail_);
            before = begun;
            const bool scatters = !layered() && unit.backward && (each_pass || i == last);
            Ids scattered;
            if (scatters && p_.overlap_data) {
                scattered = collectives(exchanges(false), CallPurpose::gradients,
                                        place(unit) + " gradients", tail_);
                if (scattered == tail_) scattered.clear();
            }
            slow_now_ = slowness(unit, i, last);
            unit.backward ? backward(unit) : forward(unit);
            send(unit);
            if (i + 1 == p_.passes_beside()) {
                for (const Id id : weights) wait(id);
            }
            const Ids ahead = std::exchange(scattered, {});
            gradients_.insert(gradients_.end(), ahead.begin(), ahead.end());
            if (each_pass && !layered()) {
                for (const Id id : std::exchange(gradients_, {})) wait(id);
            }
            const bool at_end = each_pass ? scatters : i + 1 == std::ssize(units);
            if (layered() || !at_end) continue;
            for (const Id id : std::exchange(gradients_, {})) wait(id);
            tail_ = collectives(p_.overlap_data ? exchanges(true) : here_->exchanges,
                                CallPurpose::gradients, "gradients", tail_);
        }
        for (const Id id : gradients_) wait(id);
        out_.compute("optimizer", here_->optimizer_s, tail_);
        return out_.bytes();
    }

  private:
    // Kernels of one microbatch on a stage, there and back.
    struct Kernels {
        double forward = 0;
        double backward = 0;
        double both() const { return forward + backward; }
    };

    Kernels kernels_of(const StageOutline& stage) const {
        Kernels out;
        const auto add = [&](const LayerOutline& layer, double count) {
            const auto work = [](const PassOutline& pass) {
                return pass.attention_s + pass.other_s;
            };
            out.forward += count * work(layer.forward);
            out.backward += count * (work(layer.recompute) + work(layer.backward));
        };
        for (std::size_t i = 0; i < LayerKind::kinds; ++i) {
            add(outline_.layers[i], stage.run.layers.of[i]);
        }
        if (stage.run.layers.vision) add(outline_.vision, 1);
        if (stage.run.first + stage.run.count == p_.pipeline) {
            const double head = outline_.head_s * static_cast<double>(1 + m_.mtp_layers);
            out.forward += head / 3;
            out.backward += head * 2 / 3;
        }
        return out;
    }

    // Gradients and weights hide behind the pass beside them: models/training/step.cpp says by how much. Here
    // buckets beside collectives slow kernels down as well, which is up to 2 % of a step.
    void slow_down(Communicators& network) {
        const auto slowest = std::ranges::max_element(
            outline_.stages, {}, [&](const StageOutline& each) { return kernels_of(each).both(); });
        if (!p_.overlap_data || stage_ != slowest->run.first) return;
        const Gpu& gpu = network.node().gpu;
        const Kernels work = kernels_of(*here_);
        const double gradients = seconds_of(exchanges(false), CallPurpose::gradients, network);
        double weights = seconds_of(exchanges(false), CallPurpose::weights, network);
        if (layered()) weights *= 1 - layer_share();
        const double share = layered() && !p_.flat_parameters ? gpu.piecewise_overlap : 1;
        const auto taken = [&](double beside, double by) {
            return by > 0 ? gpu.overlap_tax * std::min(share * beside, by) / by : 0;
        };
        const double beside =
            static_cast<double>(p_.passes_beside()) / static_cast<double>(p_.interleave);
        slow_.forward = taken(weights, beside * work.forward);
        slow_.backward = taken(gradients + (layered() ? weights : 0), beside * work.backward);
    }

    // Weights come beside the first passes, gradients leave beside the last, or beside each.
    double slowness(const Unit& unit, std::int64_t i, std::int64_t last) const {
        if (layered()) return 1 + (unit.backward ? slow_.backward : slow_.forward);
        if (unit.backward) return 1 + (p_.scatters_each_pass() || i >= last ? slow_.backward : 0);
        return 1 + (i < p_.passes_beside() ? slow_.forward : 0);
    }

    void forward(const Unit& unit) {
        const auto [first, end] = layers_of(unit.chunk);
        before_work_ = tail_;
        if (here_->run.layers.vision && unit.chunk == 0) {
            layer(outline_.vision.forward, place(unit) + " vision encoder");
        }
        for (std::int64_t i = first; i < end; ++i) {
            const std::string name = fmt::format("{} layer {}", place(unit), i);
            gather_layer(i < own_layers(), name, before_work_);
            layer(layer_at(i).forward, name);
        }
        if (last_of_all(unit.chunk)) {
            head(outline_.head_s * static_cast<double>(1 + m_.mtp_layers) / 3, place(unit));
        }
        wait_for_host(here_->to_host_s, place(unit) + " activations to the host");
    }

    void backward(const Unit& unit) {
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
            const Ids sent = collectives(calls, CallPurpose::gradients, name + " gradients", tail_,
                                         layer_share());
            if (!p_.overlap_data) {
                tail_ = sent;
            } else if (sent != tail_) {
                scattered.insert(scattered.end(), sent.begin(), sent.end());
            }
        }
        if (here_->run.layers.vision && unit.chunk == 0) {
            const std::string name = place(unit) + " vision encoder";
            layer(outline_.vision.recompute, name + " again");
            layer(outline_.vision.backward, name);
        }
        for (const Id id : scattered) wait(id);
        wait_for_host(here_->from_host_s, place(unit) + " activations from the host");
    }

    void layer(const PassOutline& pass, const std::string& name) {
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
            chain(out_.compute(name + " attention", pass.attention_s * slow_now_, tail_));
        }
        for (const Id id : keys) wait(id);
        const Ids before_products = tail_;
        if (pass.other_s > 0)
            chain(out_.compute(name + " products", pass.other_s * slow_now_, tail_));
        const auto [beside_products, behind] =
            cut_tensor(pass.calls, p_.overlap_tensor ? piecewise_ : 0);
        const Ids end =
            collectives(beside_products, CallPurpose::tensor, name + " tensor", before_products);
        if (!beside_products.empty()) hidden.insert(hidden.end(), end.begin(), end.end());
        tail_ = collectives(behind, CallPurpose::tensor, name + " tensor", tail_);
        if (!p_.overlap_expert) {
            tail_ = collectives(pass.calls, CallPurpose::expert, name + " experts", tail_);
        }
        for (const Id id : hidden) wait(id);
    }

    void head(double seconds, const std::string& name) {
        before_work_ = tail_;
        chain(out_.compute(name + " output and loss", seconds * slow_now_, tail_));
    }

    void recompute(const LayerOutline& each, std::int64_t number, const std::string& name) {
        const bool some = p_.recompute == Recompute::full && p_.recompute_layers > 0;
        if (!some || number < p_.recompute_layers || number >= own_layers()) {
            layer(each.recompute, name + " again");
        }
    }

    void wait_for_host(double seconds, const std::string& name) {
        if (seconds <= 0) return;
        chain(out_.compute(name, seconds / static_cast<double>(p_.interleave), tail_));
    }

    // Layers of a virtual stage: numbers from `first` on, of the stage's; further tokens' come last.
    std::pair<std::int64_t, std::int64_t> layers_of(std::int64_t chunk) const {
        const std::int64_t all = own_layers();
        const std::int64_t further = last_of_all(chunk) ? m_.mtp_layers : 0;
        return {all * chunk / p_.interleave, all * (chunk + 1) / p_.interleave + further};
    }

    static std::int64_t layers_on(const StageRun& run) {  // of each of its stages
        return static_cast<std::int64_t>(run.layers.all());
    }
    std::int64_t own_layers() const { return layers_on(here_->run); }

    const LayerOutline& layer_at(std::int64_t number) const {
        const bool further = number >= own_layers();
        return outline_.layer(further ? m_.further_layer() : m_.layer(first_layer_ + number));
    }

    bool last_of_all(std::int64_t chunk) const {
        return stage_ == p_.pipeline - 1 && chunk == p_.interleave - 1;
    }

    void wait(Id id) { tail_.push_back(id); }
    void chain(Id id) { tail_ = {id}; }

    // Behind `after`, one after another; what the last waits for.
    Ids collectives(const std::vector<CollectiveCall>& calls, CallPurpose purpose,
                    const std::string& name, Ids after, double share = 1) {
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

    std::string place(const Unit& unit) const {
        return p_.interleave == 1
                   ? fmt::format("{} {}", unit.backward ? "backward" : "forward", unit.microbatch)
                   : fmt::format("{} {}.{}", unit.backward ? "backward" : "forward",
                                 unit.microbatch, unit.chunk);
    }

    void receive(const Unit& unit, const Ids& after) {
        const bool begins =
            unit.backward ? last_of_all(unit.chunk) : stage_ == 0 && unit.chunk == 0;
        if (!begins) message(unit, false, unit.chunk, unit.backward ? 1 : -1, after);
    }

    // A message's tag has the receiver's virtual stage.
    void send(const Unit& unit) {
        const bool ends = unit.backward ? stage_ == 0 && unit.chunk == 0 : last_of_all(unit.chunk);
        if (ends) return;
        const std::int64_t by = unit.backward ? -1 : 1;
        const bool around = unit.backward ? stage_ == 0 : stage_ == p_.pipeline - 1;
        message(unit, true, unit.chunk + (around ? by : 0), by, tail_);
    }

    // `chunk` is the sender's when sent, else the receiver's; `by` leads to the other stage.
    void message(const Unit& unit, bool sent, std::int64_t chunk, std::int64_t by,
                 const Ids& after) {
        const std::int64_t other = (stage_ + by + p_.pipeline) % p_.pipeline;
        const std::int64_t peer = rank_ + (other - stage_) * p_.pipeline_stride();
        ChakraTrace::Message message{sent, sent ? rank_ : peer, sent ? peer : rank_, 0,
                                     std::llround(outline_.boundary_bytes)};
        message.tag =
            ((unit.backward ? p_.interleave : 0) + chunk) * p_.microbatches() + unit.microbatch;
        const Id id = out_.message(fmt::format("{} {}", place(unit), sent ? "send" : "receive"),
                                   message, after);
        if (!sent) wait(id);
    }

    // One layer's share of what the layers exchange with ZeRO-3.
    double layer_share() const {
        return 1.0 / static_cast<double>(std::max<std::int64_t>(1, own_layers()));
    }
    bool layered() const { return p_.zero >= 3; }

    // The buckets of gradients and weights that nothing hides, or the others: without buckets, all.
    std::vector<CollectiveCall> exchanges(bool bare) const {
        std::vector<CollectiveCall> out = here_->exchanges;
        const double alone = p_.buckets && !layered() ? 1 : 0;
        for (CollectiveCall& call : out) call.count = bare ? alone : call.count - alone;
        return out;
    }

    // ZeRO-3: the layer waits for its weights, which come beside the one before it.
    void gather_layer(bool counts, const std::string& name, const Ids& begin) {
        if (!layered() || !counts) return;
        const Ids after = p_.overlap_data ? begin : tail_;
        const Ids end = collectives(here_->exchanges, CallPurpose::weights, name + " weights",
                                    after, layer_share());
        if (end == after) return;
        if (!p_.overlap_data) tail_ = end;
        if (p_.overlap_data) {
            for (const Id id : end) wait(id);
        }
    }

    const TransformerModel& m_;
    const ParallelPlan& p_;
    const StepOutline& outline_;
    std::int64_t rank_;
    ProcessGroups& groups_;
    double piecewise_;  // share of a collective in pieces that can hide
    std::int64_t stage_;
    std::int64_t first_layer_ = 0;  // of its stage, among all
    const StageOutline* here_;
    Kernels slow_;  // how much longer they take beside gradients and weights
    double slow_now_ = 1;
    ChakraTrace out_;
    Ids tail_;         // what the next of the chain waits for
    Ids before_work_;  // what the last kernels waited for
    Ids gradients_;    // that the optimizer waits for
};

void refuse(const Scenario& s, const std::string& what, const std::string& help) {
    throw ScenarioError(fmt::format("{}: {}", s.file, what), help);
}

void check_expressible(const Scenario& s) {
    if (s.world) refuse(s, "many jobs: ASTRA-sim has one workload", "a scenario with one [job]");
    if (s.model.name.empty() || s.given_step) {
        refuse(s, "what a step of the job consists of is not said",
               "give [job] a model and [job.parallel] instead of job.step.time");
    }
    if (!s.faults.empty()) {
        refuse(s, "ASTRA-sim's network has no slow parts", "leave out [[cluster.fault]]");
    }
    if (s.networks[0].sharp) {
        refuse(s, "ASTRA-sim's network has no reductions in switches",
               "fabric.compute.sharp = false");
    }
    if (s.plan.expert > 1 && s.plan.dispatch == ExpertDispatch::two_stage) {
        refuse(s, "Chakra has no dispatch to experts in two stages",
               "job.parallel.dispatch = \"all_to_all\"");
    }
    if (s.plan.schedule != PipelineSchedule::one_forward_one_backward) {
        refuse(s, "steps are written in the order of 1F1B", "job.parallel.schedule = \"1f1b\"");
    }
    if (s.node.nvlink_domain < 1 || s.job.gpus() % s.node.nvlink_domain != 0) {
        refuse(s,
               fmt::format("{} GPUs are no equal groups of {}, which ASTRA-sim's dimensions are",
                           s.job.gpus(), s.node.nvlink_domain),
               "job.nodes: whole domains of NVLink");
    }
}

// A dimension of ASTRA-sim's network: all of a group reach each other through one switch.
struct NetworkLevel {
    std::int64_t gpus = 1;
    double bytes_per_s = 0;  // of each GPU
    double latency_s = 0;
};

// What all of the job's GPUs have together, as collectives have it. Latency is that of a small step (LL),
// measured over NVLink, and between nodes NCCL's own constant.
std::vector<NetworkLevel> network_levels(const Scenario& s, Communicators& groups) {
    constexpr auto ll = static_cast<std::size_t>(Protocol::ll);
    const Communicator& c = groups.of(Collective::all_gather, 1, s.job.gpus());
    std::vector<NetworkLevel> out;
    const std::int64_t inside = s.job.gpus() / c.domains;
    if (inside > 1) out.push_back({inside, c.nvlink, c.measured.hop_s});
    if (c.domains > 1) {
        out.push_back({c.domains, c.network / c.per_domain,
                       c.tuner.ring_network_s[ll] + c.measured.network_hop_s});
    }
    if (out.empty()) out.push_back({1, s.node.gpu.nvlink_bandwidth.bytes_per_second(), 0});
    return out;
}

template <class Text>
std::string listed(const std::vector<NetworkLevel>& levels, Text text) {
    std::vector<std::string> out;
    for (const NetworkLevel& each : levels) out.push_back(text(each));
    return fmt::format("{}", fmt::join(out, ", "));
}

std::string network_yml(const Scenario& s, const std::vector<NetworkLevel>& d) {
    return fmt::format(
        "# {} GPUs, {}\n"
        "topology: [ {} ]\nnpus_count: [ {} ]\nbandwidth: [ {} ]  # GB/s\nlatency: [ {} ]  # ns\n",
        s.job.gpus(), network_text(s), listed(d, [](const NetworkLevel&) { return "Switch"; }),
        listed(d, [](const NetworkLevel& each) { return fmt::format("{}", each.gpus); }),
        listed(d,
               [](const NetworkLevel& each) {
                   return fmt::format("{:.6g}", each.bytes_per_s * 1e-9);
               }),
        listed(d, [](const NetworkLevel& each) {
            return fmt::format("{:.6g}", each.latency_s * 1e9);
        }));
}

// For its packet simulators, which take the physical network from their own files.
std::string logical_json(const std::vector<NetworkLevel>& d) {
    return fmt::format(
        "{{\n    \"logical-dims\": [{}]\n}}\n",
        listed(d, [](const NetworkLevel& each) { return fmt::format("\"{}\"", each.gpus); }));
}

std::string system_json(const Scenario& s, const std::vector<NetworkLevel>& d) {
    const auto each = [&](const char* word) {
        return listed(d, [&](const NetworkLevel&) { return fmt::format("\"{}\"", word); });
    };
    const Gpu& gpu = s.node.gpu;
    return fmt::format(
        "{{\n"
        "    \"scheduling-policy\": \"LIFO\",\n"
        "    \"endpoint-delay\": 10,\n"
        "    \"active-chunks-per-dimension\": 2,\n"
        "    \"preferred-dataset-splits\": 4,\n"
        "    \"all-reduce-implementation\": [{0}],\n"
        "    \"all-gather-implementation\": [{0}],\n"
        "    \"reduce-scatter-implementation\": [{0}],\n"
        "    \"all-to-all-implementation\": [{1}],\n"
        "    \"collective-optimization\": \"localBWAware\",\n"
        "    \"local-mem-bw\": {2:.6g},\n"
        "    \"boost-mode\": 0,\n"
        "    \"roofline-enabled\": 0,\n"
        "    \"peak-perf\": {3:.6g}\n"
        "}}\n",
        each("ring"), each("direct"), gpu.hbm_bandwidth.bytes_per_second() * 1e-9,
        gpu.bf16_dense.per_second * 1e-12);
}

}  // namespace

std::vector<ExportedFile> export_astra_sim(const Scenario& s, std::int64_t /*replica*/) {
    constexpr std::size_t bytes_max = std::size_t{1} << 30;
    check_expressible(s);
    Communicators groups = communicators(s, s.fidelity);
    const StepOutline outline = slowed_by_hidden(
        step_outline(s.model, s.plan, groups, s.parameter_bytes, s.optimizer_traffic), s.plan,
        groups);
    const std::vector<NetworkLevel> network = network_levels(s, groups);
    std::vector<ExportedFile> out = {
        {"network.yml", network_yml(s, network)},
        {"logical_topology.json", logical_json(network)},
        {"system.json", system_json(s, network)},
        {"memory.json", "{\n    \"memory-type\": \"NO_MEMORY_EXPANSION\"\n}\n"},
    };
    ProcessGroups numbers;
    std::size_t bytes = 0;
    for (std::int64_t rank = 0; rank < s.plan.gpus(); ++rank) {
        std::string trace = RankStep(s.model, s.plan, outline, rank, numbers, groups).trace();
        bytes += trace.size();
        if (bytes > bytes_max) {
            refuse(s,
                   fmt::format("the traces of {} of {} ranks take more than 1 GiB", rank + 1,
                               s.plan.gpus()),
                   "fewer nodes or, in job.parallel.global_batch, fewer microbatches");
        }
        out.push_back({fmt::format("workload.{}.et", rank), std::move(trace)});
    }
    out.push_back({"groups.json", numbers.json()});
    return out;
}

}  // namespace railyard
