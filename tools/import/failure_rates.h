#pragma once
// Failures that a history has, by cause, as [[failures.cause]] with the intervals of their rates.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/import/import.h"

namespace railyard {

// Events per unit of exposure: what was counted, and the interval of 95 % that Garwood's is.
struct CountedRate {
    double rate = 0;
    double low = 0;
    double high = 0;
};
CountedRate counted_rate(std::int64_t events, double exposure);

// P(X >= count) of a Poisson's X.
double poisson_tail(std::int64_t count, double mean);

struct SeenCause {
    std::string name;
    std::string remedy;  // restart, reset or replace
    std::int64_t events = 0;
    std::string first;                    // of its events: file and line
    std::vector<std::int64_t> outages_s;  // of events that have ended
    std::int64_t open = 0;                // events that have not
    std::int64_t open_s = 0;              // how long these are out already
    std::vector<std::string> what;        // the commonest reasons
};

// Writes the causes, most frequent first, and a note where there are few events.
void add_causes(std::vector<SeenCause> causes, double node_days, ImportedPart& part);

}  // namespace railyard
