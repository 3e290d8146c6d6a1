#pragma once
// [failures] and [[inject]]: what fails, as a scenario writes it: causes, injections, repair, storms.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "models/failure/failure_spec.h"
#include "sim/config.h"

namespace railyard {

// Exactly one of several ways to say how often.
class RateKeys {
  public:
    // `part` is what the nodes have so and so many of.
    RateKeys(Section& section, const char* part, const char* part_doc) : part_(part) {
        for (const char* key : {part, "rate_per_node", "rate_per_job", "mtbf_job"}) {
            given_ += section.has(key);
        }
        section.read(part, per_part_, part_doc, {Bound::non_negative});
        section.read("rate_per_node", per_node_, "Failures per time of one node",
                     {Bound::non_negative});
        section.read("rate_per_job", per_job_,
                     "Failures per time of the whole job; of many jobs, of each while it runs",
                     {Bound::non_negative});
        section.read(
            "mtbf_job", mtbf_,
            "Mean time between failures of the whole job; of many jobs, of each while it runs",
            {Bound::positive});
    }
    Rate per_node(Section& section, std::int64_t parts, std::int64_t job_nodes) const {
        if (given_ != 1) report_count(section);
        const double nodes = real(std::max<std::int64_t>(1, job_nodes));
        if (per_part_) return {per_part_->per_second * real(parts)};
        if (per_node_) return *per_node_;
        return {per_job().value_or(Rate{}).per_second / nodes};
    }

    // Said of the job, not of its nodes.
    std::optional<Rate> per_job() const {
        if (per_job_) return per_job_;
        if (mtbf_ && *mtbf_ > Duration{}) return Rate{1 / seconds(*mtbf_)};
        return std::nullopt;
    }

    int given() const { return given_; }

  private:
    void report_count(Section& section) const;

    const char* part_;
    int given_ = 0;
    std::optional<Rate> per_part_;
    std::optional<Rate> per_node_;
    std::optional<Rate> per_job_;
    std::optional<Duration> mtbf_;
};

// [failures] itself: what holds for all causes.
struct FailureKeys {
    std::string profile = "none";
    double rate_scale = 1;  // 0 where nothing fails at random
    std::optional<Duration> detection;
    double repair_sigma = 0;
};
FailureKeys read_failure_keys(Section& failures, Catalogue& catalogue);

extern const std::vector<std::string> remedy_names;  // in the order of Remedy

// What a cause's keys refer to.
struct CauseContext {
    std::int64_t gpus_per_node = 1;
    std::int64_t job_nodes = 1;
    bool many_jobs = false;
    bool priced = false;                            // the scenario has [cost]
    const std::vector<std::string>& node_parts;     // which may become slow
    const std::vector<std::string>& network_parts;  // kinds of them, which may break
};

// A [[failures.cause]] as it is written, but for what is known only with the jobs and the networks: which
// nodes share a domain, what a slow part does to a step, which parts a network has.
struct CauseSpec {
    FailureCause cause;
    std::optional<std::size_t> slow_part;     // of CauseContext::node_parts
    std::optional<std::size_t> network_part;  // likewise; it then strikes no node
    std::optional<double> speed;              // what is left of that part's
    std::optional<double> slowdown;           // what a step takes longer, as a share
    Duration lasts{};                         // of the slow part; zero: until it is found
};
CauseSpec read_cause(Section& section, Catalogue& catalogue, const CauseContext& context);

// ---- [[inject]]: failures at known times ----

// An [[inject]] as it is written: a cause, or a part of the compute network.
struct InjectionSpec {
    Duration at{};
    std::string cause;
    std::int64_t unit = 0;  // node, or domain of the cause's kind
    std::optional<Duration> duration;
    // Instead of a cause: a switch, NIC or plane, or a cable by its ends.
    std::string part;
    std::string from;
    std::string to;
    double speed = 0;  // that such a part has left

    bool names_part() const { return !part.empty() || !from.empty() || !to.empty(); }
};
// `causes`: the names to choose from.
InjectionSpec read_injection(Section& section, const std::vector<std::string>& causes);

// Whether there is such a unit: a node, or one of the domains of the strike's cause. And whether the cause
// takes something out of service, if a duration is given.
void check_injection(Section& section, const InjectionSpec& spec, const FailureCause& cause,
                     std::int64_t units);

// Warns of a key whose time comes after the campaign's end; `campaign`: its length, zero for none.
void warn_if_over(Section& section, const char* key, Duration at, Duration campaign);

// ---- who repairs, who looks for what is slow, who is locked out, which nodes are lemons ----

// Reads failures.lemon. A node that fails as often as the others is none.
void read_lemons(Section& failures, LemonNodes& lemons);

// Reads failures.misdiagnosis, .repair, .quarantine and .search; `anything_slow`: some cause has slow parts.
struct RepairSpec {
    double misdiagnosis = 0;
    RepairShopSpec shop;
    QuarantineSpec quarantine;
    SearchSpec search;
};
// What there is for a repair to mend.
struct WhatFails {
    bool anything_slow = false;
    bool slow_for_good = false;  // some part stays slow until it is found
    bool anything_leaves = false;
};
RepairSpec read_repair(Section& failures, const WhatFails& what);

// ---- [[failures.storm]]: NICs that pause the compute network now and then ----

// A storm as it is written. What it does to the network follows from a packet window.
struct StormSpec {
    FailureCause cause;
    std::string nic = "node-0.nic-0";  // of the window, which stands for all
    std::optional<Duration> duration;  // none: for ever
    Duration found_after{};            // until somebody finds the NIC that no watchdog has named
};

struct StormContext {
    std::int64_t nics_per_node = 1;
    std::int64_t job_nodes = 1;
    bool many_jobs = false;
};
StormSpec read_storm(Section& section, Catalogue& catalogue, const StormContext& context);

}  // namespace railyard
