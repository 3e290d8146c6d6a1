// railyard calc: the four calculators that practitioners keep on the back of an envelope. Each
// prints its formula with the numbers filled in.

#include <fmt/format.h>

#include <cmath>

#include "tools/cli/calculator_inputs.h"
#include "tools/cli/cmd.h"
#include "tools/cli/terminal.h"

namespace railyard {

namespace {

std::string gigabytes(double bytes) {
    return fmt::format("{:.4g} GB", bytes * 1e-9);
}

int calc_checkpoint(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard calc checkpoint --model NAME [options]",
        "Size of a checkpoint, the time to write it, and the bandwidth that an interval asks for.");
    line.add()("model", a_text(), "A model in the catalogue");
    line.add()("params", a_text(), "Or its number of parameters, such as 175e9");
    line.add()("bytes-per-param", a_text(), "Bytes saved per parameter");
    line.add()("write-bandwidth", a_text(), "What the store takes, such as \"4 GB/s\"");
    line.add()("interval", a_text(), "Start to start, such as \"1 h\"");
    line.add()("stall-budget", a_text(),
               "Share of the time that may go into stalls (default 0.05)");
    CalculatorInputs in(line.parse(arguments));
    in.need({"model", "params"});
    const double params = in.params();
    const double per_param = in.number_or(
        "bytes-per-param", in.catalogue().number("checkpoint", "", "persisted_bytes_per_param"));
    const double budget = in.number_or("stall-budget", 0.05, Bound::fraction);
    const Duration interval =
        in.has("interval") ? in.time("interval") : Duration(std::chrono::hours(1));
    std::optional<Bandwidth> write;
    if (in.has("write-bandwidth")) write = in.bandwidth("write-bandwidth");
    in.check();
    const double size = params * per_param;
    if (size > 9e18) throw ScenarioError("overflow: the checkpoint is larger than 9 EB");

