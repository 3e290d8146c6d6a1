#pragma once
// Tables of measurements as data: a CSV, and a TOML file that is a scenario with [table], which says what
// each column sets, what the table leaves open, and which of its figures the program is held to.
// tests/validation/README.md has the language.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/config.h"
#include "tools/verify/tables.h"

namespace railyard {

// Whether a table has more rows of one that ships: its number, the digits that its name begins with, and its
// columns, or some of them.
bool more_rows_of(const CsvTable& table, const std::filesystem::path& shipped);

// The file that describes a table: the one beside it with its name, else of those that ship the one of a
// table that it has more rows of, or the one of its columns.
std::optional<std::string> description_of(const CsvTable& table);

// Runs each row's scenario, with the options' settings on all. Throws ScenarioError when the description is
// wrong.
VerifiedTable verify_described(const CsvTable& table, const std::string& description,
                               const VerifyOptions& options);

// What may stand in [table], as it is read.
std::vector<SchemaRow> table_schema();

}  // namespace railyard
