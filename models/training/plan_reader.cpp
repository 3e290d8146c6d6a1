#include "models/training/plan_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/training/plan_check.h"
#include "sim/text.h"

namespace railyard {

namespace {

// A plan, with what it is for.
struct Planned {
    const TransformerModel& model;
    const Node& node;
    const PlanContext& job;
    const PlanSpec& spec;
};

// Parts to compute again that no layer has.
void warn_of_idle_parts(Section& parallel, const TransformerModel& m, const ParallelPlan& p) {
    const std::pair<unsigned, const char*> parts[] = {
        {m.kv_rank == 0 ? recompute_latent_up : 0, "latent_up"},
        {m.experts == 0 ? recompute_experts : 0, "experts"},
        {m.shared_experts == 0 ? recompute_shared : 0, "shared_experts"}};
    for (const auto& [part, name] : parts) {
        if ((p.recompute_parts & part) == 0) continue;
        parallel.warning("recompute_parts",
                         fmt::format("'{}' has no effect: {} has no such part", name, m.name));
    }
}

// What only a modelled step, or one of several ranks, depends on.
void warn_of_idle_overlaps(Section& parallel, const ParallelPlan& p, const char* step_from,
                           bool staged) {
    if (step_from != nullptr) {
        const std::string why =
            fmt::format("has no effect beside {}: the step is measured", step_from);
        warn_of_keys(
            parallel,
            {"reduce_in_fp32", "order", "flat_parameters", "overlap_data", "overlap_tensor",
             "overlap_context", "overlap_pipeline", "fused_loss", "cuda_graphs", "precision",
             "jitter", "overlap_expert", "dispatch", "gather_in_fp8", "images_spread"},
            why);
        if (p.recompute != Recompute::none) warn_of_keys(parallel, {"fused_attention"}, why);
    } else if (!staged) {
        if (p.tensor == 1) {
            warn_of_keys(parallel, {"overlap_tensor"}, "has no effect without tensor > 1");
        }
        if (p.context == 1) {
            warn_of_keys(parallel, {"overlap_context"}, "has no effect without context > 1");
        }
        if (p.pipeline == 1) {
            warn_of_keys(parallel, {"overlap_pipeline"}, "has no effect without pipeline > 1");
        }
    }
}

// What has no effect.
void warn_of_idle_keys(Section& parallel, const Planned& s, bool imbalance_given,
                       const char* step_from) {
    const ParallelPlan& p = s.spec.plan;
    if (p.shard_ranks > 0 && p.zero == 0) {
        parallel.warning("shard_ranks", "has no effect with zero = 0");
    }
    if (imbalance_given && s.model.experts > 0 && p.expert == 1) {
        parallel.warning("expert_imbalance",
                         "has no effect with expert = 1: one rank has all tokens");
    }
    warn_of_idle_overlaps(parallel, p, step_from, s.job.staged);
    const std::int64_t of_stage = layers_per_stage(s.model, p);
    if (p.recompute == Recompute::full && p.recompute_layers > of_stage) {
        parallel.warning("recompute_layers",
                         fmt::format("is more than a stage has: all its {} layers", of_stage));
    }
    if (p.zero == 3 && p.reduce_in_fp32 && parallel.has("reduce_in_fp32") && step_from == nullptr &&
        !s.job.staged) {
        parallel.warning("reduce_in_fp32",
                         "changes memory alone: ZeRO-3 is modelled with gradients sent in 16 bits");
    }
    if (s.model.experts == 0 || p.expert == 1) {
        warn_of_keys(parallel, {"fold_experts", "overlap_expert", "dispatch"},
                     "has no effect without expert > 1");
    }
    warn_of_idle_parts(parallel, s.model, p);
    if (s.model.vision.layers == 0) {
        warn_of_keys(parallel, {"images", "images_spread", "freeze_vision"},
                     fmt::format("has no effect: {} has no vision encoder", s.model.name));
    } else if (p.images == 0 || p.data == 1) {
        warn_of_keys(parallel, {"images_spread"},
                     p.images == 0 ? "has no effect without images"
                                   : "has no effect with one replica, which waits for no other");
    }
    if (p.adapter_rank > 0) {
        warn_of_keys(parallel, {"freeze_vision"}, "has no effect: beside adapters it is frozen");
    }
    if (!p.fused_attention && p.attention_in_fp8) {
        parallel.warning("attention_in_fp8", "has no effect without fused_attention");
    }
    if (p.precision == Precision::bf16) {
        warn_of_keys(parallel, {"gather_in_fp8"}, "has no effect with precision = \"bf16\"");
    }
    if (p.pipeline == 1) {
        warn_of_keys(parallel,
                     {"first_stage_layers", "last_stage_layers", "stage_layers", "schedule"},
                     "has no effect without pipeline > 1");
    } else if (!p.stage_layers.empty()) {
        warn_of_keys(parallel, {"first_stage_layers", "last_stage_layers"},
                     "has no effect beside stage_layers");
    }
}

// `asked` is the word that the scenario has: its stack may call another recipe fp8.
void check_precision(Section& parallel, const Planned& s, const std::string& asked) {
    const ParallelPlan& p = s.spec.plan;
    if (p.attention_in_fp8 && s.node.gpu.achievable(Precision::fp8).per_second <= 0) {
        parallel.error("attention_in_fp8",
                       fmt::format("{} has no fp8, or no measurement of it is in the catalogue",
                                   s.node.gpu.name),
                       "attention_in_fp8 = false");
    }
    if (s.node.gpu.achievable(p.precision).per_second > 0) return;
    parallel.error("precision",
                   fmt::format("{} has no {}, or no measurement of it is in the catalogue",
                               s.node.gpu.name, asked),
                   "precision = \"bf16\"");
}

// A plan is for as many GPUs as the job has.
void check_gpus(Section& parallel, const Planned& s, bool data_given) {
    const ParallelPlan& p = s.spec.plan;
    const std::int64_t gpus = s.job.gpus();
    const std::int64_t replica = p.tensor * p.context * p.pipeline;
    const auto product =
        static_cast<__int128>(replica) * p.data;  // of numbers up to a million each
    if (product == gpus) return;
    parallel.error(
        data_given ? "data" : "tensor",
        fmt::format(
            "tensor {} x {}pipeline {} x data {} = {} GPUs, but the job has {} ({} nodes of {})",
            p.tensor, p.context > 1 ? fmt::format("context {} x ", p.context) : "", p.pipeline,
            p.data, product, gpus, s.job.nodes, s.job.gpus_per_node),
        gpus % replica == 0
            ? fmt::format("with the others as they are, data = {}", gpus / replica)
            : "choose tensor, context and pipeline so that their product divides the GPUs");
}

// Changes of a plan with which it would fit, one at a time and in the order in which people try them.
class Helps {
  public:
    Helps(const Planned& s, double capacity) : s_(s), capacity_(capacity) {
        store_less();
        spread_experts();
        split_further();
    }
    const std::vector<std::string>& all() const { return all_; }

