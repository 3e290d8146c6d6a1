#pragma once
// How Slurm is set up: what slurm.conf and sacctmgr say. Defaults are Slurm's own.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/units.h"

namespace railyard {

// How conservative backfill looks at the queue. Slurm's sched/backfill, its parameters and its defaults
// (slurm.conf, SchedulerParameters): bf_interval, bf_window, bf_resolution, bf_max_job_test.
struct BackfillRules {
    Duration interval = std::chrono::seconds(30);    // from one look to the next
    Duration window = std::chrono::hours(24);        // how far ahead it plans
    Duration resolution = std::chrono::seconds(60);  // expected ends are rounded up to it
    std::int64_t depth = 100;                        // jobs that it looks at
};

enum class PreemptMode : std::uint8_t { off, cancel, requeue, suspend };

// A quality of service: what a job may, and whom it may displace.
struct SlurmQos {
    std::string name;
    std::int64_t priority = 0;
    std::vector<std::uint32_t> preempts{};  // QOS whose jobs it may displace; no cycles
    PreemptMode mode =
        PreemptMode::requeue;   // what happens to its own jobs when they are displaced
    Duration grace{};           // GraceTime: they run on for so long
    Duration exempt{};          // PreemptExemptTime: they are safe for so long after their start
    std::int64_t gpus_max = 0;  // GrpTRES: of all its running jobs; 0: none
};

// PriorityWeight...: each factor is from 0 to 1. All weights 0: first come, first served.
struct SlurmPriority {
    std::int64_t age = 0;
    std::int64_t fair_share = 0;
    std::int64_t job_size = 0;
    std::int64_t partition = 0;
    std::int64_t qos = 0;
    Duration age_max = std::chrono::hours(24 * 7);
    Duration half_life = std::chrono::hours(24 * 7);
    Duration calc_period = std::chrono::minutes(5);
    bool favor_small = false;
};

enum class SlurmTopology : std::uint8_t { none, tree, block };

struct SlurmSpec {
    Duration node_timeout = std::chrono::seconds(300);  // SlurmdTimeout
    Duration main_interval = std::chrono::seconds(60);  // sched_interval: a look at the whole queue
    std::int64_t event_depth = 100;  // default_queue_depth: jobs looked at when something happens
    bool backfill_enabled = true;
    BackfillRules backfill;
    SlurmPriority priority;
    SlurmTopology topology = SlurmTopology::none;
    Duration switches_wait_max = std::chrono::seconds(300);  // SchedulerParameters max_switch_wait
    Duration prolog_hold{};            // of a job whose prolog failed: until somebody releases it
    std::vector<SlurmQos> qos;         // at least one
    std::vector<std::int64_t> shares;  // of each account
};

}  // namespace railyard
