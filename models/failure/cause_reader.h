#pragma once
// One cause of failure, as a scenario writes it.

#include <algorithm>
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
        section.read(part, per_part_, part_doc, {.bound = Bound::non_negative});
        section.read("rate_per_node", per_node_, "Failures per time of one node",
                     {.bound = Bound::non_negative});
        section.read("rate_per_job", per_job_,
                     "Failures per time of the whole job; of many jobs, of each while it runs",
                     {.bound = Bound::non_negative});
        section.read(
            "mtbf_job", mtbf_,
            "Mean time between failures of the whole job; of many jobs, of each while it runs",
            {.bound = Bound::positive});
    }
    Rate per_node(Section& section, std::int64_t parts, std::int64_t job_nodes) const {
        if (given_ != 1) report_count(section);
        const double nodes = static_cast<double>(std::max<std::int64_t>(1, job_nodes));
        if (per_part_) return {per_part_->per_second * static_cast<double>(parts)};
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

const std::vector<std::string>& remedy_names();  // in the order of Remedy

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

}  // namespace railyard
