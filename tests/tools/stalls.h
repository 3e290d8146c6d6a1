#pragma once
// A scenario whose goodput has a closed form, and how tests of verbs on many variants hand one over.

#include <string>

#include "tools/study/trials.h"

namespace railyard {

// Goodput is tau / (tau + C), C = 1 TB / bandwidth: 1000 / 1100 at 10 GB/s, 1000 / 1200 and 1000 / 1050
// at the ends of its range.
inline const std::string stalls = R"(
title = "stalls"
[run]
replicas = 1
duration = "60 day"
[cluster]
nodes = 8
[job]
step.time = "1 s"
checkpoint = { interval = "1000 s", size = "1 TB" }
[storage]
server_read_bandwidth = "10 GB/s"
client_bandwidth = "1 TB/s"
[storage.server_write_bandwidth]
value = "10 GB/s"
class = "estimate"
source = "us"
low = "5 GB/s"
high = "20 GB/s"
)";

// A scenario as the verbs on many variants take it.
inline TrialOptions options_of(const std::string& text) {
    TrialOptions options;
    options.text = text;
    options.file = "test.toml";
    options.threads = 2;
    return options;
}

}  // namespace railyard
