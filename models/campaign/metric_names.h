#pragma once
// The metrics of a replica: what each is called, measured in and means. JSON, the database, the report and
// `railyard list metrics` have their words from here.

#include <string_view>
#include <vector>

#include "sim/comparison.h"

namespace railyard {

struct MetricName {
    const char* pattern;  // `*` stands for a name that the scenario gives, or a number
    const char* unit;     // as Metric::unit
    const char* doc;
    Better better = Better::lower;
    bool share = false;  // people read it as a percentage
};

// The first row whose pattern matches a metric's name describes it.
const std::vector<MetricName>& metric_names();
const MetricName* find_metric_name(std::string_view metric);  // null: there is none

// Lower where nothing is known of it.
Better better_of(std::string_view metric);
bool is_share(std::string_view metric);

}  // namespace railyard
