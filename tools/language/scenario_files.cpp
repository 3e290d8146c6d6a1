#include "tools/language/scenario_files.h"

#include <filesystem>
#include <set>

#include "models/campaign/campaign.h"

namespace railyard {

namespace {

void collect(const Value& value, const std::string& key, const Document& scenario,
             std::vector<std::string>& files) {
    for (const auto& [name, member] : value.members) {
        collect(member, key.empty() ? name : key + "." + name, scenario, files);
    }
    for (const Value& item : value.items) collect(item, key, scenario, files);
    if (value.kind == Value::Kind::string && names_a_file(key)) {
        files.push_back(file_beside(value, scenario.name));
    }
}

// Names of files as they are seen from `folder`.
void see_from(const std::filesystem::path& folder, Value& value, const std::string& key) {
    for (auto& [name, member] : value.members) {
        see_from(folder, member, key.empty() ? name : key + "." + name);
    }
    for (Value& item : value.items) see_from(folder, item, key);
    if (value.kind == Value::Kind::string && value.at.file && names_a_file(key)) {
        value.text = std::filesystem::path(file_beside(value, "")).lexically_proximate(folder);
    }
}

}  // namespace

bool names_a_file(const std::string& key) {
    static const std::set<std::string> keys = [] {
        std::set<std::string> out;
        for (const SchemaRow& row : scenario_schema()) {
            if (row.type == file_type) out.insert(row.path);
        }
        return out;
    }();
    return keys.contains(key);
}

std::string in_one_file(const std::string& toml, const std::string& file) {
    Diagnostics ignored;  // they were reported when it ran
    Document whole = parse_with_includes(toml, file, ignored);
    if (whole.included.empty()) return toml;
    std::erase_if(whole.root.members, [](const Member& m) { return m.key == "include"; });
    see_from(std::filesystem::path(file).parent_path(), whole.root, "");
    return to_toml(whole.root) + "\n";
}

std::vector<std::string> files_of(const std::string& path,
                                  const std::vector<std::string>& settings) {
    std::vector<std::string> files = {path};
    Diagnostics ignored;
    Document scenario = parse_with_includes(read_file(path), path, ignored);
    for (const std::string& setting : settings) apply_setting(scenario, setting, ignored);
    files.insert(files.end(), scenario.included.begin(), scenario.included.end());
    collect(scenario.root, "", scenario, files);
    return files;
}

}  // namespace railyard
