#include "tools/verify/table_files.h"

#include <filesystem>
#include <utility>

namespace railyard {

std::vector<TableFiles> named_tables(const std::vector<std::string>& arguments) {
    std::vector<TableFiles> out;
    std::string description;
    const auto of_its_name = [&] {
        if (description.empty()) return;
        out.push_back({std::filesystem::path(description).replace_extension(".csv").string(),
                       std::exchange(description, {})});
    };
    for (const std::string& path : arguments) {
        if (path.ends_with(".toml")) {
            of_its_name();
            description = path;
        } else {
            out.push_back({path, std::exchange(description, {})});
        }
    }
    of_its_name();
    return out;
}

std::vector<NamedTable> read_tables(const std::vector<TableFiles>& files) {
    std::vector<NamedTable> out;
    for (const auto& [csv, description] : files) out.push_back({read_csv_table(csv), description});
    return out;
}

}  // namespace railyard