  private:
    bool consider(const ParallelPlan& changed, const std::string& what) {
        const double total =
            memory_bytes_per_gpu(s_.model, changed, s_.spec.parameter_bytes, s_.node.gpu);
        if (total > capacity_) return false;
        all_.push_back(fmt::format("{} ({:.1f} GB)", what, total * 1e-9));
        return true;
    }
    void store_less();
    void spread_experts();
    void split_further();

    const Planned& s_;
    double capacity_;
    std::vector<std::string> all_;
};

void Helps::store_less() {
    for (int stage = s_.spec.plan.zero + 1; stage <= 3; ++stage) {
        ParallelPlan changed = s_.spec.plan;
        changed.zero = stage;
        consider(changed, fmt::format("zero = {}", stage));
    }
    for (const auto recompute : {Recompute::elementwise, Recompute::full}) {
        if (recompute <= s_.spec.plan.recompute) continue;
        ParallelPlan changed = s_.spec.plan;
        changed.recompute = recompute;
        consider(changed, fmt::format("recompute = \"{}\"", word_of(recompute_names, recompute)));
    }
}

void Helps::spread_experts() {
    for (std::int64_t expert = 2 * s_.spec.plan.expert; expert <= s_.model.experts; expert *= 2) {
        if (s_.model.experts % expert != 0 || s_.spec.plan.replica_ranks() % expert != 0) break;
        ParallelPlan changed = s_.spec.plan;
        changed.expert = expert;
        changed.shard_ranks = 0;
        if (consider(changed, fmt::format("expert = {}", expert))) return;
    }
}

void Helps::split_further() {
    const std::int64_t gpus = s_.spec.plan.gpus();
    for (std::int64_t tensor = 1; tensor <= s_.node.nvlink_domain; tensor *= 2) {
        for (std::int64_t pipeline = 1; pipeline <= 64; pipeline *= 2) {
            if (tensor * pipeline <= s_.spec.plan.tensor * s_.spec.plan.pipeline ||
                gpus % (tensor * s_.spec.plan.context * pipeline) != 0) {
                continue;
            }
            ParallelPlan changed = s_.spec.plan;
            changed.tensor = tensor;
            changed.pipeline = pipeline;
            changed.first_stage_layers = changed.last_stage_layers = 0;
            changed.stage_layers.clear();
            changed.data = gpus / (tensor * changed.context * pipeline);
            changed.shard_ranks = 0;
            if (plan_problems(s_.model, changed).empty() &&
                consider(changed, fmt::format("tensor = {}, pipeline = {}", tensor, pipeline))) {
                return;
            }
        }
    }
}

void check_memory(Section& parallel, const Planned& s) {
    const double needed = total_bytes(s.spec.memory);
    const double capacity = real(s.node.gpu.usable_memory.count());
    if (needed <= capacity) return;
    std::string split;
    for (const MemoryUse& use : s.spec.memory) {
        if (use.bytes > 0)
            split += fmt::format("{}{} {:.1f}", split.empty() ? "" : ", ", use.component,
                                 use.bytes * 1e-9);
    }
    const std::vector<std::string> helps = Helps(s, capacity).all();
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

// "[7, 8, 8, 7]" as text of counts: one for each pipeline stage.
void read_stage_layers(Section& parallel, std::int64_t layers, ParallelPlan& p) {
    std::vector<std::string> counts;
    parallel.read("stage_layers", counts,
                  "Layers on each pipeline stage, first to last: \"7\", \"8\", ...; or \"even\": "
                  "as many on each, or one less, which the last has first",
                  {.otherwise = "as even as first_stage_layers and last_stage_layers leave them"});
    if (counts.size() == 1 && counts[0] == "even") {
        if (layers >= p.pipeline) p.stage_layers = even_stages(layers, p.pipeline);
        return;
    }
    for (const std::string& count : counts) {
        const auto stage = whole_value(count);
        if (!stage || *stage < 0 || *stage >= 1'000'000) {
            parallel.error(
                "stage_layers",
                fmt::format("expected counts of layers, or \"even\" alone, found '{}'", count));
            return;
        }
        p.stage_layers.push_back(*stage);
    }
}

// 0: not given.
std::int64_t read_count(Section& section, const char* key, const char* doc, const char* otherwise) {
    std::optional<std::int64_t> given;
    section.read(key, given, doc, {Bound::count, otherwise});
    return given.value_or(0);
}

void read_recompute(Section& parallel, ParallelPlan& p) {
    parallel.choose("recompute", p.recompute, recompute_names,
                    "Activations computed again in the backward pass: the attention core "
                    "(selective), norms and activation functions too (elementwise), every second "
                    "multiplication too (alternate), whole layers (full)");
    p.recompute_layers = read_count(parallel, "recompute_layers",
                                    "With recompute = \"full\": so many layers of a stage", "all");
    if (p.recompute_layers > 0 && p.recompute != Recompute::full) {
        parallel.warning("recompute_layers", "has no effect without recompute = \"full\"");
    }
    std::vector<std::string> parts;
    parallel.read("recompute_parts", parts,
                  "Parts of a layer that are computed again besides: norms, activation, latent_up, "
                  "feed_forward, experts, attention, shared_experts",
                  {.otherwise = "none"});
    const std::vector<std::string>& known = recompute_part_names;
    for (const std::string& part : parts) {
        const auto found = std::ranges::find(known, part);
        if (found == known.end()) {
            parallel.error("recompute_parts", fmt::format("no part is called '{}'", part),
                           fmt::format("valid: {}", fmt::join(known, ", ")));
            continue;
        }
        p.recompute_parts |= 1U << (found - known.begin());
    }
    if (p.recompute_parts != 0 && p.recompute == Recompute::full) {
        parallel.warning("recompute_parts", "has no effect with recompute = \"full\"");
        p.recompute_parts = 0;
    }
    p.offload_layers = read_count(
        parallel, "offload_layers",
        "Layers of a stage whose activations wait in the host's memory for the backward pass",
        "none");
}

class PlanReader {
  public:
    PlanReader(Section& job, ValueReader& values, Catalogue& catalogue, const PlanContext& context,
               Node& node)
        : job_(job),
          values_(values),
          catalogue_(catalogue),
          context_(context),
          node_(node),
          fp8_(read_stack()),
          parallel_(job.section("parallel")) {}

    PlanSpec read();

  private:
    bool ok() const { return values_.diagnostics().ok() && !job_.describing(); }
    Precision read_stack();
    void read_split();
    void read_execution();
    void read_adapters_and_experts();
    void settle();
    void check();

    Section& job_;
    ValueReader& values_;
    Catalogue& catalogue_;
    const PlanContext& context_;
    Node& node_;
    PlanSpec spec_;
    ParallelPlan& p_ = spec_.plan;
    std::string named_;  // the job's software, where it is one of the catalogue's
    Precision fp8_;      // how the job's software scales 8 bits
    Section parallel_;
    std::optional<std::int64_t> data_;
    std::optional<double> images_;
    std::int64_t zero_ = 1;
    int precision_ = 0;
    std::optional<double> imbalance_;
};

// What runs the job: its kernels go to the node's GPUs, its habits are what the plan has unless it says
// otherwise.
Precision PlanReader::read_stack() {
    std::vector<std::string> names = software_names();
    const std::vector<std::string>& own = context_.own_software;
    names.insert(names.end(), own.begin(), own.end());
    // As [override] and 'railyard list' have them, too.
    const std::vector<std::string> ids = Catalogue::names("software");
    if (!job_.describing()) names.insert(names.end(), ids.begin(), ids.end());
    std::string name;
    job_.name("software", name, names, "a software stack in the catalogue",
              "The stack that runs the job: its kernels, what it launches, fuses and overlaps, and "
              "what [job.parallel] has where it is silent",
              {.otherwise = "Megatron-Core 0.12, with the interval of a stack that nobody named"});
    if (name.empty() && context_.model.name.empty()) return Software{}.fp8;
    if (std::ranges::find(own, name) == own.end()) named_ = software_id(name);
    if (name.empty()) name = unnamed_software;
    const Software software = read_software(catalogue_, software_id(name), node_.gpu);
    if (context_.model.name.empty()) {
        job_.warning("software", "has no effect without job.model");
    } else {
        run_software(software, node_);
    }
    static_cast<StackHabits&>(p_) = software.habits;
    return software.fp8;
}

PlanSpec PlanReader::read() {
    read_split();
    read_execution();
    parallel_.finish();
    settle();
    if (ok() && !context_.model.name.empty()) check();
    return std::move(spec_);
}

// Over how many ranks of each kind, and in what pieces.
void PlanReader::read_split() {
    parallel_.read("tensor", p_.tensor, "Tensor-parallel ranks (TP)", {Bound::count});
    parallel_.read("context", p_.context,
                   "Context-parallel ranks (CP), which share out each sequence", {Bound::count});
    parallel_.read("pipeline", p_.pipeline, "Pipeline stages (PP)", {Bound::count});
    parallel_.read("data", data_, "Data-parallel replicas (DP)",
                   {Bound::count, "GPUs of the job / (tensor x context x pipeline)"});
    p_.data = data_.value_or(
        std::max<std::int64_t>(1, context_.gpus() / (p_.tensor * p_.context * p_.pipeline)));
    parallel_.read("expert", p_.expert,
                   "Expert-parallel ranks (EP): neighbouring context- and data-parallel ranks, "
                   "which share out the experts",
                   {Bound::count});
    p_.shard_ranks = read_count(
        parallel_, "shard_ranks",
        "Ranks that ZeRO shares among; between such groups gradients are all-reduced (HSDP)",
        "context x data: all that hold the same");
    const char* const as_others = "as on the others, or one less on both ends";
    p_.first_stage_layers = read_count(parallel_, "first_stage_layers",
                                       "Layers on the first pipeline stage", as_others);
    p_.last_stage_layers =
        read_count(parallel_, "last_stage_layers", "Layers on the last pipeline stage", as_others);
    read_stage_layers(parallel_, context_.model.layers, p_);
    parallel_.read("interleave", p_.interleave, "Virtual pipeline stages per GPU", {Bound::count});
    parallel_.choose("schedule", p_.schedule, pipeline_schedule_names,
                     "Order of the microbatches in the pipeline: one forward, one backward "
                     "(interleaved with virtual stages); gradients of weights where a stage would "
                     "wait (zero_bubble: ZB-H1; zero_bubble_v: ZB-V); from both ends (dualpipe, "
                     "dualpipe_v)");
    parallel_.read("microbatch", p_.microbatch, "Sequences per microbatch", {Bound::count});
    p_.global_batch = p_.data * p_.microbatch;
    parallel_.read("global_batch", p_.global_batch, "Sequences per step, over all replicas",
                   {Bound::count, "one microbatch per replica"});
    p_.sequence_length = std::max<std::int64_t>(1, context_.model.sequence_length);
    parallel_.read("sequence_length", p_.sequence_length, "Tokens per sequence",
                   {Bound::positive, "the model's"});
    constexpr std::int64_t sequence_length_max = 10'000'000;
    if (p_.sequence_length > sequence_length_max) {
        parallel_.error("sequence_length", fmt::format("expected at most {} tokens, found {}",
                                                       sequence_length_max, p_.sequence_length));
        p_.sequence_length = sequence_length_max;
    }
    parallel_.read("images", images_, "Images of a sequence, in the mean",
                   {Bound::non_negative, "must be given where the model has a vision encoder"});
    p_.images = images_.value_or(0);
    parallel_.read(
        "images_spread", p_.images_spread,
        "Standard deviation of the images of a sequence: replicas wait for the one that has most",
        {Bound::non_negative});
    parallel_.read("freeze_vision", p_.freeze_vision,
                   "The vision encoder is not trained; its projector is, unless adapters are");
}

// What is shared, hidden, fused and computed again.
void PlanReader::read_execution() {
    const KeyRules as_software{.otherwise = "as job.software does"};
    parallel_.read("zero", zero_,
                   "ZeRO stage: 1 shares optimizer state over the data-parallel ranks, 2 gradients "
                   "too (without pipeline stages), 3 weights too (FSDP)",
                   {Bound::non_negative});
    parallel_.read(
        "flat_parameters", p_.flat_parameters,
        "ZeRO-3 gathers a layer as one buffer; false: parameter by parameter, as in 2021");
    parallel_.read("sequence_parallel", p_.sequence_parallel,
                   "Share norms and residuals over the tensor-parallel ranks", as_software);
    parallel_.read("overlap_data", p_.overlap_data,
                   "Hide data-parallel collectives behind computation", as_software);
    parallel_.read("overlap_tensor", p_.overlap_tensor,
                   "Hide tensor-parallel collectives behind matrix multiplications, in pieces",
                   as_software);
    parallel_.read("overlap_context", p_.overlap_context,
                   "Pass keys and values around a ring behind attention; false: gather them first");
    parallel_.read("overlap_pipeline", p_.overlap_pipeline,
                   "Hide sends between pipeline stages behind computation", as_software);
    parallel_.read("fused_attention", p_.fused_attention,
                   "Attention kernels that never write their scores to memory", as_software);
    parallel_.read("attention_in_fp8", p_.attention_in_fp8,
                   "Fused attention multiplies in 8 bits, whatever the layers' products do");
    parallel_.read("fused_loss", p_.fused_loss, "One kernel for the loss over the logits",
                   as_software);
    parallel_.read("cuda_graphs", p_.cuda_graphs,
                   "Launch kernels by replaying a graph: no waiting for the CPU", as_software);
    parallel_.choose("precision", precision_, precision_names,
                     "What the layers' matrix multiplications compute in; fp8 is scaled as the "
                     "software does it");
    parallel_.read("gather_in_fp8", p_.gather_in_fp8,
                   "Gather the weights of 8- and 4-bit products as 8 bits", as_software);
    read_adapters_and_experts();
    if (!context_.model.name.empty()) p_.jitter = catalogue_.number("jitter", "", "step_sigma");
    parallel_.read("jitter", p_.jitter,
                   "Standard deviation of one rank's step over its mean; all wait for the slowest",
                   {Bound::fraction, "from the catalogue"});
    parallel_.read(
        "reduce_in_fp32", p_.reduce_in_fp32,
        "Exchange gradients in fp32; false: in the weights' 16 bits, as ZeRO-3 always does",
        as_software);
    parallel_.choose("order", p_.order, rank_order_names,
                     "Which ranks share nodes: those of the first word are neighbours. Anything "
                     "but tensor first sends its collectives over the network");
    read_recompute(parallel_, p_);
}

void PlanReader::read_adapters_and_experts() {
    p_.adapter_rank = read_count(
        parallel_, "adapter_rank",
        "Train adapters of this rank beside attention (LoRA): the model's own weights are frozen",
        "none: all weights are trained");
    parallel_.read("fold_experts", p_.fold_experts,
                   "Expert ranks are tensor-parallel ranks too, and none splits an expert");
    parallel_.read("overlap_expert", p_.overlap_expert,
                   "Hide all-to-all of experts behind another microbatch's computation");
    parallel_.choose("dispatch", p_.dispatch, expert_dispatch_names,
                     "How tokens get to their experts: a copy for each (all_to_all), or one for "
                     "each node over its rail and there one for each GPU (two_stage)");
    parallel_.read("expert_imbalance", imbalance_,
                   "Tokens of the busiest expert-parallel rank over the mean",
                   {Bound::at_least_one, "from the catalogue"});
}

void PlanReader::settle() {
    if (zero_ > 3)
        parallel_.error("zero", fmt::format("expected a stage from 0 to 3, found {}", zero_));
    p_.zero = static_cast<int>(std::min<std::int64_t>(zero_, 3));
    if (p_.zero == 2 && p_.pipeline > 1) {
        parallel_.warning("zero",
                          "2 is as 1 with pipeline stages: gradients are added up whole, "
                          "and leave once a step");
    }
    if (p_.pipeline == 1) p_.schedule = PipelineSchedule::one_forward_one_backward;
    p_.precision = static_cast<Precision>(precision_);
    if (p_.precision == Precision::fp8) p_.precision = fp8_;
    if (context_.model.experts > 0) {
        p_.expert_imbalance =
            imbalance_ ? *imbalance_ : catalogue_.number("step_model", "all", "expert_imbalance");
    } else if (imbalance_ && !context_.model.name.empty()) {
        parallel_.warning("expert_imbalance",
                          fmt::format("{} has no experts", context_.model.name));
    }
    if (p_.zero < 3) warn_of_keys(parallel_, {"flat_parameters"}, "has no effect without zero = 3");
    if (context_.model.name.empty() && parallel_.present()) {
        parallel_.warning("", "has no effect without job.model");
    }
}

// Whether the job's GPUs can do it, in their memory.
void PlanReader::check() {
    const Planned all{context_.model, node_, context_, spec_};
    spec_.step_error = read_step_error(catalogue_, context_.model.experts > 0, named_, node_.gpu);
    if (context_.instead) p_ = *context_.instead;
    // A draw of an estimate stands for the nearest number that the layers allow.
    if (values_.factor(parallel_.path("interleave")) != 1) {
        p_.interleave = nearest_interleave(context_.model, p_);
    }
    if (values_.perturbed() && context_.model.vision.layers > 0) {
        p_.images = std::min(p_.images, real(p_.sequence_length) / context_.model.vision.tokens());
    }
    // 'plan' models the step of the same plan.
    const bool told = context_.must_run && !context_.instead;
    const char* const step_from = told && job_.has("trace")  ? "job.trace"
                                  : told && job_.has("step") ? "job.step.time"
                                                             : nullptr;
    warn_of_idle_keys(parallel_, all, imbalance_.has_value(), step_from);
    if (context_.model.vision.layers > 0 && !images_ && !context_.instead) {
        parallel_.error("images",
                        fmt::format("{} looks at images, and nothing says how many a sequence has",
                                    context_.model.name),
                        "images = 0 with text alone");
    }
    check_precision(parallel_, all, word_of(precision_names, precision_));
    for (const PlanProblem& problem : plan_problems(context_.model, p_)) {
        // With other GPUs than the job's nobody knows how many replicas are meant.
        const bool sure = data_ || context_.gpus() % (p_.tensor * p_.context * p_.pipeline) == 0 ||
                          problem.key == "tensor" || problem.key == "pipeline";
        if (sure) parallel_.error(problem.key, problem.message, problem.help);
    }
    check_gpus(parallel_, all, data_.has_value());
    if (!ok()) return;
    spec_.parameter_bytes = read_parameter_bytes(catalogue_);
    spec_.memory = memory_per_gpu(context_.model, p_, spec_.parameter_bytes, node_.gpu);
    if (context_.must_run) check_memory(parallel_, all);
}

}  // namespace

PlanSpec read_plan(Section& job, ValueReader& values, Catalogue& catalogue,
                   const PlanContext& context, Node& node) {
    return PlanReader(job, values, catalogue, context, node).read();
}

std::optional<Duration> read_given_step(Section& job) {
    constexpr double step_seconds_max = 1e7;  // a step of 116 days is a mistake in the scenario
    Section step = job.section("step");
    std::optional<Duration> given;
    step.read("time", given, "A measured step time, all of it productive",
              {Bound::positive, "modelled from job.model and job.parallel"});
    step.finish();
    if (given && seconds(*given) > step_seconds_max) {
        step.error("time",
                   fmt::format("a step of {} is longer than any training run's", to_text(*given)));
    }
    return given;
}

}  // namespace railyard
