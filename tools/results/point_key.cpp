#include "tools/results/point_key.h"

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "sim/fingerprint.h"
#include "tools/language/scenario_files.h"
#include "tools/program/json_text.h"

namespace railyard {

namespace {

using SortedJson = nlohmann::json;

// What stands for the text of a key, named as in the schema: jobs.trace.
using TextOf = std::function<SortedJson(const Value& text, const std::string& key)>;

SortedJson canonical(const Value& value, const std::string& key, const TextOf& text_of) {
    switch (value.kind) {
        case Value::Kind::table: {
            SortedJson out = SortedJson::object();
            for (const auto& [name, member] : value.members) {
                out[name] = canonical(member, key.empty() ? name : key + "." + name, text_of);
            }
            return out;
        }
        case Value::Kind::array: {
            SortedJson out = SortedJson::array();
            for (const Value& item : value.items) out.push_back(canonical(item, key, text_of));
            return out;
        }
        case Value::Kind::string:
            return text_of(value, key);
        case Value::Kind::integer:
            return value.integer;
        case Value::Kind::real:
            return value.real;
        case Value::Kind::boolean:
            return value.integer != 0;
        case Value::Kind::other:
            break;
    }
    return nullptr;
}

}  // namespace

std::string digest_of(std::string_view text) {
    Fingerprint first;
    first.add(text);
    Fingerprint second;
    second.add(first.value());
    second.add(text);
    return first.hex() + second.hex();
}

Document document_with(std::string_view toml, const std::string& file,
                       const std::vector<std::string>& settings) {
    Diagnostics diagnostics;
    Document out = parse_with_includes(toml, file, diagnostics);
    diagnostics.raise_if_any();
    for (const std::string& setting : settings) apply_setting(out, setting, diagnostics);
    diagnostics.raise_if_any();
    return out;
}

// A file that can't be read is reported by whoever reads it.
std::string PointKeys::digest_of_file(const std::string& path) {
    const auto [found, is_new] = digests_.try_emplace(path);
    std::error_code ignored;
    if (is_new && std::filesystem::is_regular_file(path, ignored)) {
        found->second = digest_of(read_file(path));
    }
    return found->second;
}

PointKey PointKeys::of(const Document& scenario) {
    SortedJson json =
        canonical(scenario.root, "", [&](const Value& text, const std::string& key) -> SortedJson {
            if (!names_a_file(key)) return text.text;
            return {{"file", text.text},
                    {"digest", digest_of_file(file_beside(text, scenario.name))}};
        });
    PointKey out;
    json.erase("title");
    json.erase("sweep");
    json.erase("design");
    json.erase("table");
    json.erase("include");  // what is in the files counts, not how many there are
    if (json.contains("run") && json["run"].is_object()) {
        SortedJson& run = json["run"];
        if (run.contains("seed") && run["seed"].is_number_integer()) {
            out.seed = run["seed"].get<std::uint64_t>();
        }
        run.erase("seed");
        run.erase("replicas");
        if (run.empty()) json.erase("run");
    }
    out.text = digest_of(fmt::format("{}\n{}\n{}", version_, out.seed, one_line(json)));
    return out;
}

}  // namespace railyard
