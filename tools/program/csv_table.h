#pragma once
// Tables of measurements: '#' lines that say where they come from, a row of column names, rows of
// data.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/error.h"

namespace railyard {

using CsvRow = std::map<std::string, std::string>;

// Why a row can't be used, and the column that says so.
struct RowError {
    std::string column;
    std::string message;
};

// A row's fields by column; one that is missing is empty. What is not printed, an empty field or "-", is
// the number 0.
class Fields {
  public:
    explicit Fields(const CsvRow& row) : row_(row) {}
    const std::string& text(const char* column) const;
    double number(const char* column) const;         // throws RowError
    double figure(const char* column) const;         // likewise, and when it is not printed
    std::int64_t integer(const char* column) const;  // rounded; throws RowError
    // The groups of a field that the pattern has all of, from its first character to its last; of one
    // that does not take part "". Throws RowError, which says `like` what it should be.
    std::vector<std::string> groups(const char* column, const char* pattern,
                                    const char* like) const;

  private:
    const CsvRow& row_;
};

// Whether a field's text has the word somewhere.
inline bool mentions(std::string_view text, std::string_view word) {
    return text.find(word) != std::string_view::npos;
}

struct CsvTable {
    std::string path;
    std::string name;  // the file's, without folder and ending
    std::string folder;
    std::string about;  // its '#' lines
    std::vector<std::string> columns;
    std::vector<CsvRow> rows;                   // a missing field is empty
    std::vector<std::vector<Position>> places;  // of each row's fields, in the file
};

// Throws ScenarioError when the file can't be read, two columns have one name, or a row has more fields than
// there are columns.
CsvTable read_csv_table(const std::string& path);

// Hands each row to `use`. One for which that throws RowError joins `unused`, with its place in the file.
void each_row(const CsvTable& table, std::vector<Diagnostic>& unused,
              const std::function<void(const Fields&)>& use);

}  // namespace railyard
