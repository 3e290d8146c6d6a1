#pragma once
// What calibration found, as an [override] that a scenario includes.

#include <optional>
#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "tools/study/calibration.h"

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

// An estimate's value times a factor, in its own unit, to four digits.
std::string value_times(const std::string& value, double factor);

// A number that is written: the measurements told it, or it went with those that they told.
bool found_new(const FittedNumber& number);

// `before` has each number's estimate. `files` are the tables; `scenario` is whose answer is asked for, with
// its `own` entries.
std::string calibration_overlay(const Calibrated& found, const std::vector<Estimate>& before,
                                const std::string& scenario, const OwnEntries* own,
                                const std::vector<std::string>& files);

}  // namespace railyard
