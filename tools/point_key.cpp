#include "tools/point_key.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/fingerprint.h"

namespace railyard {

namespace {

using Json = nlohmann::json;  // sorts its keys

// A file's name stands for what is in it, too. One that can't be read is reported by whoever reads it.
Json named_file(const std::string& name, const std::string& folder) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) return name;
    return {{"file", name}, {"digest", digest_of(read_file(path.string()))}};
}

Json canonical(const Value& value, const std::string& folder) {
    switch (value.kind) {
        case Value::Kind::table: {
            Json out = Json::object();
            for (const auto& [key, member] : value.members) {
                const bool is_file =
                    (key == "file" || key == "path") && member.kind == Value::Kind::string;
                out[key] = is_file ? named_file(member.text, folder) : canonical(member, folder);
            }
            return out;
        }
        case Value::Kind::array: {
            Json out = Json::array();
            for (const Value& item : value.items) out.push_back(canonical(item, folder));
            return out;
        }
        case Value::Kind::string:
            return value.text;
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

// A file that isn't UTF-8 has been refused by the TOML parser; a replacement character is enough here.
std::string dumped(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
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
    Document out = parse_document(toml, file, diagnostics);
    diagnostics.raise_if_any();
    for (const std::string& setting : settings) apply_setting(out, setting, diagnostics);
    diagnostics.raise_if_any();
    return out;
}

std::string canonical_text(const Value& value) {
    return dumped(canonical(value, ""));
}

PointKey point_key(const Document& scenario, const std::string& version) {
    Json json =
        canonical(scenario.root, std::filesystem::path(scenario.name).parent_path().string());
    PointKey out;
    json.erase("title");
    json.erase("sweep");
    if (json.contains("run") && json["run"].is_object()) {
        Json& run = json["run"];
        if (run.contains("seed") && run["seed"].is_number_integer()) {
            out.seed = run["seed"].get<std::uint64_t>();
        }
        run.erase("seed");
        run.erase("replicas");
        if (run.empty()) json.erase("run");
    }
    out.text = digest_of(fmt::format("{}\n{}\n{}", version, out.seed, dumped(json)));
    return out;
}

}  // namespace railyard
