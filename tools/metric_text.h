#pragma once
// Values of metrics as people read them, by name and unit: "93.66 %", "2.53 h", "1.2 TB", "3,210 USD".

#include <string>
#include <string_view>

namespace railyard {

std::string metric_text(std::string_view name, std::string_view unit, double value);
// With its sign: "+1.50 points", "-2.53 h".
std::string difference_text(std::string_view name, std::string_view unit, double difference);

}  // namespace railyard
