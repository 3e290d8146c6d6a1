#pragma once
// What a study does not know exactly, and varies within its range.

#include <string>
#include <variant>

#include "models/campaign/campaign.h"
#include "tools/study/key_range.h"

namespace railyard {

// What is not known exactly: an estimate of the catalogue or the scenario, scaled within its range, or a key
// with a range.
class UncertainInput {
  public:
    explicit UncertainInput(Estimate estimate) : what_(std::move(estimate)) {}
    explicit UncertainInput(KeyRange range) : what_(std::move(range)) {}

    std::string name() const;
    std::string value() const;           // as it is; empty for a key with a range
    std::string at(double share) const;  // "x 0.7", "12 min"
    bool range_given() const;
    // Sets it to a share, 0 to 1, of the way from its low end to its high one.
    void set(ScenarioChanges& changes, double share) const;
    // It is there as it is: nothing to set.
    bool as_it_is(double share) const;
    double share_as_it_is() const;  // of an estimate, or the middle

  private:
    std::variant<Estimate, KeyRange> what_;
};

}  // namespace railyard
