#pragma once
// The tables and views of a results database: documented in README.md. For those who write into it
// (results_db.h) and those who only read.

#include "tools/results/database.h"

namespace railyard {

constexpr int results_schema_version = 3;

// Makes the tables in an empty database, inside the transaction that is open. Throws ScenarioError when the
// file holds something else or another version.
void prepare_results(Database& db);

// An existing results database, to be read. Throws ScenarioError, also when there is no such file.
std::unique_ptr<Database> open_results(const std::string& path);

}  // namespace railyard
