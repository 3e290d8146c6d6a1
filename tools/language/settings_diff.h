#pragma once
// What differs between scenarios, key by key.

#include <string>
#include <vector>

#include "sim/config.h"

namespace railyard {

struct DifferingKey {
    std::string path;                 // job.checkpoint.interval; failures.cause.0.mtbf_job in lists
    std::vector<std::string> values;  // of each document; "" where it has none
};

// In the order of the first document that has the key. title and the run's seed and replicas are left out.
std::vector<DifferingKey> differing_keys(const std::vector<const Document*>& documents);

// "20 min", "[1, 2]": a value as a person would write it, without quotes around a string; or as TOML, with
// `quote`.
std::string value_text(const Value& value, std::string (*quote)(const std::string&) = nullptr);

}  // namespace railyard
