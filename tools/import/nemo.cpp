// A configuration of NeMo (YAML for hydra): its arguments are Megatron's, with names of their own for some.

#include <fmt/format.h>

#include "tools/import/training_plan.h"
#include "tools/language/settings_diff.h"

namespace railyard {

namespace {

class Nemo : private TrainingPlan {
  public:
    using TrainingPlan::TrainingPlan;
    void run() {
        const Document document = file_as_yaml();
        take(document.root, "", 0);
        if (!arguments_.contains("micro_batch_size")) {
            return error(Position{}, "model.micro_batch_size", "is missing",
                         "is this a configuration of NeMo's training, such as "
                         "megatron_gpt_config.yaml?");
        }
        for (auto& [key, argument] : arguments_) resolve(argument);
        find_zero();
        if (arguments_.contains("seq_length") && arguments_.contains("encoder_seq_length")) {
            arguments_.erase("seq_length");
        }
        add_plan();
    }

  private:
    void take(const Value& table, const std::string& path, int depth) {
        constexpr int deepest = 20;
        if (depth > deepest) return;
        for (const auto& [key, value] : table.members) {
            const std::string full = path.empty() ? key : path + "." + key;
            if (value.kind == Value::Kind::table) {
                take(value, full, depth + 1);
                continue;
            }
            if (value.kind == Value::Kind::array || value.kind == Value::Kind::other) continue;
            const std::string text = value_text(value);
            if (text.empty()) continue;
            values_[full] = text;
            // Where several keys have one name, the model's own counts.
            std::string name = key;
            if (key.starts_with("activations_checkpoint_")) name = "recompute_" + key.substr(23);
            const bool own = full == "model." + key || full == "trainer.precision" ||
                             full == "exp_manager.checkpoint_callback_params." + key ||
                             full == "model.data.seq_length";
            if (!own ||
                (text == "false" && key != "overlap_p2p_comm" && key != "sequence_parallel"))
                continue;
            TrainingArgument argument;
            argument.values = {text};
            argument.file = file_;
            argument.line = value.at.line;
            paths_[name] = full;
            arguments_[name] = std::move(argument);
        }
    }

    // ${model.encoder_seq_length}, ${.encoder_seq_length}: another key of the file.
    void resolve(TrainingArgument& argument) {
        for (int hops = 0; hops < 10; ++hops) {
            std::string& text = argument.values.front();
            if (!text.starts_with("${") || !text.ends_with('}')) return;
            std::string path = text.substr(2, text.size() - 3);
            if (path.starts_with('.')) path = "model" + path;
            const auto found = values_.find(path);
            if (found == values_.end()) return;
            argument.note = fmt::format("as {} has it", path);
            text = found->second;
        }
    }

    void find_zero() {
        const auto name = values_.find("model.optim.name");
        if (name != values_.end() && name->second.find("distributed") != std::string::npos) {
            zero_ = 1;
            zero_origin_ = fmt::format("{}: model.optim.name = {}", file_, name->second);
        } else {
            zero_origin_ = fmt::format("{}: model.optim.name = {}: no distributed optimizer", file_,
                                       name != values_.end() ? name->second : "none");
        }
    }

    std::map<std::string, std::string> values_;  // by path
    std::map<std::string, std::string> paths_;   // of arguments
};

}  // namespace

Import import_nemo = run_importer<Nemo>;

}  // namespace railyard
