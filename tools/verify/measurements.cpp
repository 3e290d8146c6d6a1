#include "tools/verify/measurements.h"

#include <fmt/format.h>

#include <cmath>

#include "tools/verify/described_table.h"
#include "tools/verify/tables.h"

namespace railyard {

namespace {

constexpr double z95 = 1.959963984540054;
// project estimate, as a share that holds nine in ten: of a figure whose table and model say nothing
constexpr double error_otherwise = 0.1;

// The share that nine in ten such rows are within: what the table allows, else what is known of the model;
// 0: neither says anything.
double error_of(const VerifiedTable& table, const VerifiedRow& row) {
    double of_all = 0;
    for (const Tolerance& tolerance : table.tolerances) {
        if (!tolerance.row || *tolerance.row <= 0) continue;
        if (tolerance.quantity == row.quantity) return *tolerance.row;
        if (tolerance.quantity.empty()) of_all = *tolerance.row;
    }
    return of_all > 0 ? of_all : row.model_error;
}

// The standard deviation of the logarithm; a mean of replicas adds its own.
double spread_of(double error, const VerifiedRow& row) {
    const double model = std::log1p(error) / ninety;
    if (!row.ci95 || row.simulated <= 0) return model;
    return std::hypot(model, row.ci95->half_width() / (z95 * row.simulated));
}

}  // namespace

std::string Measurement::place() const {
    return fmt::format("{}:{}", file, at.line);
}

Measurements::Measurements(std::vector<NamedTable> tables, std::vector<std::string> settings,
                           const Value* overrides, unsigned threads)
    : tables_(std::move(tables)),
      settings_(std::move(settings)),
      overrides_(overrides),
      threads_(threads) {
    Diagnostics wrong;
    for (NamedTable& table : tables_) {
        if (table.description.empty()) table.description = description_of(table.csv).value_or("");
        const std::vector<VerifiedTable> all = run(table, {}, &estimates_);
        if (all.empty()) {
            wrong.error(table.csv.path, {}, "", "nothing says what its columns are",
                        "name the TOML file that describes it before it: calibrate SCENARIO.toml "
                        "MINE.toml MINE.csv");
        }
        for (const VerifiedTable& verified : all) add(table, verified, wrong);
    }
    wrong.raise_if_any();
}

void Measurements::add(const NamedTable& table, const VerifiedTable& verified, Diagnostics& wrong) {
    unused_.insert(unused_.end(), verified.unused.begin(), verified.unused.end());
    warnings_.insert(warnings_.end(), verified.warnings.begin(), verified.warnings.end());
    for (const VerifiedRow& row : verified.expressed) {
        if (row.as != Published::figure) {
            ++limits_;
            continue;
        }
        if (row.measured && row.published <= 0) {
            wrong.error(
                table.csv.path, row.at, row.quantity,
                fmt::format("expected a measurement of more than 0, found {:.6g}", row.published),
                "leave the field empty where nothing was measured");
            continue;
        }
        const double error = error_of(verified, row);
        if (error <= 0) ++guessed_;
        rows_.push_back({table.csv.path,
                         row.at,
                         row.row,
                         row.quantity,
                         {row.measured ? row.published : 0,
                          spread_of(error > 0 ? error : error_otherwise, row)}});
    }
}

std::vector<VerifiedTable> Measurements::run(const NamedTable& table,
                                             const Perturbations& perturbations,
                                             std::vector<Estimate>* estimates) const {
    VerifyOptions options{table.description, settings_, overrides_};
    options.perturbations = perturbations;
    options.estimates = estimates;
    options.unmeasured = true;
    options.threads = threads_;
    return verify_table(table.csv, options);
}

std::vector<std::vector<double>> Measurements::figures(const std::vector<Perturbations>& variants,
                                                       const std::function<void()>& done) const {
    std::vector<std::vector<double>> out;
    for (const Perturbations& variant : variants) {
        std::vector<double>& found = out.emplace_back();
        try {
            for (const NamedTable& table : tables_) {
                for (const VerifiedTable& verified : run(table, variant, nullptr)) {
                    for (const VerifiedRow& row : verified.expressed) {
                        if (row.as == Published::figure) found.push_back(row.simulated);
                    }
                }
                done();
            }
        } catch (const ScenarioError&) {
            found.clear();  // there is no such machine
        }
        if (found.size() != rows_.size()) found.clear();
    }
    return out;
}

}  // namespace railyard
