#include "tools/verify/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/program/installation.h"
#include "tools/verify/described_table.h"
#include "tools/verify/storage.h"

namespace railyard {

std::vector<std::string> VerifiedTable::outside() const {
    if (!tolerances.empty() && expressed.empty()) {
        return {fmt::format("{}: no row could be held to the tolerance", name)};
    }
    std::vector<std::string> out;
    for (const Tolerance& tolerance : tolerances) {
        const std::string of =
            tolerance.quantity.empty() ? "" : fmt::format(", {}", tolerance.quantity);
        std::size_t count = 0;
        double sum = 0;
        for (const VerifiedRow& row : expressed) {
            if (!tolerance.quantity.empty() && row.quantity != tolerance.quantity) continue;
            const double error = std::abs(row.error());
            ++count;
            sum += error;
            if (!tolerance.row || error <= *tolerance.row) continue;
            out.push_back(fmt::format("{}, {}: {}: {:.2f} % off, at most {:.6g} % are allowed",
                                      name, row.row, row.quantity, 100 * error,
                                      100 * *tolerance.row));
        }
        if (count == 0) {
            out.push_back(fmt::format("{}{}: no row could be held to the tolerance", name, of));
            continue;
        }
        const double mean = sum / static_cast<double>(count);
        if (!tolerance.mean || mean <= *tolerance.mean) continue;
        out.push_back(
            fmt::format("{}{}: {:.2f} % off in the mean of {} rows, at most {:.6g} % are allowed",
                        name, of, 100 * mean, count, 100 * *tolerance.mean));
    }
    return out;
}

void note_estimates(const std::vector<Estimate>& read, std::vector<Estimate>& known) {
    for (const Estimate& each : read) {
        const auto at = std::ranges::lower_bound(known, each.path, {}, &Estimate::path);
        if (at == known.end() || at->path != each.path) known.insert(at, each);
    }
}

std::vector<VerifiedTable> verify_table(const CsvTable& table, const VerifyOptions& options) {
    const std::optional<std::string> description =
        options.description.empty() ? description_of(table) : options.description;
    if (description) return {verify_described(table, *description, options)};
    // A run's limits are known from others of the same table.
    if (more_rows_of(table, shipped_file("tests/validation/50_mlperf_storage_v1_0.csv"))) {
        return {verify_mlperf_storage(table, options)};
    }
    return {};
}

}  // namespace railyard
