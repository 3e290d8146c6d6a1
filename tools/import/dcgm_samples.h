#pragma once
// What DCGM has measured, as its tools print it: Prometheus' text of dcgm-exporter (or OpenMetrics, or what
// promtool dumps), and the table of 'dcgmi dmon'.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/config.h"

namespace railyard {

struct DcgmSample {
    std::string field;  // DCGM_FI_DEV_XID_ERRORS, or a column of dmon
    std::string host;   // of the label Hostname or instance; else the file's name
    std::string gpu;    // its number in the host
    std::string card;   // what tells it from all others: its UUID, else host and number
    std::string xid;    // of DCGM_EXP_XID_ERRORS_COUNT
    double value = 0;
    std::optional<std::int64_t> at_s;  // since 1970; files of one scrape have none, nor has dmon
    std::int64_t tick = 0;             // of dmon: rows of this GPU before
    int line = 0;
};

struct DcgmFile {
    std::int64_t samples = 0;
    std::int64_t bad = 0;  // malformed lines that were skipped
    bool dmon = false;
};

// Hands each sample of a GPU to `take`. Malformed lines are errors, or are counted when `skip_bad`.
DcgmFile read_dcgm(const std::string& file, bool skip_bad, Diagnostics& diagnostics,
                   const std::function<void(const DcgmSample&)>& take);

}  // namespace railyard
