#pragma once
// The arguments of a calculator of `railyard calc`: quantities with units and names of the catalogue, checked
// as a scenario's are. What is wrong with them is said by `check`, all at once.

#include "models/campaign/campaign.h"
#include "tools/cli/options.h"

namespace railyard {

class CalculatorInputs {
  public:
    explicit CalculatorInputs(po::variables_map values) : values_(std::move(values)) {}

    bool has(const char* key) const { return values_.count(key) > 0; }
    // Throws ScenarioError when none of these is there.
    void need(const std::vector<std::string>& keys) const;

    Duration time(const char* key) {
        return Duration(quantity(key, Dimension::time).integer.value_or(1));
    }
    Bandwidth bandwidth(const char* key) {
        return Bandwidth::bits_per_second(quantity(key, Dimension::bandwidth).integer.value_or(1));
    }
    double number(const char* key, Bound bound = Bound::positive);  // such as 405e9
    double number_or(const char* key, double otherwise, Bound bound = Bound::positive) {
        return has(key) ? number(key, bound) : otherwise;
    }
    std::int64_t count_or(const char* key, std::int64_t otherwise) {
        return has(key) ? std::llround(number(key, Bound::count)) : otherwise;
    }
    // The place of the word in `words`.
    int choice(const char* key, const std::vector<std::string>& words);
    // An entry of the catalogue, of one of these names.
    std::string entry(const char* key, const char* kind, const std::vector<std::string>& names);
    std::string entry(const char* key, const char* kind) {
        return entry(key, kind, Catalogue::names(kind));
    }
    TransformerModel model();
    // Parameters by --params, or the model's; those that one token meets, or all.
    double params(bool active = false);
    Catalogue& catalogue() { return own_.catalogue; }
    void check() const { own_.diagnostics.raise_if_any(); }

  private:
    std::string text(const char* key) const { return values_[key].as<std::string>(); }
    Quantity quantity(const char* key, Dimension dimension);
    void wrong(const char* key, const std::string& message, const std::string& help = {});

    po::variables_map values_;
    StandaloneCatalogue own_{ValueChoice::corrected, nullptr, ""};
};

}  // namespace railyard
