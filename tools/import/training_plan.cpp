#include "tools/import/training_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/import/text_file.h"

namespace railyard {

const TrainingArgument* TrainingPlan::find(const std::string& name) {
    read_.push_back(name);
    const auto found = arguments_.find(name);
    return found != arguments_.end() ? &found->second : nullptr;
}

std::string TrainingPlan::origin(const std::string& name) const {
    const TrainingArgument& argument = arguments_.at(name);
    return fmt::format("{}:{}: {}{}{}{}", argument.file, argument.line, name,
                       argument.values.empty() ? "" : " ", fmt::join(argument.values, " "),
                       argument.note.empty() ? "" : ", " + argument.note);
}

std::int64_t TrainingPlan::count(const std::string& name) {
    const TrainingArgument* argument = find(name);
    if (argument == nullptr) return 0;
    const std::string text = argument->values.empty() ? "" : argument->values.front();
    const auto value = whole_value(text);
    constexpr std::int64_t most = 1'000'000'000;
    if (value && *value >= 1 && *value <= most) return *value;
    if (text.find('$') != std::string::npos) {
        diagnostics_.error(
            argument->file, {argument->line, 1}, name,
            fmt::format("is {}, which nothing in this file says", text),
            "write its number, or give the log's dump of arguments, which has all of them");
    } else {
        diagnostics_.error(argument->file, {argument->line, 1}, name,
                           fmt::format("expected 1 or more, found '{}'", text));
    }
    return 0;
}

void TrainingPlan::copy(const char* ours, const char* theirs) {
    const std::int64_t value = count(theirs);
    if (value > 0) part_.whole(ours, value, origin(theirs));
}

void TrainingPlan::add_flag(const char* ours, const char* theirs, bool means) {
    const TrainingArgument* flag = find(theirs);
    if (flag == nullptr) return;
    const std::string value = flag->values.empty() ? "true" : lower_case(flag->values.front());
    part_.value(ours, (value == "true") == means ? "true" : "false", origin(theirs));
}

// Once the number of stages on a GPU, once the layers of a stage: which it is hangs on the argument.
void TrainingPlan::add_interleave() {
    for (const char* stages :
         {"num_virtual_stages_per_pipeline_rank", "virtual_pipeline_model_parallel_size"}) {
        if (find(stages) != nullptr) return copy("interleave", stages);
    }
    const char* key = "num_layers_per_virtual_pipeline_stage";
    const TrainingArgument* given = find(key);
    if (given == nullptr) return;
    const std::int64_t layers = count("num_layers");
    const std::int64_t stages = std::max<std::int64_t>(1, count("pipeline_model_parallel_size"));
    const std::int64_t each = count(key);
    if (each == 0) return;
    if (layers == 0 || layers % (stages * each) != 0) {
        return diagnostics_.error(given->file, {given->line, 1}, key,
                                  fmt::format("is layers of a virtual stage: with {} layers and {} "
                                              "stages it gives no number of them",
                                              layers, stages),
                                  "give num-layers, too");
    }
    part_.value("interleave", fmt::format("{}", layers / stages / each),
                origin(key) + fmt::format(", of {} layers on {} stages", layers, stages));
}

// Parts of a layer by Megatron's names.
void TrainingPlan::add_parts() {
    constexpr std::pair<const char*, const char*> parts[] = {
        {"layernorm", "norms"},  {"moe_act", "activation"}, {"mla_up_proj", "latent_up"},
        {"mlp", "feed_forward"}, {"moe", "experts"},        {"shared_experts", "shared_experts"}};
    const TrainingArgument* modules = find("recompute_modules");
    if (modules == nullptr) {
        return part_.quoted("recompute", "selective", origin("recompute_granularity"));
    }
    bool core = false;
    std::vector<std::string> ours;
    for (const std::string& module : modules->values) {
        const auto known = std::find_if(std::begin(parts), std::end(parts),
                                        [&](const auto& part) { return part.first == module; });
        if (known != std::end(parts)) {
            ours.push_back(toml_text(known->second));
        } else if (module == "core_attn") {
            core = true;
        } else {
            part_.note("Not expressed: {}: {} is computed again.", origin("recompute_modules"),
                       module);
        }
    }
    part_.value("recompute", core ? "\"selective\"" : "\"none\"", origin("recompute_modules"));
    if (!ours.empty()) {
        part_.value("recompute_parts", fmt::format("[{}]", fmt::join(ours, ", ")),
                    origin("recompute_modules"));
    }
}

void TrainingPlan::add_recompute() {
    const char* key = "recompute_granularity";
    const TrainingArgument* granularity = find(key);
    if (granularity == nullptr) {
        return part_.quoted("recompute", "none", "no argument asks for it: Megatron's default");
    }
    const std::string is = granularity->values.empty() ? "" : granularity->values.front();
    if (is == "selective") return add_parts();
    if (is != "full") {
        return diagnostics_.error(granularity->file, {granularity->line, 1}, key,
                                  fmt::format("expected full or selective, found '{}'", is));
    }
    part_.quoted("recompute", "full", origin(key));
    const TrainingArgument* method = find("recompute_method");
    const std::int64_t layers = count("recompute_num_layers");
    if (method == nullptr || layers == 0) return;
    if (!method->values.empty() && method->values.front() == "block") {
        part_.whole("recompute_layers", layers, origin("recompute_num_layers"));
    } else if (layers > 1) {
        part_.note("Not expressed: {}: groups of layers of which the input alone is kept.",
                   origin("recompute_num_layers"));
    }
}

void TrainingPlan::add_offload() {
    const char* key = "cpu_offloading_num_layers";
    const TrainingArgument* given = find(key);
    if (given == nullptr || given->values == std::vector<std::string>{"0"}) return;
    if (const std::int64_t layers = count(key); layers > 0) {
        part_.whole("offload_layers", layers, origin(key));
    }
}

void TrainingPlan::add_overlap() {
    const TrainingArgument* reduce = find("overlap_grad_reduce");
    const TrainingArgument* gather = find("overlap_param_gather");
    if (reduce == nullptr && gather == nullptr) {
        part_.value("overlap_data", "false", "no overlap-grad-reduce: Megatron's default");
    } else {
        part_.value("overlap_data", "true",
                    origin(reduce != nullptr ? "overlap_grad_reduce" : "overlap_param_gather"));
        if (reduce == nullptr || (gather == nullptr && zero_ > 0)) {
            part_.note(
                "overlap_data is one key: here only one of gradients and parameters overlaps.");
        }
    }
    add_flag("overlap_tensor", "tp_comm_overlap", true);
    add_flag("overlap_tensor", "ub_tp_comm_overlap", true);
    add_flag("overlap_pipeline", "no_overlap_p2p_communication", false);
    add_flag("overlap_pipeline", "overlap_p2p_comm", true);
}

void TrainingPlan::add_precision() {
    const TrainingArgument* fp8 = find("fp8_format");
    if (fp8 == nullptr) fp8 = find("fp8");
    const bool is_fp8 =
        fp8 != nullptr && (fp8->values.empty() || lower_case(fp8->values.front()) != "false");
    const TrainingArgument* recipe = find("fp8_recipe");
    const std::string how =
        recipe != nullptr && !recipe->values.empty() ? recipe->values.front() : "";
    const std::string from = arguments_.contains("fp8_format") ? "fp8_format" : "fp8";
    if (is_fp8) {
        const char* ours = how == "mxfp8"        ? "\"mxfp8\""
                           : how == "tensorwise" ? "\"fp8_current\""
                                                 : "\"fp8\"";
        return part_.value("precision", ours, origin(from));
    }
    for (const char* key : {"bf16", "precision", "fp16"}) {
        const TrainingArgument* given = find(key);
        if (given == nullptr) continue;
        const std::string is = given->values.empty() ? key : lower_case(given->values.front());
        if (is == "bf16" || is == "bf16-mixed" || is == "true") {
            return part_.quoted("precision", "bf16", origin(key));
        }
        diagnostics_.warning(
            given->file, {given->line, 1}, key,
            fmt::format("'{}' can't be expressed: products here are in bf16 or less", is),
            "job.parallel.precision is left to you");
        return part_.left_out("{}: job.parallel.precision", origin(key));
    }
    part_.left_out("precision: Megatron's default is fp32, here it is bf16");
}

void TrainingPlan::add_checkpoint() {
    std::string key = "save_interval";
    if (find(key) == nullptr) key = "every_n_train_steps";
    const std::int64_t steps = count(key);
    if (steps == 0) return part_.left_out("save-interval");
    part_.section("job.checkpoint");
    part_.value("interval", fmt::format("\"{} steps\"", steps), origin(key));
    if (find("async_save") != nullptr) {
        part_.quoted("mode", "async", origin("async_save"));
    } else {
        part_.quoted("mode", "sync", "no async-save: Megatron's default");
    }
}

void TrainingPlan::say_rest() {
    for (const char* key :
         {"rampup_batch_size", "expert_tensor_parallel_size", "pipeline_model_parallel_layout",
          "cp_comm_type", "num_distributed_optimizer_instances", "moe_token_dispatcher_type",
          "delay_wgrad_compute", "overlap_moe_expert_parallel_comm", "cross_entropy_loss_fusion",
          "enable_cuda_graph", "mtp_num_layers"}) {
        if (find(key) != nullptr) part_.note("Not expressed: {}.", origin(key));
    }
    part_.left_out("the model: a config.json, or [model.mine] of your own");
    part_.left_out("nodes and GPUs, which the launcher says: data is what is left of them");
}

void TrainingPlan::add_plan() {
    part_.section("job.parallel");
    copy("tensor", "tensor_model_parallel_size");
    copy("pipeline", "pipeline_model_parallel_size");
    copy("context", "context_parallel_size");
    copy("expert", "expert_model_parallel_size");
    add_interleave();
    copy("first_stage_layers", "decoder_first_pipeline_num_layers");
    copy("last_stage_layers", "decoder_last_pipeline_num_layers");
    copy("microbatch", "micro_batch_size");
    copy("global_batch", "global_batch_size");
    if (find("global_batch_size") == nullptr)
        part_.left_out("global-batch-size: a microbatch per replica");
    copy("sequence_length", find("seq_length") != nullptr ? "seq_length" : "encoder_seq_length");
    part_.whole("zero", zero_, zero_origin_);
    if (find("sequence_parallel") != nullptr) {
        add_flag("sequence_parallel", "sequence_parallel", true);
    } else {
        part_.value("sequence_parallel", "false", "no sequence-parallel: Megatron's default");
    }
    add_recompute();
    add_offload();
    add_overlap();
    add_precision();
    add_checkpoint();
    say_rest();
}

}  // namespace railyard
