#include "tools/csv_table.h"

#include <csv.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "sim/config.h"

namespace railyard {

namespace {

struct Collector {
    std::vector<std::vector<std::string>> rows{1};
    static void field(void* text, std::size_t size, void* self) {
        static_cast<Collector*>(self)->rows.back().emplace_back(static_cast<const char*>(text),
                                                                size);
    }
    static void row(int, void* self) { static_cast<Collector*>(self)->rows.emplace_back(); }
};

}  // namespace

const std::string& Fields::text(const char* column) const {
    static const std::string empty;
    const auto found = row_.find(column);
    return found == row_.end() ? empty : found->second;
}

double Fields::number(const char* column) const {
    return std::strtod(text(column).c_str(), nullptr);
}

std::int64_t Fields::integer(const char* column) const {
    return std::llround(number(column));
}

CsvTable read_csv_table(const std::string& path) {
    CsvTable table;
    table.name = std::filesystem::path(path).stem().string();
    table.folder = std::filesystem::path(path).parent_path().string();
    std::string data;
    std::istringstream lines(read_file(path));
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with('#')) data += line + "\n";
    }
    Collector collected;
    csv_parser parser;
    csv_init(&parser, 0);
    csv_parse(&parser, data.data(), data.size(), Collector::field, Collector::row, &collected);
    csv_fini(&parser, Collector::field, Collector::row, &collected);
    csv_free(&parser);
    for (const std::vector<std::string>& fields : collected.rows) {
        if (fields.empty()) continue;
        if (table.columns.empty()) {
            table.columns = fields;
            continue;
        }
        if (fields.size() > table.columns.size()) {
            throw ScenarioError(fmt::format("{}: row {} has {} fields under {} columns", path,
                                            table.rows.size() + 1, fields.size(),
                                            table.columns.size()));
        }
        CsvRow row;
        for (std::size_t i = 0; i < table.columns.size(); ++i) {
            row[table.columns[i]] = i < fields.size() ? fields[i] : "";
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

}  // namespace railyard
