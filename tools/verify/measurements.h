#pragma once
// Measurements that numbers of the models are fitted to: rows of described tables, simulated again and again
// with numbers scaled.

#include <functional>
#include <string>
#include <vector>

#include "sim/config.h"
#include "tools/study/calibration.h"
#include "tools/verify/table_files.h"
#include "tools/verify/tables.h"

namespace railyard {

struct Measurement {
    std::string file;  // of the table
    Position at;
    std::string row;
    std::string quantity;
    Measured measured;

    std::string place() const;  // "mine.csv:12"
};

class Measurements {
  public:
    // Runs every row once. Throws ScenarioError for a table that nothing describes, a measurement that is not
    // positive and where there is none. What can't be expressed is in `unused`.
    Measurements(std::vector<NamedTable> tables, std::vector<std::string> settings,
                 const Value* overrides, unsigned threads);

    const std::vector<Measurement>& rows() const { return rows_; }
    const std::vector<Diagnostic>& unused() const { return unused_; }
    const std::vector<Diagnostic>& warnings() const { return warnings_; }
    const std::vector<Estimate>& estimates() const { return estimates_; }  // that rows read
    std::size_t limits() const {
        return limits_;
    }  // rows that only say at most or at least so much
    std::size_t guessed() const { return guessed_; }  // rows whose error nobody knows

    // The figures of all rows, with numbers scaled so. `done` counts the tables that were run.
    std::vector<std::vector<double>> figures(const std::vector<Perturbations>& variants,
                                             const std::function<void()>& done) const;

  private:
    std::vector<VerifiedTable> run(const NamedTable& table, const Perturbations& perturbations,
                                   std::vector<Estimate>* estimates) const;
    void add(const NamedTable& table, const VerifiedTable& verified, Diagnostics& wrong);

    std::vector<NamedTable> tables_;
    std::vector<std::string> settings_;
    const Value* overrides_;
    unsigned threads_;
    std::vector<Measurement> rows_;
    std::vector<Diagnostic> unused_;
    std::vector<Diagnostic> warnings_;
    std::vector<Estimate> estimates_;
    std::size_t limits_ = 0;
    std::size_t guessed_ = 0;
};

}  // namespace railyard
