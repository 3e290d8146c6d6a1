#pragma once
// A key of the scenario, and the range of values that it is tried in: "4 min" to "25 min", 1 to 64, 0.5 to 2.

#include <string>

namespace railyard {

class KeyRange {
  public:
    // `low` and `high` as a scenario has them: quantities of one dimension, whole numbers, or numbers. Throws
    // ScenarioError, naming the range by `what`, when they are not, or low is not below high.
    KeyRange(std::string key, const std::string& low, const std::string& high, bool logarithmic,
             const std::string& what);
    // "KEY=LOW:HIGH".
    static KeyRange parse(const std::string& text, bool logarithmic, const std::string& option);

    const std::string& key() const { return key_; }
    bool whole() const { return whole_; }
    bool logarithmic() const { return logarithmic_; }
    // In the unit that `low` was written in.
    double low() const { return low_; }
    double high() const { return high_; }
    // The value at a share of the way from low to high, whole where the key is.
    double at(double share) const;
    // "12.5 min": as a scenario has it, with all its digits; and as people read it.
    std::string value(double x) const;
    std::string short_value(double x) const;
    std::string setting(double x) const;  // "KEY=12.5 min"

  private:
    std::string key_;
    std::string unit_;  // " min"; empty without one
    double low_ = 0;
    double high_ = 0;
    bool whole_ = false;
    bool logarithmic_ = false;
};

}  // namespace railyard