    fmt::print("size = parameters x bytes per parameter\n     = {:.6g} x {:g} = {}\n", params,
               per_param, gigabytes(size));
    if (write) {
        const Duration stall = transfer_time(Bytes::of(std::llround(size)), *write);
        fmt::print("stall = size / write bandwidth\n      = {} / {} = {}\n", gigabytes(size),
                   to_text(*write), to_text(stall));
        fmt::print("share of the time = stall / interval\n      = {} / {} = {:.3g} %\n",
                   to_text(stall), to_text(interval), 100 * seconds(stall) / seconds(interval));
        const double saves = 30 * 86400.0 / seconds(interval);
        fmt::print("in 30 days = 30 day / interval x stall\n      = {:.4g} x {} = {:.4g} h\n",
                   saves, to_text(stall), saves * seconds(stall) / 3600);
    }
    fmt::print(
        "write bandwidth for {:g} % of stalls = size / (share x interval)\n      = {} / ({:g} x "
        "{}) = {:.4g} GB/s\n",
        100 * budget, gigabytes(size), budget, to_text(interval),
        size / (budget * seconds(interval)) * 1e-9);
    return exit_ok;
}

// The options that are a plan's, by the keys of [job.parallel].
std::string option_of(std::string key) {
    std::replace(key.begin(), key.end(), '_', '-');
    return key;
}

struct PlanCount {
    const char* option;
    std::int64_t ParallelPlan::*member;
    const char* doc;
};
constexpr PlanCount plan_counts[] = {
    {"tensor", &ParallelPlan::tensor, "Tensor-parallel ranks"},
    {"context", &ParallelPlan::context, "Context-parallel ranks"},
    {"pipeline", &ParallelPlan::pipeline, "Pipeline stages"},
    {"data", &ParallelPlan::data, "Data-parallel replicas"},
    {"expert", &ParallelPlan::expert, "Expert-parallel ranks"},
    {"shard-ranks", &ParallelPlan::shard_ranks, "Ranks that ZeRO shares among (default: all)"},
    {"first-stage-layers", &ParallelPlan::first_stage_layers, "Layers on the first stage"},
    {"last-stage-layers", &ParallelPlan::last_stage_layers, "Layers on the last stage"},
    {"interleave", &ParallelPlan::interleave, "Virtual pipeline stages per GPU"},
    {"microbatch", &ParallelPlan::microbatch, "Sequences per microbatch"},
};

// Throws ScenarioError with all that the model says against the plan.
void check_plan(const TransformerModel& model, const ParallelPlan& plan) {
    Diagnostics diagnostics;
    for (const PlanProblem& problem : plan_problems(model, plan)) {
        diagnostics.error("", {}, "--" + option_of(problem.key), problem.message, problem.help);
    }
    diagnostics.raise_if_any();
}

ParallelPlan plan_of(CalculatorInputs& in, const TransformerModel& model, const Gpu& gpu) {
    ParallelPlan plan;
    std::vector<std::string> stacks = software_names();
    stacks.emplace_back(unnamed_software);
    const std::string software = in.entry("software", "software", stacks);
    in.check();
    static_cast<StackHabits&>(plan) =
        read_software(in.catalogue(), software_id(software), gpu).habits;
    for (const PlanCount& each : plan_counts) {
        plan.*each.member = in.count_or(each.option, plan.*each.member);
    }
    plan.sequence_length = in.count_or("sequence-length", model.sequence_length);
    plan.zero = in.choice("zero", {"0", "1", "2", "3"});
    plan.recompute = static_cast<Recompute>(in.choice("recompute", recompute_names));
    if (in.has("no-sequence-parallel")) plan.sequence_parallel = false;
    if (in.has("unfused-attention")) plan.fused_attention = false;
    plan.expert_imbalance = in.number_or(
        "expert-imbalance", in.catalogue().number("step_model", "all", "expert_imbalance"),
        Bound::at_least_one);
    const std::int64_t microbatches = in.count_or("microbatches", plan.pipeline);
    plan.global_batch = microbatches * plan.data * plan.microbatch;
    plan.images = in.number("images", Bound::non_negative);
    if (plan.images > 0 && model.vision.layers == 0) {
        throw ScenarioError(fmt::format("--images: {} has no vision encoder", model.name));
    }
    in.check();
    check_plan(model, plan);
    return plan;
}

int calc_memory(const std::vector<std::string>& arguments) {
    CommandLine line("railyard calc memory --model NAME [options]",
                     "Memory per GPU of a training job, by component.");
    line.add()("model", a_text(), "A model in the catalogue");
    line.add()("gpu-node", a_text("dgx_h100"), "A node in the catalogue");
    line.add()("software", a_text(unnamed_software),
               "A software stack in the catalogue: what it keeps, and how precisely");
    for (const PlanCount& each : plan_counts) line.add()(each.option, a_text(), each.doc);
    line.add()("microbatches", a_text(), "Microbatches per replica and step (default: pipeline)");
    line.add()("sequence-length", a_text(), "Tokens (default: the model's)");
    line.add()("images", a_text("0"), "Images of a sequence, of a model that looks at them");
    line.add()("zero", a_text("1"), "ZeRO stage, 0 to 3");
    line.add()("recompute", a_text("selective"), "none, selective, elementwise or full");
    line.add()("no-sequence-parallel", "Norms and residuals are on all tensor-parallel ranks");
    line.add()("unfused-attention", "Scores are written to memory");
    line.add()(
        "expert-imbalance", a_text(),
        "Tokens of the busiest expert-parallel rank over the mean (default: the catalogue's)");
    CalculatorInputs in(line.parse(arguments));
    in.need({"model"});
    const TransformerModel model = in.model();
    const std::string node_name = in.entry("gpu-node", "node");
    in.check();
    const ParameterBytes bytes = read_parameter_bytes(in.catalogue());
    const Node node = read_node(in.catalogue(), node_name);
    const ParallelPlan plan = plan_of(in, model, node.gpu);

    fmt::print("{:.6g} parameters over {} GPUs: {}\n", parameter_count(model), plan.gpus(),
               split_text(plan));
    Table table({"component", ">per GPU", "="});
    const std::vector<MemoryUse> uses = memory_per_gpu(model, plan, bytes, node.gpu);
    for (const MemoryUse& use : uses) {
        table.add({use.component, fmt::format("{:.2f} GB", use.bytes * 1e-9), use.formula});
    }
    const double total = total_bytes(uses);
    const double capacity = static_cast<double>(node.gpu.usable_memory.count());
    table.add({"total", fmt::format("{:.2f} GB", total * 1e-9), ""});
    fmt::print("{}{} has {:.1f} GB: {}\n", table.text(), node.gpu.name, capacity * 1e-9,
               total <= capacity ? fmt::format("fits, {:.1f} GB left", (capacity - total) * 1e-9)
                                 : fmt::format("{:.1f} GB too much", (total - capacity) * 1e-9));
    return exit_ok;
}

int calc_time(const std::vector<std::string>& arguments) {
    CommandLine line("railyard calc time --model NAME --tokens N --gpus N [options]",
                     "How long a training run takes.");
    line.add()("model", a_text(), "A model in the catalogue");
    line.add()("params", a_text(), "Or its number of (active) parameters");
    line.add()("tokens", a_text(), "Tokens to train on, such as 15.6e12");
    line.add()("gpus", a_text(), "GPUs");
    line.add()("gpu", a_text("h100_sxm"), "A GPU in the catalogue");
    line.add()("mfu", a_text("0.4"), "Model FLOPs utilisation while stepping, of the bf16 peak");
    line.add()("goodput", a_text("1"), "Share of the time that goes into steps");
    CalculatorInputs in(line.parse(arguments));
    in.need({"model", "params"});
    if (!in.has("tokens") || !in.has("gpus"))
        throw ScenarioError("calc time needs --tokens and --gpus");
    const double params = in.params(true);
    const double tokens = in.number("tokens");
    const double gpus = in.number("gpus");
    const double mfu = in.number("mfu", Bound::fraction);
    const double share = in.number("goodput", Bound::fraction);
    if (mfu <= 0 || share <= 0) throw ScenarioError("--mfu and --goodput are shares above 0");
    const std::string gpu = in.entry("gpu", "gpu");
    in.check();
    const double peak = in.catalogue().compute("gpu", gpu, "bf16_dense").per_second;
    const double rate = gpus * peak * mfu * share;
    const double flops = 6 * params * tokens;
    fmt::print("FLOPs = 6 x parameters x tokens\n      = 6 x {:.6g} x {:.6g} = {:.4g}\n", params,
               tokens, flops);
    fmt::print(
        "time = FLOPs / (GPUs x bf16 peak x MFU x goodput)\n     = {:.4g} / ({:.6g} x {} x {:g} x "
        "{:g}) = {:.4g} h = {:.4g} day\n",
        flops, gpus, to_text(Flops{peak}), mfu, share, flops / rate / 3600, flops / rate / 86400);
    fmt::print("GPU-hours = GPUs x time = {:.4g}\n", gpus * flops / rate / 3600);
    if (in.has("model")) {
        const TransformerModel model = in.model();
        const double forward = forward_flops_per_token(model, model.sequence_length);
        fmt::print(
            "with attention over {} tokens, as a run's MFU counts it:\n"
            "FLOPs = 3 x forward FLOPs of a token x tokens\n"
            "      = 3 x {:.4g} x {:.6g} = {:.4g}, {:.4g} day\n{}",
            model.sequence_length, forward, tokens, 3 * forward * tokens,
            3 * forward * tokens / rate / 86400,
            model.vision.layers > 0 ? "of text alone: images cost more\n" : "");
    }
    return exit_ok;
}

int calc_kv_cache(const std::vector<std::string>& arguments) {
    CommandLine line("railyard calc kv-cache --model NAME [options]",
                     "Size of the key-value cache that serving a model keeps.");
    line.add()("model", a_text(), "A model in the catalogue");
    line.add()("batch", a_text("1"), "Sequences at once");
    line.add()("context", a_text(), "Tokens per sequence (default: the model's)");
    line.add()("bytes-per-element", a_text("2"), "2 for bf16, 1 for fp8");
    CalculatorInputs in(line.parse(arguments));
    in.need({"model"});
    const TransformerModel m = in.model();
    const double batch = in.number("batch");
    const double context = in.number_or("context", static_cast<double>(m.sequence_length));
    const double element = in.number("bytes-per-element");
    in.check();
    const std::int64_t width =
        m.kv_rank > 0 ? m.kv_rank + m.rotary_dim : 2 * m.kv_heads * m.head_dim;
    // Layers with states keep these whatever the context: a sequence has them once. Those with a window keep
    // what it reaches.
    const double all_layers = count_layers(m).with(Mixer::attention);
    const double window = m.window > 0 ? std::min(static_cast<double>(m.window), context) : context;
    const double layers =  // whose cache grows with the context
        m.window == 0 ? all_layers
        : m.full_attention_every == 0
            ? 0
            : std::floor(all_layers / static_cast<double>(m.full_attention_every));
    const double per_token = layers * static_cast<double>(width) * element;
    if (m.kv_rank > 0) {
        fmt::print(
            "bytes per token = layers that see all x (latent + rotary dimension) x bytes per "
            "element\n"
            "      = {} x ({} + {}) x {:g} = {:.0f} B\n",
            layers, m.kv_rank, m.rotary_dim, element, per_token);
    } else {
        fmt::print(
            "bytes per token = 2 x layers that see all x KV heads x head dimension x bytes per "
            "element\n"
            "      = 2 x {} x {} x {} x {:g} = {:.0f} B\n",
            layers, m.kv_heads, m.head_dim, element, per_token);
    }
    const double of_windows = (all_layers - layers) * static_cast<double>(width) * element;
    if (of_windows == 0) {
        fmt::print(
            "cache = bytes per token x context x sequences\n      = {:.0f} x {:g} x {:g} = {}\n",
            per_token, context, batch, gigabytes(per_token * context * batch));
    } else {
        fmt::print(
            "window = {:.0f} B of each token, of the last {}, in {:g} other layers\n"
            "cache = (bytes per token x context + window) x sequences\n"
            "      = ({:.0f} x {:g} + {:.0f} x {:g}) x {:g} = {}\n",
            of_windows, m.window, all_layers - layers, per_token, context, of_windows, window,
            batch, gigabytes((per_token * context + of_windows * window) * batch));
    }
    return exit_ok;
}

struct Calculator {
    const char* name;
    int (*run)(const std::vector<std::string>&);
    const char* doc;
};

constexpr Calculator calculators[] = {
    {"checkpoint", calc_checkpoint,
     "size of a checkpoint, its stall, the write bandwidth it asks for"},
    {"memory", calc_memory, "training memory per GPU by component"},
    {"time", calc_time, "how long a training run takes"},
    {"kv-cache", calc_kv_cache, "size of the key-value cache of inference"},
};

}  // namespace

int cmd_calc(const std::vector<std::string>& arguments) {
    const bool help = !arguments.empty() && (arguments[0] == "--help" || arguments[0] == "-h");
    if (!help && !arguments.empty()) {
        return named(calculators, arguments[0], fmt::format("no calculator '{}'", arguments[0]))
            .run({arguments.begin() + 1, arguments.end()});
    }
    fmt::print("usage: railyard calc CALCULATOR [options]\n\n");
    for (const Calculator& each : calculators) fmt::print("  {:11} {}\n", each.name, each.doc);
    fmt::print("\n'railyard calc CALCULATOR --help' lists its options.\n");
    return help ? exit_ok : exit_user_error;
}

}  // namespace railyard
