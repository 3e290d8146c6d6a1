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
        files.push_back(file_of(scenario, value.text));
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

std::string file_of(const Document& scenario, const std::string& name) {
    return (std::filesystem::path(scenario.name).parent_path() / name).string();
}

std::vector<std::string> files_of(const std::string& path,
                                  const std::vector<std::string>& settings) {
    std::vector<std::string> files = {path};
    Diagnostics ignored;
    Document scenario = parse_document(read_file(path), path, ignored);
    for (const std::string& setting : settings) apply_setting(scenario, setting, ignored);
    collect(scenario.root, "", scenario, files);
    return files;
}

}  // namespace railyard
