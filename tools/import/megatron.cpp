// Megatron-LM's arguments: of the script that starts a run, or of the dump of all of them in its log.

#include <fmt/format.h>

#include <algorithm>

#include "tools/import/text_file.h"
#include "tools/import/training_plan.h"

namespace railyard {

namespace {

bool is_name(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    });
}

std::string unquoted(std::string text) {
    std::erase_if(text, [](char c) { return c == '"' || c == '\''; });
    return text;
}

class Megatron : private TrainingPlan {
  public:
    using TrainingPlan::TrainingPlan;

    void run() {
        for (const std::string& file : options_.files) {
            file_ = file;
            for (const FileLine& line : read_lines(file, diagnostics_)) read_line(line);
        }
        diagnostics_.raise_if_any();
        if (!arguments_.contains("micro_batch_size") &&
            !arguments_.contains("tensor_model_parallel_size")) {
            return error(
                "has no argument of Megatron-LM",
                "give the script with --micro-batch-size ..., or a log with its 'arguments' dump");
        }
        if (!dump_ && !unknown_branches_.empty()) {
            part_.note("Left out: what stands behind conditions that hang on the environment: {}.",
                       some_of(unknown_branches_));
        }
        find_zero();
        add_plan();
    }

  private:
    void read_line(const FileLine& line) {
        const std::string text(trimmed(line.text));
        if (text.starts_with('#') || text.empty()) {
            last_.clear();
            return;
        }
        if (read_dump(line)) return;
        if (read_condition(text, line.number) || skips()) return;
        read_assignment(text);
        const std::size_t comment = text.find(" #");
        const bool goes_on = !last_.empty() && text.find('=') == std::string::npos;
        if (text.find("--") == std::string::npos && !goes_on) {
            last_.clear();
            return;
        }
        read_words(text.substr(0, comment), line.number);
        if (!text.ends_with('\\')) last_.clear();
    }

    // "  tensor_model_parallel_size ...... 8", of a log.
    bool read_dump(const FileLine& line) {
        const std::size_t dots = line.text.find(" ....");
        if (dots == std::string::npos) return false;
        const std::size_t end = line.text.find(' ', dots + 1);
        if (end == std::string::npos) return false;
        const std::vector<std::string> before = split_text(line.text.substr(0, dots), ' ');
        const std::string value(trimmed(std::string_view(line.text).substr(end)));
        if (before.empty() || !is_name(before.back())) return false;
        dump_ = true;
        if (value == "None" || value == "False") return true;
        TrainingArgument argument;
        argument.file = file_;
        argument.line = line.number;
        if (value != "True") {
            std::string list = value;
            std::erase_if(list,
                          [](char c) { return c == '[' || c == ']' || c == ',' || c == '\''; });
            argument.values = split_text(list, ' ');
        }
        arguments_[before.back()] = std::move(argument);
        return true;
    }

    // NAME=value and NAME=${NAME:-value}.
    void read_assignment(const std::string& text) {
        std::string_view rest = text;
        if (rest.starts_with("export ")) rest = trimmed(rest.substr(7));
        const std::size_t equals = rest.find('=');
        if (equals == std::string_view::npos || !is_name(rest.substr(0, equals))) return;
        const std::string name(rest.substr(0, equals));
        std::string value(rest.substr(equals + 1));
        if (value.starts_with("(")) return;  // a list of arguments: its words are read as such
        Variable variable;
        const std::size_t otherwise = value.find(":-");
        if (value.starts_with("${") && otherwise != std::string::npos) {
            const std::size_t close = value.find('}', otherwise);
            value = value.substr(otherwise + 2,
                                 close == std::string::npos ? close : close - otherwise - 2);
            variable.by_default = true;
        } else {
            value = value.substr(0, value.find(" #"));
        }
        std::string note;
        variable.value = resolved(unquoted(std::string(trimmed(value))), note);
        if (variable.value.find_first_of("$`(") == std::string::npos) variables_[name] = variable;
    }

