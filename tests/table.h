#pragma once
// Reads the CSV tables of tests/validation: '#' lines, a column row, data; quotes around fields
// with commas.

#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace railyard {

using TableRow = std::map<std::string, std::string>;

inline std::vector<std::string> split_csv(const std::string& line) {
    std::vector<std::string> fields(1);
    bool quoted = false;
    for (const char c : line) {
        if (c == '"') {
            quoted = !quoted;
        } else if (c == ',' && !quoted) {
            fields.emplace_back();
        } else {
            fields.back() += c;
        }
    }
    return fields;
}

inline std::vector<TableRow> read_table(const std::string& name) {
    std::ifstream in(std::string(RAILYARD_ROOT) + "/tests/validation/" + name);
    if (!in) throw std::runtime_error("can't read " + name);
    std::vector<std::string> columns;
    std::vector<TableRow> rows;
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#') continue;
        const std::vector<std::string> fields = split_csv(line);
        if (columns.empty()) {
            columns = fields;
            continue;
        }
        TableRow row;
        for (std::size_t i = 0; i < columns.size(); ++i)
            row[columns[i]] = i < fields.size() ? fields[i] : "";
        rows.push_back(row);
    }
    return rows;
}

}  // namespace railyard
