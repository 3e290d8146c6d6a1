#pragma once
// Published measurements and exact oracles, row by row, beside what the models say.

#include <optional>
#include <string>
#include <vector>

#include "tools/csv_table.h"

namespace railyard {

struct VerifiedRow {
    std::string row;       // which, in the table's own words
    std::string quantity;  // with its unit
    double published = 0;
    double simulated = 0;
    double error() const { return simulated / published - 1; }
};

struct VerifiedTable {
    std::string name;
    std::string what;      // one line
    std::size_t rows = 0;  // of the file
    std::vector<VerifiedRow> expressed;
};

// Simulates every row of a table that can be expressed. The format is known by the table's number,
// its name's first two digits; nullopt when no model here answers to that format.
std::optional<VerifiedTable> verify_table(const CsvTable& table);

}  // namespace railyard
