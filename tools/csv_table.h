#pragma once
// Tables of measurements: '#' lines that say where they come from, a row of column names, rows of
// data.

#include <map>
#include <string>
#include <vector>

namespace railyard {

using CsvRow = std::map<std::string, std::string>;

struct CsvTable {
    std::string name;  // the file's, without folder and ending
    std::vector<std::string> columns;
    std::vector<CsvRow> rows;  // a missing field is empty
};

// Throws ScenarioError when the file can't be read or a row has more fields than there are columns.
CsvTable read_csv_table(const std::string& path);

}  // namespace railyard