    // if [ "${NAME}" = value ]; then ... else ... fi
    bool read_condition(const std::string& text, int line) {
        const auto ends = [&](std::string_view word) {
            return text == word || text.starts_with(std::string(word) + " ") ||
                   text.starts_with(std::string(word) + ";");
        };
        if (ends("fi") || ends("esac")) {
            if (!branches_.empty()) branches_.pop_back();
            return true;
        }
        const std::string_view code = trimmed(std::string_view(text).substr(0, text.find(" #")));
        const bool in_a_line = code.ends_with(" fi") || code.ends_with(";fi") ||
                               code.ends_with(" esac") || code.ends_with(";esac");
        if (in_a_line && (text.starts_with("if ") || text.starts_with("case "))) {
            // What it sets nobody knows; what it tests stays.
            for (const std::string& word : split_text(std::string(code), ' ')) {
                const std::size_t equals = word.find('=');
                if (equals != std::string::npos && equals > 0 && is_name(word.substr(0, equals))) {
                    variables_.erase(word.substr(0, equals));
                    unknown_branches_.push_back(fmt::format("{}:{}", file_, line));
                }
            }
            if (code.find("--") != std::string_view::npos) {
                unknown_branches_.push_back(fmt::format("{}:{}", file_, line));
            }
            return true;
        }
        if (text.starts_with("case ")) {
            unknown_branches_.push_back(fmt::format("{}:{}", file_, line));
            branches_.push_back(-1);
            return true;
        }
        if (text.starts_with("for ")) {  // it has another value each time
            variables_.erase(std::string(split_text(text, ' ')[1]));
            return false;
        }
        if (text == "else" && !branches_.empty()) {
            if (branches_.back() >= 0) branches_.back() = 1 - branches_.back();
            return true;
        }
        if (text.starts_with("elif ") && !branches_.empty()) {
            branches_.back() = -1;
            unknown_branches_.push_back(fmt::format("{}:{}", file_, line));
            return true;
        }
        if (!text.starts_with("if ")) return false;
        std::string note;
        const std::vector<std::string> words = split_text(resolved(unquoted(text), note), ' ');
        int taken = -1;
        const bool equals = words.size() > 5 && (words[1] == "[" || words[1] == "[[") &&
                            (words[3] == "=" || words[3] == "==" || words[3] == "-eq");
        if (equals && words[2].find('$') == std::string::npos) taken = words[2] == words[4] ? 1 : 0;
        if (taken < 0) unknown_branches_.push_back(fmt::format("{}:{}", file_, line));
        branches_.push_back(taken);
        return true;
    }

    void read_words(const std::string& text, int line) {
        for (std::string word : split_text(text, ' ')) {
            word = unquoted(word);
            while (!word.empty() && (word.back() == ')' || word.back() == '\\')) word.pop_back();
            if (word.starts_with("--") && word.size() > 2) {
                const std::size_t equals = word.find('=');
                last_ = word.substr(2, equals == std::string::npos ? equals : equals - 2);
                std::replace(last_.begin(), last_.end(), '-', '_');
                TrainingArgument argument;
                argument.file = file_;
                argument.line = line;
                if (equals != std::string::npos) {
                    argument.values.push_back(resolved(word.substr(equals + 1), argument.note));
                }
                arguments_[last_] = std::move(argument);
            } else if (!last_.empty() && !word.empty() && word != "(") {
                TrainingArgument& argument = arguments_[last_];
                argument.values.push_back(resolved(word, argument.note));
            }
        }
    }

    // With what the script says of its variables; what it says nothing of stays.
    std::string resolved(const std::string& text, std::string& note) const {
        std::string out;
        for (std::size_t at = 0; at < text.size();) {
            if (text[at] != '$') {
                out += text[at++];
                continue;
            }
            const bool braces = at + 1 < text.size() && text[at + 1] == '{';
            std::size_t end = at + (braces ? 2 : 1);
            const std::size_t begin = end;
            while (end < text.size() && is_name(text.substr(end, 1))) ++end;
            const std::string name = text.substr(begin, end - begin);
            const std::size_t after =
                braces && end < text.size() && text[end] == '}' ? end + 1 : end;
            const auto known = variables_.find(name);
            if (known == variables_.end() || (braces && after == end)) {
                out += text.substr(at, after - at);
            } else {
                out += known->second.value;
                if (known->second.by_default) {
                    note = fmt::format("{} is {} unless the environment says otherwise", name,
                                       known->second.value);
                }
            }
            at = std::max(after, at + 1);
        }
        return out;
    }

    bool skips() const {
        return std::ranges::any_of(branches_, [](int taken) { return taken != 1; });
    }

    void find_zero() {
        const std::string strategy = "data_parallel_sharding_strategy";
        const bool fsdp =
            find("use_megatron_fsdp") != nullptr || find("use_custom_fsdp") != nullptr;
        if (const TrainingArgument* given = find(strategy); fsdp && given != nullptr) {
            const std::string is = given->values.empty() ? "" : given->values.front();
            const std::vector<std::string> known = {"no_shard", "optim", "optim_grads",
                                                    "optim_grads_params"};
            const auto found = std::ranges::find(known, is);
            if (found == known.end()) {
                return diagnostics_.error(
                    given->file, {given->line, 1}, strategy,
                    fmt::format("expected {}, found '{}'", fmt::join(known, ", "), is));
            }
            zero_ = static_cast<int>(found - known.begin());
            zero_origin_ = origin(strategy);
        } else if (find("use_distributed_optimizer") != nullptr) {
            zero_ = 1;
            zero_origin_ = origin("use_distributed_optimizer");
        } else {
            zero_origin_ = "no use-distributed-optimizer: Megatron's default";
        }
    }

    // A variable of the shell.
    struct Variable {
        std::string value;
        bool by_default = false;  // of ${NAME:-value}: the environment may say otherwise
    };

    std::map<std::string, Variable> variables_;
    std::vector<int> branches_;  // of each if: 1 taken, 0 not, -1 nobody knows
    std::vector<std::string> unknown_branches_;
    std::string last_;  // the argument that values go to
    bool dump_ = false;
};

}  // namespace

Import import_megatron = run_importer<Megatron>;

}  // namespace railyard
