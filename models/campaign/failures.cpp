#include "models/campaign/failures.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/campaign/cause_reader.h"
#include "models/campaign/fleet.h"
#include "models/campaign/packet_limits.h"
#include "models/campaign/repair.h"
#include "models/campaign/storm.h"

namespace railyard {

namespace {

class FailureReader {
  public:
    FailureReader(Section& top, Catalogue& catalogue, Scenario& scenario)
        : top_(top), catalogue_(catalogue), s_(scenario) {}

    void read();

  private:
    void read_storm(Section& section);

    Section& top_;
    Catalogue& catalogue_;
    Scenario& s_;
};

// A NIC that pauses the compute network: its window is run here, since what it does to the job is always
// the same.
void FailureReader::read_storm(Section& section) {
    StormSpec storm;
    FailureCause& cause = storm.cause;
    cause.name = "pause_storm";
    section.read("name", cause.name, "What the reports call it");
    const RateKeys rate(section, "rate_per_nic",
                        "Storms per time of one NIC of the compute network");
    section.read("duration", storm.duration, "How long the NIC pauses",
                 {.bound = Bound::positive, .otherwise = "until its node is reset"});
    keep_within(section, "duration", storm.duration, packet_time_max);
    std::string nic = "node-0.nic-0";
    section.read("nic", nic, "The NIC of the window that stands for all storms");
    std::optional<Duration> found_after;
    std::optional<Duration> reset_time;
    section.read(
        "found_after", found_after,
        "From the job's error until somebody finds the NIC that pauses, if no watchdog has "
        "and the storm is not over before",
        {.bound = Bound::non_negative, .otherwise = "from the catalogue"});
    section.read("reset_time", reset_time,
                 "How long its node is out after a storm that ended the job",
                 {.bound = Bound::non_negative, .otherwise = "a reboot's, from the catalogue"});
    section.finish();
    if (top_.describing()) return;
    cause.rate_per_node = rate.per_node(section, s_.node.nics, s_.job.nodes);
    cause.remedy = Remedy::reset;
    storm.found_after = found_after ? *found_after : catalogue_.time("detection", "human", "time");
    cause.reset_time = reset_time ? *reset_time : catalogue_.time("restart", "node_reboot", "time");
    if (s_.fleet) {
        section.error("", "not modelled for the jobs of a [scheduler]");
        return;
    }
    if (!section.ok()) return;
    const Topology& topology = s_.networks[0].topology;
    const std::optional<VertexId> at = topology.find(nic);
    if (!at || topology.level(*at) > 0) {
        section.error("nic", fmt::format("the compute network has no NIC '{}'", nic),
                      "node-0.nic-0 is the first");
        return;
    }
    if (s_.networks[0].packets.flow_control == FlowControl::none) {
        section.error("", "nothing can pause the compute network: it has no flow control",
                      "fabric.compute.kind = \"roce\" with pfc, or \"infiniband\"");
        return;
    }
    for (const LinkId up : topology.up_links(*at)) storm.links.push_back(reverse_link(up));
    if (!s_.no_path.empty()) return;  // nothing that could be held up
    try {
        const StormProblem problem = feel_storm(s_, catalogue_, storm);
        if (problem.warning) {
            section.warning("nic", problem.text, problem.hint);
        } else if (!problem.text.empty()) {
            section.error("", problem.text, problem.hint);
            return;
        }
    } catch (const NoPath& no_path) {
        section.error("", fmt::format("its packet window can't be run: {}", no_path.what()),
                      "window.traffic says what is sent, fabric.compute.fault what is cut");
        return;
    }
    s_.causes.push_back(cause);
}

void FailureReader::read() {
    Section failures = top_.section("failures");
    std::vector<std::string> profiles = failure_profiles();
    profiles.insert(profiles.begin(), "none");
    std::string profile = "none";
    failures.name("profile", profile, profiles, "a failure profile",
                  "A cluster's published failure record, by cause");
    bool random = true;
    failures.read("random", random, "Nodes fail at random; false: only as [[inject]] has it");
    double scale = 1;
    failures.read("rate_scale", scale, "Multiplies every failure rate",
                  {.bound = Bound::non_negative});
    std::optional<Duration> detection;
    failures.read("detection", detection, "Until somebody notices, whatever the cause",
                  {.bound = Bound::non_negative, .otherwise = "each cause's own"});
    double sigma = catalogue_.number("distribution", "repair", "sigma");
    failures.read("repair_sigma", sigma, "Standard deviation of the logarithm of repair times",
                  {.bound = Bound::non_negative, .otherwise = "from the catalogue"});
    constexpr double sigma_max = 5;
    if (sigma > sigma_max) {
        failures.error("repair_sigma",
                       fmt::format("expected at most {}, found {}", sigma_max, sigma));
        sigma = sigma_max;
    }
    s_.nodes.repair_sigma = sigma;

    if (profile != "none" && !top_.describing()) {
        s_.causes = read_failure_profile(catalogue_, profile, s_.job.gpus_per_node);
    }
    for (Section& section :
         failures.sections("cause", "A cause of failure, besides the profile's")) {
        if (auto cause = read_cause(section, catalogue_, s_)) s_.causes.push_back(*cause);
    }
    for (Section& section :
         failures.sections("storm", "NICs that pause the network now and then")) {
        read_storm(section);
    }
    Section lemon = failures.section("lemon");
    LemonNodes& lemons = s_.nodes.lemons;
    lemon.read("fraction", lemons.fraction, "Nodes that fail more often",
               {.bound = Bound::fraction});
    lemon.read("rate_multiplier", lemons.rate_multiplier, "How much more often",
               {.bound = Bound::at_least_one});
    lemon.read("cured_by_repair", lemons.cured_by_repair,
               "Probability that a repair makes it a node like the others",
               {.bound = Bound::fraction});
    lemon.finish();
    read_repair(failures, s_);
    failures.finish();
    if (!random) scale = 0;

    if (lemon.has("rate_multiplier") && lemons.fraction == 0) {
        lemon.warning("rate_multiplier", "has no effect without failures.lemon.fraction");
        lemons.rate_multiplier = 1;
    }
    for (const char* key : {"rate_scale", "detection", "repair_sigma"}) {
        if (s_.causes.empty() && s_.network_faults.causes.empty() && failures.has(key)) {
            failures.warning(key, "has no effect without failures.profile or a [[failures.cause]]");
        }
    }
    s_.network_faults.repair_sigma = sigma;
    std::vector<std::string> seen;
    for (NetworkCause& of : s_.network_faults.causes) {
        of.cause.life.rate.per_second *= scale;
        if (std::ranges::find(seen, of.cause.name) != seen.end()) {
            failures.error("cause", fmt::format("the cause '{}' appears twice", of.cause.name));
        }
        seen.push_back(of.cause.name);
    }
    for (FailureCause& cause : s_.causes) {
        cause.rate_per_node.per_second *= scale;
        cause.rate_per_job.per_second *= scale;
        cause.life.rate.per_second *= scale;
        if (detection && !cause.storm && !cause.silent) cause.detection = *detection;
        if (std::find(seen.begin(), seen.end(), cause.name) != seen.end()) {
            failures.error("cause", fmt::format("the cause '{}' appears twice", cause.name));
        }
        seen.push_back(cause.name);
        const double per_second =
            (cause.rate_per_node.per_second * static_cast<double>(s_.job.nodes) +
             cause.rate_per_job.per_second) *
            lemons.rate_multiplier;
        if (per_second > 1e6) {
            failures.error(
                "cause",
                fmt::format("'{}' strikes the job {:.3g} times a second", cause.name, per_second),
                "the campaign would be nothing but failures");
        }
    }
}

}  // namespace

const std::vector<std::string>& remedy_names() {
    static const std::vector<std::string> names = {"restart", "reset", "replace"};
    return names;
}

void read_failures(Section& top, Catalogue& catalogue, Scenario& scenario) {
    FailureReader(top, catalogue, scenario).read();
}

}  // namespace railyard
