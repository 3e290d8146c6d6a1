#pragma once
// What a benchmark of a store measured, as a table that 'railyard verify' reads and the file that says what
// its columns are.

#include <string>

#include "tools/import/importers.h"

namespace railyard {

enum class StoreOperation { read, write };

struct StoreRun {
    std::string id;
    StoreOperation operation = StoreOperation::read;
    std::int64_t hosts = 1;
    double bytes_per_s = 0;
    // The store gave what was asked for: it can give more.
    bool at_least = false;
    std::string source;  // file:line
};

// For the readers of benchmarks, which each have a `program`.
class StoreTable : protected Importer {
  public:
    StoreTable(const char* program, const ImportOptions& options, ImportedPart& part,
               Diagnostics& diagnostics)
        : Importer(options, part, diagnostics), program_(program) {
        take_one_file("a second file: give one, and join the tables");
    }

  protected:
    void add(const StoreRun& run);
    // Something measured that no row of the table can say.
    void pass_over(const std::string& what, const std::string& why);
    // How many nodes took part; --hosts, where it is given, else what the file says; 0 is an error.
    std::int64_t hosts(std::int64_t said);
    // Writes the table's head and rows, and the file beside it. `else_missing` was not in the input.
    void finish(const std::string& else_missing);

    std::string program_;

  private:
    std::vector<std::string> rows_;
    std::vector<std::string> passed_over_;
};

}  // namespace railyard
