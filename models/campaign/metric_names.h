#pragma once
// The metrics of a replica: what each is called, measured in and means. JSON, the database, the report and
// `railyard list metrics` have their words from here.

#include <string_view>
#include <vector>

#include "sim/comparison.h"

namespace railyard {

struct MetricName {
    const char* pattern;  // `*` stands for a name that the scenario gives, or a number
    const char* unit;     // "1" for a ratio or a count
    const char* doc;
    Better better = Better::lower;
    bool share = false;  // people read it as a percentage
};

// The row of a metric's own name describes it, else the first whose pattern matches.
const std::vector<MetricName>& metric_names();
const MetricName* find_metric_name(std::string_view metric);  // null: there is none

// What it is measured in; "1" where nothing is known of it.
std::string_view unit_of(std::string_view metric);
// Lower where nothing is known of it.
Better better_of(std::string_view metric);
bool is_share(std::string_view metric);

}  // namespace railyard
