#pragma once
// The tables of tests/validation, and of tests/laws.

#include "tools/program/csv_table.h"

namespace railyard {

using TableRow = CsvRow;

inline std::vector<TableRow> read_table(const std::string& name) {
    return read_csv_table(std::string(RAILYARD_ROOT) + "/tests/validation/" + name).rows;
}

inline std::vector<TableRow> read_oracle(const std::string& name) {
    return read_csv_table(std::string(RAILYARD_ROOT) + "/tests/laws/tables/" + name).rows;
}

}  // namespace railyard
