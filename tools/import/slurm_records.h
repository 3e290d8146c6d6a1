#pragma once
// The form that slurm.conf, gres.conf and topology.conf share: a record a line, of Key=Value.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config.h"

namespace railyard {

struct SlurmRecord {
    std::string file;
    int line = 0;
    std::vector<std::pair<std::string, std::string>> keys;   // in small letters, and the values
    std::vector<std::pair<std::string, std::string>> given;  // keys that a DEFAULT gave, and where

    const std::string* find(std::string_view key) const;
    std::string origin(std::string_view key) const;  // "slurm.conf:12: MaxTime=7-0"
    std::string place() const;                       // "slurm.conf:12"
    Position at() const { return {line, 1}; }
};

// The records of a file and of those that it includes.
std::vector<SlurmRecord> read_slurm_records(const std::string& path, Diagnostics& diagnostics);

// The names in "rack[0-1]_n[001-010,17],login": {} and `problem` where it is none, or has more than
// a million.
std::vector<std::string> expand_hostlist(std::string_view list, std::string& problem);
// Commas that are in no bracket.
std::vector<std::string> split_hostlist(std::string_view list);

// "30", "12:30", "4-01:02:03", INFINITE (no value). A bare number is of minutes.
struct SlurmTime {
    bool valid = false;
    std::optional<std::int64_t> seconds;  // none: without end
};
SlurmTime slurm_time(std::string_view text);

// "gpu:h100:8(S:0-1)" of "gpu:h100:8,nic:8".
struct SlurmGres {
    std::string type;  // in small letters; empty: it has none
    std::int64_t count = 0;
    bool slices = false;  // of MIG
};
// Only GPUs; `problem` says what is wrong.
std::vector<SlurmGres> slurm_gpus(std::string_view gres, std::string& problem);

}  // namespace railyard
