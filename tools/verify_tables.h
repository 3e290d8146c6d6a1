#pragma once
// Published measurements and exact oracles, row by row, beside what the models say.

#include <string>
#include <vector>

#include "sim/config.h"
#include "tools/csv_table.h"

namespace railyard {

struct VerifiedRow {
    std::string row;       // which, in the table's own words
    std::string quantity;  // with its unit
    double published = 0;
    double simulated = 0;
    double error() const { return simulated == published ? 0 : simulated / published - 1; }
};

struct VerifiedTable {
    std::string name;
    std::string what;      // one line
    std::size_t rows = 0;  // of the file; their figures, where each is of several
    std::vector<VerifiedRow> expressed = {};
};

// Simulates every row of a table that can be expressed, once for each quantity that it prints. The
// format is known by the table's number, its name's first two digits; empty when no model here answers
// to that format. `overrides` is a scenario's [override] table, or nullptr.
std::vector<VerifiedTable> verify_table(const CsvTable& table, const Value* overrides);

}  // namespace railyard
