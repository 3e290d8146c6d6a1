#include "models/training/step.h"

#include <cmath>

#include "models/training/layer_work.h"
#include "sim/statistics.h"

namespace railyard {

namespace {

struct Stage {
    LayerCounts layers;
    LayerWork vision;  // one microbatch through the vision encoder
    LayerWork work;    // through all layers, the encoder's included
    double head = 0;   // through the output matrix and the loss, there and back
    double total() const { return work.total() + head; }
    StagePasses passes() const {
        return {total(), work.forward.total() + head / 3, work.weight_gradients + head / 3};
    }
};

double head_seconds(const TransformerModel& m, const ParallelPlan& p, const Gpu& gpu) {
    // A fused loss reads the logits and writes their gradient over them, with one sum between.
    constexpr double fused_traffic = 8;
    const double tokens = p.rank_tokens();
    const double words = real(m.vocab) / real(p.tensor);
    const double h = real(m.hidden);
    return gemm_seconds(gpu, {tokens, words, h}) + gemm_seconds(gpu, {tokens, h, words}) +
           (p.adapter_rank > 0 ? 0 : gemm_seconds(gpu, {h, words, tokens})) +
           memory_seconds(gpu, (p.fused_loss ? fused_traffic : gpu.loss_traffic) * tokens * words);
}

struct Pipeline {
    Stage slowest;
    double first = 0;   // one microbatch through the first stage
    double bubble = 0;  // of a step whose stages have one part each
};

// Activations leave behind a forward pass and come back behind a backward one; copy engines move them, which
// take nothing from kernels and collectives.
void wait_for_offload(const TransformerModel& m, const ParallelPlan& p, const Gpu& gpu,
                      Stage& stage) {
    if (p.offload_layers == 0) return;
    const double moved =
        offloaded_bytes(m, p, stage.layers) / gpu.host_bandwidth.bytes_per_second();
    LayerWork& work = stage.work;
    work.forward.offload = std::max(0.0, moved - work.forward.total() - stage.head / 3);
    work.backward.offload =
        std::max(0.0, moved - work.recompute.total() - work.backward.total() - stage.head * 2 / 3);
}

// One layer of each kind that the model has.
struct Layers {
    Layers(const TransformerModel& m, const ParallelPlan& p, Communicators& groups) {
        const LayerCounts counts = with_further(m);
        for (std::size_t i = 0; i < LayerKind::kinds; ++i) {
            if (counts.of[i] > 0) of[i] = layer_work(m, p, groups, LayerKind::of(i));
        }
        vision = vision_work(m, p, groups);
    }
    static LayerCounts with_further(const TransformerModel& m) {
        LayerCounts counts = count_layers(m);
        counts[m.further_layer()] += real(m.mtp_layers);
        return counts;
    }
    std::array<LayerWork, LayerKind::kinds> of;
    LayerWork vision;
};

Stage stage_of(const TransformerModel& m, const ParallelPlan& p, const Gpu& gpu,
               const Layers& layers, const StageRun& run) {
    Stage stage;
    stage.layers = run.layers;
    const double all = run.layers.all();
    const double recomputed = p.recompute == Recompute::full && p.recompute_layers > 0
                                  ? std::min(1.0, real(p.recompute_layers) / std::max(1.0, all))
                                  : 1;
    for (std::size_t i = 0; i < LayerKind::kinds; ++i) {
        const double count = run.layers.of[i];
        if (count == 0) continue;
        stage.work.forward.add(count, layers.of[i].forward);
        stage.work.recompute.add(count * recomputed, layers.of[i].recompute);
        if (!p.fused_attention) {  // of the other layers scores are not kept either
            stage.work.recompute.attention +=
                count * (1 - recomputed) * layers.of[i].forward.attention;
        }
        stage.work.backward.add(count, layers.of[i].backward);
        stage.work.weight_gradients += count * layers.of[i].weight_gradients;
    }
    if (run.layers.vision) {
        stage.vision = layers.vision;
        stage.work.add(1, stage.vision);
    }
    if (run.outputs > 0) {
        // Each further token has a layer, two norms and a matrix of its own, and the same loss.
        const double further = real(m.mtp_layers);
        const LayerWork& layer = layers.of[m.further_layer().index()];
        stage.work.add(run.outputs * further, layer);
        stage.head = run.outputs * (1 + further) * head_seconds(m, p, gpu);
    }
    wait_for_offload(m, p, gpu, stage);
    return stage;
}

Pipeline pipeline_of(const TransformerModel& m, const ParallelPlan& p, Communicators& groups) {
    const Layers layers(m, p, groups);
    Pipeline out;
    const auto bubble = [&](const Stage& stage) {
        return stage_bubble(p.schedule, stage.passes(), real(p.pipeline), real(p.microbatches()));
    };
    for (const StageRun& run : rank_runs(m, p)) {
        const Stage stage = stage_of(m, p, groups.node().gpu, layers, run);
        out.bubble += real(run.count) * bubble(stage);
        if (run.first == 0) out.first = stage.total();
        if (stage.total() > out.slowest.total()) out.slowest = stage;
    }
    out.bubble -= bubble(out.slowest);
    return out;
}

struct DataParallel {
    double gradients = 0;
    double weights = 0;
};

// All of an exchange, and what of it nothing hides: the bucket whose gradients come last, and the one whose
// weights the next step begins with.
struct Exchange {
    DataParallel all;
    DataParallel bare;
};

// How many exchanges a stage's parameters leave in: ZeRO-3 layer by layer or matrix by matrix, gradients in
// the weights' precision; the others at once, or in buckets, of which each virtual stage has its own.
double exchange_pieces(const ParallelPlan& p, double layers) {
    constexpr double matrices = 4;
    return p.zero < 3 ? 1 : layers * (p.flat_parameters ? 1 : matrices);
}
double buckets_of(const ParallelPlan& p, double parameters) {
    const double each = parameters / real(p.interleave);
    return std::ceil(each / p.bucket_parameters()) * real(p.interleave);
}

// As many ranks again hold the weights at the other end of DualPipe: how much more a ring of twice as
// many moves. A rank alone exchanges with that of the other end.
double with_copies(const ParallelPlan& p, std::int64_t& stride, std::int64_t& ranks) {
    if (weight_copies(p.schedule) == 1) return 1;
    if (ranks > 1) return real(2 * ranks - 1) / real(2 * ranks - 2);
    stride = p.pipeline_stride();
    ranks = 2;
    return 1;
}

// One exchange of all gradients, and one of all weights.
Exchange exchange_seconds(const TransformerModel& m, const ParallelPlan& p, Communicators& groups,
                          const ParameterBytes& bytes, const LayerCounts& stage) {
    const RankParameters params = rank_parameters(m, p, stage);
    const double layers = std::max(1.0, stage.all());
    // Gathers of one parameter after another run over one channel, which has one NIC.
    const std::int64_t NICs = p.zero >= 3 && !p.flat_parameters ? 1 : 0;
    const double gradient_bytes = p.zero >= 3 || !p.reduce_in_fp32 ? bytes.weight : bytes.gradient;
    const double weight_bytes =
        p.gather_in_fp8 && p.precision != Precision::bf16 ? 1 : bytes.weight;
    const bool buckets = p.buckets && p.zero < 3;
    Exchange once;
    const bool trained = p.adapter_rank == 0;
    // `images`: parameters that look at images, in 16 bits; `still`: those of them that are not trained.
    const auto exchange = [&](double others, std::int64_t stride, std::int64_t ranks,
                              double images = 0, double still = 0) {
        const double count = others + images - still;  // with gradients
        const double more = with_copies(p, stride, ranks);
        if (ranks == 1 || count + still == 0) return;
        // What no sharing splits by layer leaves at once.
        const double whole = buckets ? buckets_of(p, count) : 1;
        const double split = buckets ? whole : exchange_pieces(p, layers);
        // Experts folded over tensor ranks are nearer to each other than replicas are.
        const std::int64_t shards =
            std::clamp<std::int64_t>(p.shards() * p.replica_stride() / stride, 1, ranks);
        const auto time = [&](Collective collective, std::int64_t from, std::int64_t size,
                              double sent, double pieces) {
            const bool weights = collective == Collective::all_gather;
            groups.note({weights ? CallPurpose::weights : CallPurpose::gradients, collective, from,
                         size, sent / pieces, pieces});
            const double each =
                seconds(collective, groups.of(collective, from, size, NICs), more * sent / pieces);
            (weights ? once.all.weights : once.all.gradients) += pieces * each;
            if (buckets) (weights ? once.bare.weights : once.bare.gradients) += each;
        };
        const double gradient = count * gradient_bytes;
        if (p.zero == 0) {
            time(Collective::all_reduce, stride, ranks, gradient, whole);
            return;
        }
        if (shards > 1) {
            if (trained) time(Collective::reduce_scatter, stride, shards, gradient, split);
            time(Collective::all_gather, stride, shards,
                 others * weight_bytes + (p.zero >= 3 ? images : images - still) * bytes.weight,
                 split);
        }
        if (shards < ranks && trained) {
            time(Collective::all_reduce, stride * shards, ranks / shards, gradient / real(shards),
                 whole);
        }
    };
    exchange(params.common, p.replica_stride(), p.replica_ranks(),
             params.vision + params.frozen_vision, params.frozen_vision);
    exchange(params.routed, p.expert_stride() * p.expert, p.expert_replica_ranks() / p.expert);
    return once;
}

// What a pass waits for on links that buckets do not use: collectives inside a domain, beside replicas
// that are not.
auto collectives_beside(const ParallelPlan& p, Communicators& groups) {
    const auto inside = [&](Collective kind, std::int64_t stride, std::int64_t ranks) {
        return ranks == 1 || groups.of(kind, stride, ranks).domains == 1;
    };
    const bool apart =
        p.buckets &&
        !inside(p.zero == 0 ? Collective::all_reduce : Collective::all_gather, p.replica_stride(),
                p.zero == 0 ? p.replica_ranks() : std::min(p.shards(), p.replica_ranks()));
    const bool tensor = apart && inside(Collective::all_reduce, p.tensor_stride(), p.tensor);
    const bool expert = apart && inside(Collective::all_to_all, p.expert_stride(), p.expert);
    return [=](const Pass& pass) {  // seconds
        return (tensor ? pass.tensor : 0) + (expert ? pass.expert : 0);
    };
}

// What the exchange of gradients and weights leaves visible in a step.
DataParallel data_parallel(const TransformerModel& m, const ParallelPlan& p, Communicators& groups,
                           const ParameterBytes& bytes, const Stage& stage) {
    // The gradients of adapters are too small to be seen; frozen weights are gathered where they are shared.
    const bool frozen = p.adapter_rank > 0;
    if (p.holders() == 1 || (frozen && p.zero < 3)) return {};
    const Gpu& gpu = groups.node().gpu;
    const double layers = std::max(1.0, stage.layers.all());
    const auto [once, bare] = exchange_seconds(m, p, groups, bytes, stage.layers);
    const double passes = real(p.microbatches());
    const LayerWork& work = stage.work;
    const double beside = real(p.passes_beside()) / real(p.interleave);
    const auto cover_of = [&](double kernels, double idle) {
        return Cover{beside * kernels, beside * idle};
    };
    const auto other = collectives_beside(p, groups);
    const Cover forward = cover_of(work.forward.kernels() + stage.head / 3,
                                   work.forward.launch_wait + other(work.forward));
    const Cover backward =
        cover_of(work.backward.kernels() + work.recompute.kernels() + stage.head * 2 / 3,
                 work.backward.launch_wait + work.recompute.launch_wait +
                     (other(work.backward) + other(work.recompute)));
    const double share = exchange_pieces(p, layers) > layers ? gpu.piecewise_overlap : 1;
    const auto visible = [&](double time, Cover cover) {
        return p.overlap_data ? exposed_seconds(gpu, time, cover, share) : time;
    };
    if (p.zero >= 3) {
        // Weights come in every forward and again in every backward pass, the first layer's with
        // nothing to hide behind; gradients leave in every backward pass.
        const double first = once.weights / layers;
        const double rest = once.weights - first;
        const double both = visible(rest + once.gradients, backward);
        return {0, passes * (2 * first + visible(rest, forward) + both)};
    }
    // Gradients that each rank keeps its share of are scattered in every backward pass, others once,
    // behind the last. Weights come in behind a forward pass.
    const double gradients = visible(once.gradients - bare.gradients, backward) + bare.gradients;
    return {(p.scatters_each_pass() ? passes : 1) * gradients,
            visible(once.weights - bare.weights, forward) + bare.weights};
}

// Filling and draining the pipeline waits for one send per boundary each way; without overlap, so does every
// microbatch in every virtual stage.
double boundary_sends(const ParallelPlan& p) {
    if (p.pipeline == 1) return 0;
    const double every = real(p.microbatches()) * real(p.interleave);
    return 2 * (sends_waited_for(p.schedule, real(p.pipeline)) + (p.overlap_pipeline ? 0 : every));
}

double boundary_bytes(const TransformerModel& m, const ParallelPlan& p) {
    return p.rank_tokens() * real(m.hidden) * activation_element_bytes / real(p.tensor);
}

double boundary_seconds(const TransformerModel& m, const ParallelPlan& p, Communicators& groups) {
    return seconds(Collective::send_recv,
                   groups.of(Collective::send_recv, p.pipeline_stride(), p.pipeline),
                   boundary_bytes(m, p));
}

double optimizer_seconds(const TransformerModel& m, const ParallelPlan& p, const Gpu& gpu,
                         const LayerCounts& layers, double optimizer_traffic) {
    if (p.adapter_rank > 0) return 0;
    const RankParameters params = rank_parameters(m, p, layers);
    const double shards = real(p.shards());
    const double updated =
        p.zero == 0 ? params.common + params.vision + params.routed
                    : (params.common + params.vision) / shards + params.routed / p.expert_shards();
    return memory_seconds(gpu, updated * optimizer_traffic);
}

PassOutline outline_of(const Pass& pass, std::vector<CollectiveCall> calls) {
    return {pass.attention, pass.multiplications + pass.elementwise + pass.launch_wait,
            std::move(calls)};
}

// Backward, keys and values are gathered again and their gradients go home.
LayerOutline layer_outline(const TransformerModel& m, const ParallelPlan& p, Communicators& groups,
                           LayerKind kind) {
    std::vector<CollectiveCall> calls;
    groups.note_calls(&calls);
    const LayerWork work = layer_work(m, p, groups, kind);
    groups.note_calls(nullptr);
    std::vector<CollectiveCall> back;
    std::vector<CollectiveCall> again;
    for (const CollectiveCall& call : calls) {
        back.push_back(call);
        if (call.purpose == CallPurpose::context && kind.mixer == Mixer::attention) {
            back.push_back(call);
            back.back().collective = Collective::reduce_scatter;
        }
        if (p.recompute == Recompute::full ||
            (call.purpose == CallPurpose::expert && work.recompute.expert > 0)) {
            again.push_back(call);
        }
    }
    return {outline_of(work.forward, std::move(calls)),
            outline_of(work.recompute, std::move(again)),
            outline_of(work.backward, std::move(back))};
}

// All replicas wait for the one whose sequences have most images, once its first stage is the slowest.
double images_wait(const TransformerModel& m, const ParallelPlan& p, Communicators& groups,
                   const Pipeline& pipeline) {
    if (p.images_spread == 0 || p.images == 0 || m.vision.layers == 0) return 0;
    const double sequences = real(p.global_batch) / real(p.data);
    const double most =
        p.images_spread * std::sqrt(sequences) * expected_max_normal(p.data);  // above the mean
    const double slack = real(p.microbatches()) * (pipeline.slowest.total() - pipeline.first);
    return std::max(0.0, most * image_seconds(m, p, groups) - slack);
}

// All of its layers as one. A mean of images sends, in proportion, what the next whole number sends.
LayerOutline vision_outline(const TransformerModel& m, const ParallelPlan& p,
                            Communicators& groups) {
    if (m.vision.layers == 0 || p.images == 0) return {};
    const LayerWork work = vision_work(m, p, groups);
    ParallelPlan whole = p;
    whole.microbatch = 1;  // so that their number is exact
    whole.images = std::ceil(p.microbatch_images());
    const auto images = [](std::int64_t count) { return real(count); };
    std::vector<CollectiveCall> calls;
    groups.note_calls(&calls);
    vision_work(m, whole, groups);
    groups.note_calls(nullptr);
    for (CollectiveCall& call : calls) {
        call.count *= real(m.vision.layers);
        call.bytes *= p.over_images(images) / whole.over_images(images);
    }
    LayerOutline out{outline_of(work.forward, calls), outline_of(work.recompute, {}),
                     outline_of(work.backward, {})};
    if (p.vision_frozen()) return out;
    out.backward.calls = calls;
    if (p.recompute == Recompute::full) out.recompute.calls = calls;
    return out;
}

}  // namespace

StepOutline step_outline(const TransformerModel& m, const ParallelPlan& p, Communicators& groups,
                         const ParameterBytes& bytes, double optimizer_traffic) {
    const Gpu& gpu = groups.node().gpu;
    StepOutline out;
    const LayerCounts counts = Layers::with_further(m);
    for (std::size_t i = 0; i < LayerKind::kinds; ++i) {
        if (counts.of[i] > 0) out.layers[i] = layer_outline(m, p, groups, LayerKind::of(i));
    }
    out.vision = vision_outline(m, p, groups);
    out.head_s = head_seconds(m, p, gpu);
    out.boundary_bytes = boundary_bytes(m, p);
    const bool exchanged = p.holders() > 1 && (p.adapter_rank == 0 || p.zero >= 3);
    const Layers layers(m, p, groups);
    for (const StageRun& run : rank_runs(m, p)) {
        const LayerWork work = stage_of(m, p, gpu, layers, run).work;
        StageOutline stage{run, {}, 0, work.forward.offload, work.backward.offload};
        groups.note_calls(&stage.exchanges);
        if (exchanged) exchange_seconds(m, p, groups, bytes, run.layers);
        groups.note_calls(nullptr);
        stage.optimizer_s = optimizer_seconds(m, p, gpu, run.layers, optimizer_traffic) +
                            seconds(gpu.step_overhead);
        out.stages.push_back(std::move(stage));
    }
    return out;
}

CriticalPath critical_path(const TransformerModel& m, const ParallelPlan& p, Communicators& groups,
                           const ParameterBytes& bytes, double optimizer_traffic) {
    const Gpu& gpu = groups.node().gpu;
    const Pipeline pipeline = pipeline_of(m, p, groups);
    const Stage& stage = pipeline.slowest;
    const LayerWork& work = stage.work;
    const double count = real(p.microbatches());
    const double passes = count * stage.layers.all();
    const double expert_passes = count * stage.layers.with(FeedForward::experts);
    const auto sum = [](const LayerWork& w, double Pass::*part) {
        return w.forward.*part + w.recompute.*part + w.backward.*part;
    };

    const LayerWork layers = LayerWork(work).add(-1, stage.vision);
    const double wait = images_wait(m, p, groups, pipeline);
    const double sends = boundary_sends(p);
    const DataParallel data = data_parallel(m, p, groups, bytes, stage);

    CriticalPath path{{
        {"matrix multiplications", StepKind::compute, passes,
         count * (layers.forward.multiplications + layers.backward.multiplications)},
        {"attention", StepKind::compute, passes,
         count * (layers.forward.attention + layers.backward.attention)},
        {"elementwise kernels", StepKind::compute, passes,
         count * (layers.forward.elementwise + layers.backward.elementwise), true},
        {"recomputation", StepKind::compute, passes, count * layers.recompute.kernels()},
        {"vision encoder", StepKind::compute, stage.vision.kernels() > 0 ? count : 0,
         count * stage.vision.kernels()},
        {"waiting for launches", StepKind::compute, passes, count * sum(work, &Pass::launch_wait),
         true},
        {"output layer and loss", StepKind::compute, stage.head > 0 ? count : 0,
         count * stage.head},
        {"optimizer", StepKind::compute, 1,
         optimizer_seconds(m, p, gpu, stage.layers, optimizer_traffic) + seconds(gpu.step_overhead),
         true},
        {"tensor-parallel collectives", StepKind::communication, p.tensor > 1 ? passes : 0,
         count * sum(work, &Pass::tensor)},
        {"context-parallel exchange", StepKind::communication, p.context > 1 ? passes : 0,
         count * sum(work, &Pass::context)},
        {"expert all-to-all", StepKind::communication, p.expert > 1 ? expert_passes : 0,
         count * sum(work, &Pass::expert)},
        {"activations to the host and back", StepKind::communication,
         p.offload_layers > 0 ? 2 * count : 0, count * sum(work, &Pass::offload)},
        {"sends between stages", StepKind::communication, sends,
         sends > 0 ? sends * boundary_seconds(m, p, groups) : 0},
        {"gradients and weights", StepKind::communication,
         data.gradients + data.weights > 0 ? 1.0 : 0, data.gradients + data.weights},
        {"pipeline bubble", StepKind::bubble, real(p.pipeline - 1),
         pipeline.bubble / real(p.interleave)},
        {"waiting for stragglers", StepKind::straggler, p.jitter + wait > 0 ? 1.0 : 0, wait},
    }};
    if (p.jitter > 0) {
        double mean = -wait;
        for (const PathPart& part : path) mean += part.seconds;
        path.back().seconds += mean * p.jitter * expected_max_normal(p.gpus());
    }
    return path;
}

double model_flops(const TransformerModel& m, const ParallelPlan& p) {
    const VisionFlops image = vision_flops(m.vision, m.hidden);
    const double forward = forward_flops_per_token(m, p.sequence_length);
    const double frozen =
        p.adapter_rank > 0 ? forward - mixing_flops_per_token(m, p.sequence_length) : 0;
    return (3 * forward - frozen) * real(p.global_batch * p.sequence_length) +
           real(p.global_batch) * p.images *
               ((p.vision_frozen() ? 1 : 3) * image.layers +
                (p.adapter_rank > 0 ? 1 : 3) * image.projector);
}

StepTime model_step(const TransformerModel& m, const ParallelPlan& p, Communicators& groups,
                    const ParameterBytes& bytes, double optimizer_traffic) {
    std::array<double, 4> sums{};
    for (const PathPart& part : critical_path(m, p, groups, bytes, optimizer_traffic)) {
        sums[static_cast<std::size_t>(part.kind)] += part.seconds;
    }
    const auto part = [&](StepKind kind) {
        const double s = sums[static_cast<std::size_t>(kind)];
        return std::isnan(s) ? step_part_max : std::min(from_seconds(s), step_part_max);
    };
    StepTime step;
    step.compute = part(StepKind::compute);
    step.exposed_communication = part(StepKind::communication);
    step.bubble = part(StepKind::bubble);
    step.straggler_wait = part(StepKind::straggler);
    step.model_flops = model_flops(m, p);
    return step;
}

StepTime with_one_slow_stage(StepTime all_slow, const StepTime& sound) {
    StepTime step = all_slow;
    step.bubble = std::min(all_slow.bubble, sound.bubble);
    const auto mean = [](const StepTime& s) {
        return seconds(s.compute) + seconds(s.exposed_communication) + seconds(s.bubble);
    };
    if (mean(all_slow) > 0) {
        step.straggler_wait =
            from_seconds(seconds(all_slow.straggler_wait) * mean(step) / mean(all_slow));
    }
    return step;
}

}  // namespace railyard
