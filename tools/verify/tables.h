#pragma once
// Published measurements and exact oracles, row by row, beside what the models say.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/config.h"
#include "sim/statistics.h"
#include "tools/program/csv_table.h"

namespace railyard {

// What is published: a figure, or only that it is at most or at least so much.
enum class Published : std::uint8_t { figure, at_most, at_least };

struct VerifiedRow {
    std::string row;       // which, in the table's own words
    std::string quantity;  // with its unit
    double published = 0;
    double simulated = 0;
    Published as = Published::figure;
    std::optional<Interval> ci95 = {};  // of what is simulated, where that is a sample's mean
    // 0 on the right side of a limit; of a published 0, all of what is simulated.
    std::string software = {};  // the stack that ran it, where one did
    double half = 0;  // the share that half of such rows are said to be within; 0: nothing is said
    double nine_tenths = 0;                                  // and nine in ten
    std::vector<std::pair<std::string, double>> parts = {};  // of what is simulated, in seconds
    // What the run needs of a GPU's memory, component by component, and what the GPU has; 0: nothing is said.
    std::vector<std::pair<std::string, double>> memory_bytes = {};
    double memory_capacity = 0;
    bool fits() const {
        double sum = 0;
        for (const auto& [component, bytes] : memory_bytes) sum += bytes;
        return sum <= memory_capacity;
    }
    double error() const {
        if (as == Published::at_most && simulated <= published) return 0;
        if (as == Published::at_least && simulated >= published) return 0;
        if (published == 0) return simulated == 0 ? 0 : 1;
        return simulated / published - 1;
    }
};

struct VerifiedTable {
    std::string name;
    std::string what;      // one line
    std::size_t rows = 0;  // of the file; their figures, where each is of several
    std::vector<VerifiedRow> expressed = {};
    std::vector<Diagnostic> unused = {};  // rows with a field that can't be, and why
};

// Simulates every row of a table that can be expressed, once for each quantity that it prints. The
// format is known by the table's number, its name's first two digits; empty when no model here answers
// to that format. `overrides` is a scenario's [override] table, or nullptr.
std::vector<VerifiedTable> verify_table(const CsvTable& table, const Value* overrides);

}  // namespace railyard
