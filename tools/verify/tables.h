#pragma once
// Published measurements and exact oracles, row by row, beside what the models say.

#include <cstdint>
#include <functional>
#include <optional>
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
    std::optional<Interval> of_run =
        {};                     // and where 95 % of single runs are, as what is published is one
    std::string software = {};  // the stack that ran it, where one did
    double half = 0;  // the share that half of such rows are said to be within; 0: nothing is said
    double nine_tenths = 0;                                  // and nine in ten
    std::vector<std::pair<std::string, double>> parts = {};  // of what is simulated, in seconds
    // What the run needs of a GPU's memory, component by component, and what the GPU has; 0: nothing is said.
    std::vector<std::pair<std::string, double>> memory_bytes = {};
    double memory_capacity = 0;
    std::vector<std::string> settings = {};  // of the scenario that it ran as, as --set takes them
    Position at = {};      // of what is published, in the table; described tables say it
    bool measured = true;  // false: nothing is published, and that was to be
    double model_error =
        0;  // the share that nine in ten such figures are within; 0: nothing is known
    bool fits() const {
        double sum = 0;
        for (const auto& [component, bytes] : memory_bytes) sum += bytes;
        return sum <= memory_capacity;
    }
    // 0 on the right side of a limit; of a published 0, all of what is simulated.
    double error() const {
        if (as == Published::at_most && simulated <= published) return 0;
        if (as == Published::at_least && simulated >= published) return 0;
        if (published == 0) return simulated == 0 ? 0 : 1;
        return simulated / published - 1;
    }
};

// How far off the rows of a quantity may be, and their mean, as shares of what is published; a quantity
// without a name is all rows.
struct Tolerance {
    std::string quantity = {};
    std::optional<double> row = {};
    std::optional<double> mean = {};
};

struct VerifiedTable {
    std::string name;
    std::string what;      // one line
    std::size_t rows = 0;  // of the file; their figures, where each is of several
    std::vector<VerifiedRow> expressed = {};
    std::vector<Diagnostic> unused = {};    // rows with a field that can't be, and why
    std::vector<Diagnostic> warnings = {};  // words that no rule reads, each once
    std::vector<Tolerance> tolerances = {};

    // What is further off than it may be, a line each. A tolerance that no row can be held to is one too.
    std::vector<std::string> outside() const;
};

struct VerifyOptions {
    std::string description;            // the table's, TOML; empty: the one that it comes with
    std::vector<std::string> settings;  // "override.gpu.h100_sxm.hbm_efficiency=0.8"
    const Value* overrides = nullptr;   // the same, as a scenario's [override] table
    // Described tables and MLPerf Storage's take these: numbers scaled in all rows; where to add the
    // estimates that rows read; whether rows without a published figure are simulated, too.
    Perturbations perturbations = {};
    std::vector<Estimate>* estimates = nullptr;
    bool unmeasured = false;
    unsigned threads = 0;  // 0: as many as there are cores; described tables only
    std::function<void(double share)> progress =
        {};  // how much of the table is done, from any thread
};

// Adds what is not yet known, in the order of paths.
void note_estimates(const std::vector<Estimate>& read, std::vector<Estimate>& known);

// Simulates every row of a table that can be expressed, once for each quantity that it prints. How is said by
// its description, else by code, which knows the format by the header or by the table's number (its name's
// first two digits). Empty when nothing here answers to it.
std::vector<VerifiedTable> verify_table(const CsvTable& table, const VerifyOptions& options);

}  // namespace railyard
