#pragma once
// Tables as a command line names them: a CSV, with or without the TOML file that describes it.

#include <string>
#include <vector>

#include "tools/program/csv_table.h"

namespace railyard {

struct TableFiles {
    std::string csv;
    std::string description;  // TOML; empty: the one that the table comes with
};

struct NamedTable {
    CsvTable csv;
    std::string description;
};

// A description is of the table that follows it, or of the one with its name beside it.
std::vector<TableFiles> named_tables(const std::vector<std::string>& arguments);

// All of them: what can't be read is said before anything is run.
std::vector<NamedTable> read_tables(const std::vector<TableFiles>& files);

}  // namespace railyard
