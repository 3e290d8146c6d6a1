#pragma once
// What calibration found: as people and programs read it, and as an [override] that a scenario includes.

#include <optional>
#include <string>
#include <vector>

#include "models/campaign/campaign.h"
#include "tools/verify/measurements.h"

namespace railyard {

// "collective.hopper.launch" as the catalogue has it; without a name for a kind that is one entry.
struct CataloguePlace {
    std::string kind;
    std::string name;
    std::string key;
};

// Nothing where the catalogue, with these entries of a scenario's own, has no such number, or has a count,
// which is not fitted.
std::optional<CataloguePlace> catalogue_place(const std::string& path, const OwnEntries* own);

// The numbers that were fitted, and what they make of a scenario's answer.
struct CalibrationAnswer {
    const Scenario& scenario;
    const Measurements& measurements;
    std::vector<Estimate> estimates;  // as they were
    std::vector<FreeNumber> numbers;  // of these
    Calibrated found{};
    std::string metric{};           // the answer's
    std::vector<double> answers{};  // before and after
    // How the answer's logarithm goes with theirs; empty where nobody asks what to measure next.
    std::vector<double> slopes{};
};

// A number that is written: the measurements told it, or it went with those that they told.
bool found_new(const FittedNumber& number);

// `all_rows`: every measurement, not only those that are furthest off.
void print_calibration(const CalibrationAnswer& answer, bool all_rows);
std::string calibration_json(const CalibrationAnswer& answer);

// `files` are the tables; `scenario` is the name of whose answer is asked for.
std::string calibration_overlay(const CalibrationAnswer& answer, const std::string& scenario,
                                const std::vector<std::string>& files);

}  // namespace railyard
