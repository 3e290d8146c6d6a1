#include "models/campaign/parallel.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/training/training.h"

namespace railyard {

namespace {

// What has no effect, and what the GPUs can't do.
void warn_of_idle_keys(Section& parallel, const Scenario& s, bool imbalance_given,
                       bool step_measured) {
    const ParallelPlan& p = s.plan;
    if (p.shard_ranks > 0 && p.zero == 0) {
        parallel.warning("shard_ranks", "has no effect with zero = 0");
    }
    if (imbalance_given && s.model.experts > 0 && p.expert == 1) {
        parallel.warning("expert_imbalance",
                         "has no effect with expert = 1: one rank has all tokens");
    }
    if (step_measured) {
        std::vector<const char*> of_time = {"reduce_in_fp32",   "order",          "flat_parameters",
                                            "overlap_data",     "overlap_tensor", "overlap_context",
                                            "overlap_pipeline", "fused_loss",     "cuda_graphs",
                                            "precision",        "jitter",         "overlap_expert",
                                            "dispatch",         "gather_in_fp8"};
        if (p.recompute != Recompute::none) of_time.push_back("fused_attention");
        for (const char* key : of_time) {
            if (parallel.has(key)) {
                parallel.warning(key, "has no effect beside job.step.time: the step is measured");
            }
        }
    }
    if (s.model.experts == 0 || p.expert == 1) {
        for (const char* key : {"fold_experts", "overlap_expert", "dispatch"}) {
            if (parallel.has(key)) parallel.warning(key, "has no effect without expert > 1");
        }
    }
    if (p.precision == Precision::bf16 && parallel.has("gather_in_fp8")) {
        parallel.warning("gather_in_fp8", "has no effect with precision = \"bf16\"");
    }
    if (p.pipeline == 1) {
        for (const char* key : {"first_stage_layers", "last_stage_layers", "stage_layers"}) {
            if (parallel.has(key)) parallel.warning(key, "has no effect without pipeline > 1");
        }
    } else if (!p.stage_layers.empty()) {
        for (const char* key : {"first_stage_layers", "last_stage_layers"}) {
            if (parallel.has(key)) parallel.warning(key, "has no effect beside stage_layers");
        }
    }
}

void check_precision(Section& parallel, const Scenario& s) {
    if (s.node.gpu.achievable(s.plan.precision).per_second > 0) return;
    parallel.error(
        "precision",
        fmt::format("{} has no {}, or no measurement of it is in the catalogue", s.node.gpu.name,
                    precision_names()[static_cast<std::size_t>(s.plan.precision)]),
        "precision = \"bf16\"");
}

// A plan is for as many GPUs as the job has.
void check_gpus(Section& parallel, const Scenario& s, bool data_given) {
    const ParallelPlan& p = s.plan;
    const std::int64_t gpus = s.job.gpus();
    const std::int64_t replica = p.tensor * p.context * p.pipeline;
    const auto product =
        static_cast<__int128>(replica) * p.data;  // of numbers up to a million each
    if (product == gpus) return;
    parallel.error(
        data_given ? "data" : "tensor",
        fmt::format("tensor {} x {}pipeline {} x data {} = {} GPUs, but the job has {} "
                    "({} nodes of {})",
                    p.tensor, p.context > 1 ? fmt::format("context {} x ", p.context) : "",
                    p.pipeline, p.data, product, gpus, s.job.nodes, s.job.gpus_per_node),
        gpus % replica == 0
            ? fmt::format("with the others as they are, data = {}", gpus / replica)
            : "choose tensor, context and pipeline so that their product divides the GPUs");
}

void check_memory(Section& parallel, const Scenario& s) {
    const ParameterBytes& bytes = s.parameter_bytes;
    const double needed = total_bytes(s.memory);
    const double capacity = static_cast<double>(s.node.gpu.usable_memory.count());
    if (needed <= capacity) return;
    std::string split;
    for (const MemoryUse& use : s.memory) {
        if (use.bytes > 0)
            split += fmt::format("{}{} {:.1f}", split.empty() ? "" : ", ", use.component,
                                 use.bytes * 1e-9);
    }
    // What would help, tried one at a time and in the order in which people try them.
    std::vector<std::string> helps;
    const auto consider = [&](const ParallelPlan& changed, std::string what) {
        const double total = memory_bytes_per_gpu(s.model, changed, bytes, s.node.gpu);
        if (total <= capacity) helps.push_back(fmt::format("{} ({:.1f} GB)", what, total * 1e-9));
    };
    for (int stage = s.plan.zero + 1; stage <= 3; ++stage) {
        ParallelPlan changed = s.plan;
        changed.zero = stage;
        consider(changed, fmt::format("zero = {}", stage));
    }
    for (const auto recompute : {Recompute::elementwise, Recompute::full}) {
        if (recompute <= s.plan.recompute) continue;
        ParallelPlan changed = s.plan;
        changed.recompute = recompute;
        consider(changed, fmt::format("recompute = \"{}\"",
                                      recompute_names()[static_cast<std::size_t>(recompute)]));
    }
    const std::int64_t gpus = s.plan.gpus();
    for (std::int64_t expert = 2 * s.plan.expert; expert <= s.model.experts; expert *= 2) {
        if (s.model.experts % expert != 0 || s.plan.replica_ranks() % expert != 0) break;
        ParallelPlan changed = s.plan;
        changed.expert = expert;
        changed.shard_ranks = 0;
        const std::size_t before = helps.size();
        consider(changed, fmt::format("expert = {}", expert));
        if (helps.size() > before) break;
    }
    for (std::int64_t tensor = 1; tensor <= s.node.nvlink_domain; tensor *= 2) {
        for (std::int64_t pipeline = 1; pipeline <= 64; pipeline *= 2) {
            if (tensor * pipeline <= s.plan.tensor * s.plan.pipeline ||
                gpus % (tensor * s.plan.context * pipeline) != 0 || s.model.heads % tensor != 0 ||
                s.model.layers % pipeline != 0) {
                continue;
            }
            ParallelPlan changed = s.plan;
            changed.tensor = tensor;
            changed.pipeline = pipeline;
            changed.first_stage_layers = changed.last_stage_layers = 0;
            changed.data = gpus / (tensor * changed.context * pipeline);
            changed.shard_ranks = 0;
            if (changed.replica_ranks() % changed.expert != 0) continue;
            const std::size_t before = helps.size();
            if (changed.global_batch % (changed.data * changed.microbatch) == 0) {
                consider(changed, fmt::format("tensor = {}, pipeline = {}", tensor, pipeline));
            }
            if (helps.size() > before) {
                tensor = s.node.nvlink_domain;
                break;
            }
        }
    }
    std::string help = fmt::format("per GPU, GB: {}", split);
    help += helps.empty()
                ? "\n    no single change of ZeRO, recomputation, experts or tensor and pipeline "
                  "parallelism makes it fit: more GPUs, or GPUs with more memory"
                : fmt::format("\n    it would fit with {}", fmt::join(helps, "; or with "));
    parallel.error(
        "",
        fmt::format("{} does not fit: {:.1f} GB per GPU, {} has {:.1f} GB: {:.1f} GB too much",
                    s.model.name, needed * 1e-9, s.node.gpu.name, capacity * 1e-9,
                    (needed - capacity) * 1e-9),
        help);
}

}  // namespace

namespace {

// What runs the job: its kernels go to the node's GPUs, its habits are what the plan has unless it says
// otherwise.
Software read_job_software(Section& job, Catalogue& catalogue, Scenario& s) {
    std::vector<std::string> names = software_names();
    if (s.own_entries != nullptr) {
        for (const std::string& own : s.own_entries->names("software")) names.push_back(own);
    }
    std::string name;
    job.name("software", name, names, "a software stack in the catalogue",
             "The stack that runs the job: its kernels, what it launches, fuses and overlaps, and "
             "what [job.parallel] has where it is silent",
             {.otherwise = "Megatron-LM's, in the mean of 2021 to 2024"});
    if (name.empty()) return {};
    const Software software = read_software(catalogue, software_id(name), s.node.gpu);
    if (s.model.name.empty()) {
        job.warning("software", "has no effect without job.model");
    } else {
        run_software(software, s.node);
    }
    take_habits(software, s.plan);
    return software;
}

// "[7, 8, 8, 7]" as text of counts: one for each pipeline stage.
void read_stage_layers(Section& parallel, ParallelPlan& p) {
    std::vector<std::string> counts;
    parallel.read("stage_layers", counts,
                  "Layers on each pipeline stage, first to last: \"7\", \"8\", ...",
                  {.otherwise = "as even as first_stage_layers and last_stage_layers leave them"});
    for (const std::string& count : counts) {
        const bool digits = !count.empty() && count.size() < 7 &&
                            count.find_first_not_of("0123456789") == std::string::npos;
        if (!digits) {
            parallel.error("stage_layers",
                           fmt::format("expected counts of layers, found '{}'", count));
            return;
        }
        p.stage_layers.push_back(std::stoll(count));
    }
}

void read_recompute(Section& parallel, ParallelPlan& p) {
    int recompute = 1;
    parallel.choose(
        "recompute", recompute, recompute_names(),
        "Activations computed again in the backward pass: the attention core (selective), "
        "norms and activation functions too (elementwise), every second multiplication too "
        "(alternate), whole layers (full)");
    p.recompute = static_cast<Recompute>(recompute);
    std::optional<std::int64_t> layers;
    parallel.read("recompute_layers", layers,
                  "With recompute = \"full\": so many layers of a stage",
                  {.bound = Bound::count, .otherwise = "all"});
    p.recompute_layers = layers.value_or(0);
    if (layers && p.recompute != Recompute::full) {
        parallel.warning("recompute_layers", "has no effect without recompute = \"full\"");
    }
    std::vector<std::string> parts;
    parallel.read("recompute_parts", parts,
                  "Parts of a layer that are computed again besides: norms, activation, latent_up, "
                  "feed_forward, experts, attention",
                  {.otherwise = "none"});
    const std::vector<std::string>& known = recompute_part_names();
    for (const std::string& part : parts) {
        const auto found = std::find(known.begin(), known.end(), part);
        if (found == known.end()) {
            parallel.error("recompute_parts", fmt::format("no part is called '{}'", part),
                           fmt::format("valid: {}", fmt::join(known, ", ")));
            continue;
        }
        p.recompute_parts |= 1U << (found - known.begin());
    }
    if (p.recompute_parts != 0 && p.recompute == Recompute::full) {
        parallel.warning("recompute_parts", "has no effect with recompute = \"full\"");
    }
}

}  // namespace

void read_parallel(Section& job, ValueReader& values, Catalogue& catalogue,
                   const ScenarioChanges& changes, Scenario& s) {
    const auto ok = [&] { return values.diagnostics().ok() && !job.describing(); };
    const Software software = read_job_software(job, catalogue, s);
    Section parallel = job.section("parallel");
    ParallelPlan& p = s.plan;
    const std::int64_t gpus = s.job.gpus();
    parallel.read("tensor", p.tensor, "Tensor-parallel ranks (TP)", {.bound = Bound::count});
    parallel.read("context", p.context,
                  "Context-parallel ranks (CP), which share out each sequence",
                  {.bound = Bound::count});
    parallel.read("pipeline", p.pipeline, "Pipeline stages (PP)", {.bound = Bound::count});
    std::optional<std::int64_t> data;
    parallel.read(
        "data", data, "Data-parallel replicas (DP)",
        {.bound = Bound::count, .otherwise = "GPUs of the job / (tensor x context x pipeline)"});
    p.data = data.value_or(std::max<std::int64_t>(1, gpus / (p.tensor * p.context * p.pipeline)));
    parallel.read("expert", p.expert,
                  "Expert-parallel ranks (EP): neighbouring context- and data-parallel ranks, "
                  "which share out "
                  "the experts",
                  {.bound = Bound::count});
    std::optional<std::int64_t> shard_ranks;
    parallel.read("shard_ranks", shard_ranks,
                  "Ranks that ZeRO shares among; between such groups gradients are all-reduced "
                  "(HSDP)",
                  {.bound = Bound::count, .otherwise = "context x data: all that hold the same"});
    p.shard_ranks = shard_ranks.value_or(0);
    std::optional<std::int64_t> first_layers;
    std::optional<std::int64_t> last_layers;
    const char* const as_others = "as on the others, or one less on both ends";
    parallel.read("first_stage_layers", first_layers, "Layers on the first pipeline stage",
                  {.bound = Bound::count, .otherwise = as_others});
    parallel.read("last_stage_layers", last_layers, "Layers on the last pipeline stage",
                  {.bound = Bound::count, .otherwise = as_others});
    p.first_stage_layers = first_layers.value_or(0);
    p.last_stage_layers = last_layers.value_or(0);
    read_stage_layers(parallel, p);
    parallel.read("interleave", p.interleave, "Virtual pipeline stages per GPU",
                  {.bound = Bound::count});
    parallel.read("microbatch", p.microbatch, "Sequences per microbatch", {.bound = Bound::count});
    p.global_batch = p.data * p.microbatch;
    parallel.read("global_batch", p.global_batch, "Sequences per step, over all replicas",
                  {.bound = Bound::count, .otherwise = "one microbatch per replica"});
    p.sequence_length = std::max<std::int64_t>(1, s.model.sequence_length);
    parallel.read("sequence_length", p.sequence_length, "Tokens per sequence",
                  {.bound = Bound::positive, .otherwise = "the model's"});
    constexpr std::int64_t sequence_length_max = 10'000'000;
    if (p.sequence_length > sequence_length_max) {
        parallel.error("sequence_length", fmt::format("expected at most {} tokens, found {}",
                                                      sequence_length_max, p.sequence_length));
        p.sequence_length = sequence_length_max;
    }
    std::int64_t zero = 1;
    parallel.read("zero", zero,
                  "ZeRO stage: 1 shares optimizer state over the data-parallel ranks, "
                  "2 gradients too, 3 weights too (FSDP)",
                  {.bound = Bound::non_negative});
    parallel.read(
        "flat_parameters", p.flat_parameters,
        "ZeRO-3 gathers a layer as one buffer; false: parameter by parameter, as in 2021");
    parallel.read("sequence_parallel", p.sequence_parallel,
                  "Share norms and residuals over the tensor-parallel ranks");
    parallel.read("overlap_data", p.overlap_data,
                  "Hide data-parallel collectives behind computation");
    parallel.read("overlap_tensor", p.overlap_tensor,
                  "Hide tensor-parallel collectives behind matrix multiplications, in pieces");
    parallel.read("overlap_context", p.overlap_context,
                  "Pass keys and values around a ring behind attention; false: gather them first");
    parallel.read("overlap_pipeline", p.overlap_pipeline,
                  "Hide sends between pipeline stages behind computation");
    parallel.read("fused_attention", p.fused_attention,
                  "Attention kernels that never write their scores to memory");
    parallel.read("fused_loss", p.fused_loss, "One kernel for the loss over the logits");
    parallel.read("cuda_graphs", p.cuda_graphs,
                  "Launch kernels by replaying a graph: no waiting for the CPU");
    int precision = 0;
    parallel.choose("precision", precision, precision_names(),
                    "What the layers' matrix multiplications compute in; fp8 is scaled as the "
                    "software does it");
    parallel.read("gather_in_fp8", p.gather_in_fp8,
                  "Gather the weights of 8- and 4-bit products as 8 bits");
    std::optional<std::int64_t> adapter_rank;
    parallel.read(
        "adapter_rank", adapter_rank,
        "Train adapters of this rank beside attention (LoRA): the model's own weights are "
        "frozen",
        {.bound = Bound::count, .otherwise = "none: all weights are trained"});
    p.adapter_rank = adapter_rank.value_or(0);
    parallel.read("fold_experts", p.fold_experts,
                  "Expert ranks are tensor-parallel ranks too, and none splits an expert");
    parallel.read("overlap_expert", p.overlap_expert,
                  "Hide all-to-all of experts behind another microbatch's computation");
    int dispatch = static_cast<int>(p.dispatch);
    parallel.choose(
        "dispatch", dispatch, expert_dispatch_names(),
        "How tokens get to their experts: a copy for each (all_to_all), or one for each "
        "node over its rail and there one for each GPU (two_stage)");
    p.dispatch = static_cast<ExpertDispatch>(dispatch);
    std::optional<double> expert_imbalance;
    parallel.read("expert_imbalance", expert_imbalance,
                  "Tokens of the busiest expert-parallel rank over the mean",
                  {.bound = Bound::at_least_one, .otherwise = "from the catalogue"});
    if (!s.model.name.empty()) p.jitter = catalogue.number("jitter", "", "step_sigma");
    parallel.read("jitter", p.jitter,
                  "Standard deviation of one rank's step over its mean; all wait for the slowest",
                  {.bound = Bound::fraction, .otherwise = "from the catalogue"});
    parallel.read(
        "reduce_in_fp32", p.reduce_in_fp32,
        "Exchange gradients in fp32; false: in the weights' 16 bits, as ZeRO-3 always does");
    int order = 0;
    parallel.choose(
        "order", order, rank_order_names(),
        "Which ranks share nodes: those of the first word are neighbours. Anything but tensor "
        "first sends its collectives over the network");
    p.order = static_cast<RankOrder>(order);
    read_recompute(parallel, p);
    parallel.finish();
    if (zero > 3)
        parallel.error("zero", fmt::format("expected a stage from 0 to 3, found {}", zero));
    p.zero = static_cast<int>(std::min<std::int64_t>(zero, 3));
    p.precision = static_cast<Precision>(precision);
    if (p.precision == Precision::fp8) p.precision = software.fp8;
    if (s.model.experts > 0) {
        p.expert_imbalance = expert_imbalance
                                 ? *expert_imbalance
                                 : catalogue.number("step_model", "all", "expert_imbalance");
    } else if (expert_imbalance && !s.model.name.empty()) {
        parallel.warning("expert_imbalance", fmt::format("{} has no experts", s.model.name));
    }
    if (p.zero < 3 && parallel.has("flat_parameters")) {
        parallel.warning("flat_parameters", "has no effect without zero = 3");
    }
    if (s.model.name.empty() && parallel.present()) {
        parallel.warning("", "has no effect without job.model");
    }
    if (!ok() || s.model.name.empty()) return;

    s.step_error = read_step_error(catalogue, s.model.experts > 0, job.has("software"), s.node.gpu);
    if (changes.plan) p = *changes.plan;
    // 'plan' models the step of the same plan.
    const bool step_measured = changes.must_run && !changes.plan && job.has("step");
    warn_of_idle_keys(parallel, s, expert_imbalance.has_value(), step_measured);
    check_precision(parallel, s);
    for (const PlanProblem& problem : plan_problems(s.model, p)) {
        // With other GPUs than the job's nobody knows how many replicas are meant.
        const bool sure = data || gpus % (p.tensor * p.context * p.pipeline) == 0 ||
                          problem.key == "tensor" || problem.key == "pipeline";
        if (sure) parallel.error(problem.key, problem.message, problem.help);
    }
    check_gpus(parallel, s, data.has_value());
    if (!ok()) return;
    s.parameter_bytes = read_parameter_bytes(catalogue);
    s.memory = memory_per_gpu(s.model, p, s.parameter_bytes, s.node.gpu);
    if (changes.must_run) check_memory(parallel, s);
}

std::optional<Duration> read_given_step(Section& job) {
    constexpr double step_seconds_max = 1e7;  // a step of 116 days is a mistake in the scenario
    Section step = job.section("step");
    std::optional<Duration> given;
    step.read("time", given, "A measured step time, all of it productive",
              {.bound = Bound::positive, .otherwise = "modelled from job.model and job.parallel"});
    step.finish();
    if (given && seconds(*given) > step_seconds_max) {
        step.error("time",
                   fmt::format("a step of {} is longer than any training run's", to_text(*given)));
    }
    return given;
}

}  // namespace railyard
