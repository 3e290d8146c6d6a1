#pragma once
// One cause of failure, as a scenario writes it.

#include <algorithm>
#include <optional>

#include "models/campaign/scenario.h"

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

// Reads one [[failures.cause]]; the scenario's cluster, networks and job must be there. It gets what the
// cause needs: its domains, its slow parts. Nothing of a cause that strikes the network: the scenario has it.
std::optional<FailureCause> read_cause(Section& section, Catalogue& catalogue, Scenario& scenario);

}  // namespace railyard
