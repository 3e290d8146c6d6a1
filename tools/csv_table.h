#pragma once
// Tables of measurements: '#' lines that say where they come from, a row of column names, rows of
// data.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace railyard {

using CsvRow = std::map<std::string, std::string>;

// A row's fields by column; one that is missing is empty, and 0.
class Fields {
  public:
    explicit Fields(const CsvRow& row) : row_(row) {}
    const std::string& text(const char* column) const;
    double number(const char* column) const;
    std::int64_t integer(const char* column) const;

  private:
    const CsvRow& row_;
};

struct CsvTable {
    std::string name;  // the file's, without folder and ending
    std::string folder;
    std::vector<std::string> columns;
    std::vector<CsvRow> rows;  // a missing field is empty
};

// Throws ScenarioError when the file can't be read or a row has more fields than there are columns.
CsvTable read_csv_table(const std::string& path);

}  // namespace railyard
