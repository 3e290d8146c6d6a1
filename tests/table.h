#pragma once
// The tables of tests/validation.

#include "tools/program/csv_table.h"

namespace railyard {

using TableRow = CsvRow;

inline std::vector<TableRow> read_table(const std::string& name) {
    return read_csv_table(std::string(RAILYARD_ROOT) + "/tests/validation/" + name).rows;
}

}  // namespace railyard
