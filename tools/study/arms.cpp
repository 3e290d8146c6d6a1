#include "tools/study/arms.h"

#include <fmt/format.h>

#include "sim/error.h"
#include "sim/text.h"

namespace railyard {

namespace {

// Parts between separators that stand outside of quotes and brackets.
std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts(1);
    char quote = 0;
    int depth = 0;
    bool escaped = false;
    for (const char c : text) {
        if (quote != 0) {
            if (c == quote && !escaped) quote = 0;
            escaped = quote == '"' && c == '\\' && !escaped;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '[' || c == '{') {
            ++depth;
        } else if (c == ']' || c == '}') {
            --depth;
        } else if (c == separator && depth == 0) {
            parts.emplace_back();
            continue;
        }
        parts.back() += c;
    }
    if (quote != 0 || depth != 0) {
        throw ScenarioError(
            fmt::format("'{}': {}", visible(text),
                        quote != 0 ? "a quote is not closed" : "brackets don't match"));
    }
    for (std::string& part : parts) part = std::string(trimmed(part));
    return parts;
}

// "kmin = 100 KB" of fabric.compute.ecn.kmin.
std::string label(const std::string& key, const std::string& value) {
    return key.substr(key.rfind('.') + 1) + " = " + value;
}

Arm named_arm(const std::string& text) {
    const std::size_t colon = text.find(':');
    const std::size_t equals = text.find('=');
    if (colon == std::string::npos || colon > equals || trimmed(text.substr(0, colon)).empty()) {
        throw ScenarioError(fmt::format("--arm '{}' has no name", text),
                            "--arm \"NAME: KEY=VALUE; KEY=VALUE\"");
    }
    Arm arm{visible(trimmed(text.substr(0, colon))), {}};
    for (const std::string& setting : split(text.substr(colon + 1), ';')) {
        if (!setting.empty()) arm.settings.push_back(setting);
    }
    return arm;
}

}  // namespace

std::vector<Arm> arms_of(const std::vector<std::string>& varied,
                         const std::vector<std::string>& named) {
    std::vector<Arm> arms;
    for (const std::string& text : named) arms.push_back(named_arm(text));
    if (arms.empty() && !varied.empty()) arms.emplace_back();
    for (const std::string& text : varied) {
        const std::size_t equals = text.find('=');
        const std::string key(trimmed(std::string_view(text).substr(0, equals)));
        if (equals == std::string::npos || key.empty()) {
            throw ScenarioError(fmt::format("--vary '{}': expected KEY=V1,V2", text));
        }
        std::vector<Arm> combined;
        for (const Arm& arm : arms) {
            for (const std::string& value : split(text.substr(equals + 1), ',')) {
                combined.push_back(arm);
                Arm& last = combined.back();
                last.name += (last.name.empty() ? "" : ", ") + label(key, value);
                last.settings.push_back(key + "=" + value);
            }
        }
        arms = std::move(combined);
    }
    return arms;
}

}  // namespace railyard
