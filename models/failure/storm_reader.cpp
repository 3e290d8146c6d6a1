#include "models/failure/cause_reader.h"

namespace railyard {

StormSpec read_storm(Section& section, Catalogue& catalogue, const StormContext& context) {
    StormSpec storm;
    FailureCause& cause = storm.cause;
    cause.name = "pause_storm";
    section.read("name", cause.name, "What the reports call it");
    const RateKeys rate(section, "rate_per_nic",
                        "Storms per time of one NIC of the compute network");
    section.read("duration", storm.duration, "How long the NIC pauses",
                 {Bound::positive, "until its node is reset"});
    section.read("nic", storm.nic, "The NIC of the window that stands for all storms");
    std::optional<Duration> found_after;
    std::optional<Duration> reset_time;
    section.read("found_after", found_after,
                 "From the job's error until somebody finds the NIC that pauses, if no watchdog "
                 "has and the storm is not over before",
                 {Bound::non_negative, "from the catalogue"});
    section.read("reset_time", reset_time,
                 "How long its node is out after a storm that ended the job",
                 {Bound::non_negative, "a reboot's, from the catalogue"});
    section.finish();
    if (section.describing()) return storm;
    cause.rate_per_node = rate.per_node(section, context.nics_per_node, context.job_nodes);
    if (context.many_jobs && rate.given() == 1 && rate.per_job()) {
        cause.rate_per_job = *rate.per_job();
        cause.rate_per_node = {};
    }
    cause.remedy = Remedy::reset;
    storm.found_after = found_after ? *found_after : catalogue.time("detection", "human", "time");
    cause.reset_time = reset_time ? *reset_time : catalogue.time("restart", "node_reboot", "time");
    return storm;
}

}  // namespace railyard
