#pragma once
// One axis of a study: a key of the scenario and the values that it takes.

#include <optional>
#include <string>
#include <vector>

#include "sim/config.h"

namespace railyard {

// Where a point lies on an axis.
struct AxisValue {
    std::string toml;             // as --set takes it
    std::string text;             // as people read it
    std::optional<double> value;  // in the axis's unit; none: not a number
};

// The keys of an axis whose values are of any kind, apart from those that a Section reads.
struct AxisBounds {
    std::optional<Value> values;
    std::optional<Value> from;
    std::optional<Value> to;

    // Takes them out of each [[SECTION.axis]] of a document.
    static std::vector<AxisBounds> taken_from(Document& document, const char* section);
    // What they are, for the schema: `path` is the axis's.
    static void describe(const std::string& path, std::vector<SchemaRow>& rows);
};

// A list of values, or a range from which any value can be taken: linear or logarithmic, of whole
// numbers, plain numbers or quantities.
class Axis {
  public:
    // `steps` of a range in equal parts; none in designs that take any value. Reports what is wrong.
    static std::optional<Axis> read(Section& section, const AxisBounds& bounds,
                                    bool takes_any_value);

    const std::string& key() const { return key_; }
    const std::string& unit() const { return unit_; }
    std::size_t size() const { return values_.size(); }
    const AxisValue& value(std::size_t i) const { return values_[i]; }
    // The value at a fraction [0, 1) of the axis: of the list, or of the range.
    AxisValue at(double fraction) const;

  private:
    bool read_list(Section& section, const Value& list);
    bool read_range(Section& section, const Value& from, const Value& to);
    bool part_range(Section& section, std::int64_t steps);
    AxisValue in_range(double fraction) const;
    AxisValue number(double value) const;

    std::string key_;
    std::string unit_;
    std::vector<AxisValue> values_;
    bool range_ = false;
    bool whole_ = false;
    bool logarithmic_ = false;
    double from_ = 0;  // in the unit
    double to_ = 0;
};

// A value as TOML, on one line.
std::string toml_text(const Value& value);

}  // namespace railyard
