#include "tools/study/uncertain_input.h"

#include <fmt/format.h>

#include <cmath>

namespace railyard {

namespace {

double factor_at(const Estimate& e, double share) {
    return std::lerp(e.low_factor, e.high_factor, share);
}

}  // namespace

std::string UncertainInput::name() const {
    const Estimate* estimate = std::get_if<Estimate>(&what_);
    return estimate ? estimate->path : std::get<KeyRange>(what_).key();
}

std::string UncertainInput::value() const {
    const Estimate* estimate = std::get_if<Estimate>(&what_);
    return estimate ? estimate->value : std::string();
}

std::string UncertainInput::at(double share) const {
    if (const Estimate* estimate = std::get_if<Estimate>(&what_)) {
        return fmt::format("x {:.3g}", factor_at(*estimate, share));
    }
    const KeyRange& range = std::get<KeyRange>(what_);
    return range.short_value(range.at(share));
}

bool UncertainInput::range_given() const {
    const Estimate* estimate = std::get_if<Estimate>(&what_);
    return estimate == nullptr || estimate->range_given;
}

void UncertainInput::set(ScenarioChanges& changes, double share) const {
    if (const Estimate* estimate = std::get_if<Estimate>(&what_)) {
        changes.perturbations.push_back({estimate->path, factor_at(*estimate, share)});
        return;
    }
    const KeyRange& range = std::get<KeyRange>(what_);
    changes.settings.push_back(range.setting(range.at(share)));
}

bool UncertainInput::as_it_is(double share) const {
    const Estimate* estimate = std::get_if<Estimate>(&what_);
    return estimate != nullptr && factor_at(*estimate, share) == 1;
}

double UncertainInput::share_as_it_is() const {
    const Estimate* estimate = std::get_if<Estimate>(&what_);
    if (estimate == nullptr || estimate->high_factor == estimate->low_factor) return 0.5;
    return (1 - estimate->low_factor) / (estimate->high_factor - estimate->low_factor);
}

}  // namespace railyard
