#include "models/failure/cause_reader.h"

#include <fmt/format.h>

#include "models/failure/failure.h"

namespace railyard {

void RateKeys::report_count(Section& section) const {
    section.error(
        "",
        fmt::format("expected exactly one of {}, rate_per_node, rate_per_job, mtbf_job; found {}",
                    part_, given_));
}

namespace {

class CauseReader {
  public:
    CauseReader(Section& section, Catalogue& catalogue, const CauseContext& context)
        : section_(section), catalogue_(catalogue), context_(context) {}

    CauseSpec read();

  private:
    void read_detection();
    void read_remedy();
    void check_remedy();
    void read_life();
    void read_domain();
    void read_burst();
    void read_slow_part();
    void read_network_part();
    void settle_network_part();
    void settle_life(const RateKeys& rate);
    void settle_slow_part();
    void check_scheduler();
    void refuse(const char* key, const std::string& why, const std::string& help = {}) {
        section_.error(key, why, help);
    }

    Section& section_;
    Catalogue& catalogue_;
    const CauseContext& context_;
    CauseSpec spec_;
    FailureCause& cause_ = spec_.cause;
    std::optional<Rate> rate_per_domain_;
    std::string slows_;
    std::string network_part_;
    std::optional<Rate> rate_per_part_;
};

CauseSpec CauseReader::read() {
    section_.read("name", cause_.name, "What the reports call it", {.required = true});
    const RateKeys rate(section_, "rate_per_gpu", "Failures per time of one GPU");
    read_detection();
    read_remedy();
    read_life();
    read_domain();
    read_burst();
    read_slow_part();
    read_network_part();
    section_.read("silent", cause_.silent,
                  "Numbers go wrong and nobody knows until `detection` is over; what was saved "
                  "since is worth nothing");
    section_.read("silences", cause_.silences,
                  "The node's host is gone: a scheduler's heartbeat finds that it does not answer");
    section_.finish();
    if (section_.describing()) return spec_;
    if (!network_part_.empty()) {
        settle_network_part();
        return spec_;
    }
    if (rate_per_part_) refuse("rate_per_part", "has no meaning without network_part");
    check_scheduler();
    settle_life(rate);
    if (cause_.staged.further > 0 && cause_.domain == DomainKind::node) {
        refuse("further_domains", "has no meaning without domain");
    }
    if (cause_.staged.further == 0) {
        warn_of_keys(section_, {"further_every"}, "has no effect without further_domains");
    }
    if (cause_.burst.further == 0) {
        warn_of_keys(section_, {"burst_within"}, "has no effect without burst");
    }
    if (cause_.silent && cause_.detection == Duration{}) {
        section_.warning("silent", "has no effect: without detection it is noticed at once");
    }
    settle_slow_part();
    return spec_;
}

// What one job does not feel, and many cannot.
void CauseReader::check_scheduler() {
    if (!context_.many_jobs) {
        if (cause_.silences) section_.warning("silences", "has no effect without [scheduler]");
        return;
    }
    if (cause_.silent && cause_.domain != DomainKind::node) {
        refuse("silent", "a part that corrupts is one node's");
    }
    if (cause_.silent && cause_.silences) {
        refuse("silences", "has no meaning with silent: the node goes on as if nothing were wrong");
    }
}

void CauseReader::read_detection() {
    std::optional<Duration> detection;
    section_.read("detection", detection, "Until somebody notices",
                  {Bound::non_negative, "detected_by's, or 0 s"});
    std::string by;
    section_.name("detected_by", by, Catalogue::names("detection"),
                  "a means of detection in the catalogue", "Who notices, and so how soon",
                  {.otherwise = "not given"});
    if (detection && !by.empty()) {
        refuse("detected_by", "detection is given too: one of the two decides");
    } else if (detection) {
        cause_.detection = *detection;
    } else if (!by.empty()) {
        cause_.detection = catalogue_.time("detection", by, "time");
    }
}

void CauseReader::read_remedy() {
    section_.choose("remedy", cause_.remedy, remedy_names,
                    "restart: nothing is broken; reset: the node leaves for reset_time; replace: "
                    "it goes to repair");
    section_.read("reset_time", cause_.reset_time, "How long a reset takes the node out",
                  {Bound::non_negative});
    section_.read("repair_time", cause_.repair_time, "Mean time that a repair takes the node out",
                  {Bound::non_negative});
    section_.choose("spare_part", cause_.spare_part, spare_part_names,
                    "With remedy = \"replace\" and [cost]: whose price a repair pays");
    if (!context_.priced) {
        warn_of_keys(section_, {"spare_part"}, "has no effect without [cost]");
    } else if (section_.has("spare_part") && cause_.remedy != Remedy::replace) {
        section_.warning("spare_part", "has no effect: remedy = \"replace\" alone repairs a node");
    }
    section_.read("replace_fraction", cause_.replace_fraction,
                  "With remedy = \"replace\": how many need repair; a reset cures the rest",
                  {Bound::fraction});
    check_remedy();
}

// A node that comes back at once, and a time that nothing takes.
void CauseReader::check_remedy() {
    if (section_.describing()) return;
    const bool replaced = cause_.remedy == Remedy::replace;
    const bool some_reset = replaced && cause_.replace_fraction < 1;
    if (!replaced) {
        warn_of_keys(section_, {"repair_time", "replace_fraction"},
                     "has no effect: remedy = \"replace\" alone takes a node to repair");
    } else if (!section_.has("repair_time")) {
        section_.warning("repair_time", "is not given: repairs take no time");
    }
    if (cause_.remedy == Remedy::restart || (replaced && !some_reset)) {
        warn_of_keys(section_, {"reset_time"}, "has no effect: nothing is reset");
    } else if (!section_.has("reset_time")) {
        section_.warning("reset_time", "is not given: resets take no time");
    }
}

void CauseReader::read_life() {
    section_.read("shape", cause_.life.shape,
                  "Weibull shape of the lives of a part in each node: below 1 infant mortality, "
                  "above 1 wear-out",
                  {Bound::positive});
    section_.read("age", cause_.age, "Age of these parts at the campaign's start",
                  {Bound::non_negative});
}

void CauseReader::read_domain() {
    section_.choose("domain", cause_.domain, domain_kind_names,
                    "Which nodes fail together: 'railyard list kinds' has a line on each");
    section_.read("rate_per_domain", rate_per_domain_, "Failures per time of one domain",
                  {Bound::non_negative});
    section_.read("further_domains", cause_.staged.further,
                  "It goes on to so many of the domains that follow, as a rollout does",
                  {Bound::non_negative});
    section_.read("further_every", cause_.staged.every, "Time from one of these to the next",
                  {Bound::non_negative});
}

void CauseReader::read_burst() {
    section_.read("burst", cause_.burst.further, "Further failures that one brings, on average",
                  {Bound::non_negative});
    section_.read("burst_within", cause_.burst.within, "How long after the first they may come",
                  {Bound::non_negative});
}

void CauseReader::read_slow_part() {
    section_.name("slows", slows_, context_.node_parts, "a part of a node",
                  "The job goes on with this part of one node slower, until somebody finds it",
                  {.otherwise = "none: the job is interrupted"});
    section_.read("speed", spec_.speed,
                  "With slows or network_part: what is left of a sound part's speed",
                  {Bound::fraction});
    section_.read("slowdown", spec_.slowdown,
                  "With slows and job.step.time: what a step takes longer, as a share",
                  {Bound::non_negative});
    section_.read("lasts", spec_.lasts, "With slows: it ends by itself",
                  {Bound::positive, "until it is found"});
}

void CauseReader::read_network_part() {
    section_.name("network_part", network_part_, context_.network_parts,
                  "a kind of parts of the compute network",
                  "It strikes no node: these parts of the compute network die, or become slow, and "
                  "steps go round them until they are mended",
                  {.otherwise = "none: it strikes nodes"});
    section_.read("rate_per_part", rate_per_part_, "With network_part: failures per time of each",
                  {Bound::non_negative});
}

void CauseReader::settle_network_part() {
    for (const char* key :
         {"rate_per_gpu", "rate_per_node", "rate_per_job", "mtbf_job", "detection", "detected_by",
          "domain", "rate_per_domain", "further_domains", "further_every", "burst", "burst_within",
          "slows", "slowdown", "lasts", "silent", "silences"}) {
        if (section_.has(key)) refuse(key, "has no meaning with network_part");
    }
    if (!rate_per_part_) refuse("rate_per_part", "is missing: how often one of these parts fails");
    if (cause_.remedy == Remedy::restart) {
        refuse("remedy", "what breaks of a network has to be mended", "remedy = \"replace\"");
    }
    if (spec_.speed.value_or(0) >= 1) refuse("speed", "expected less than 1: such a part is sound");
    cause_.life.rate = rate_per_part_.value_or(Rate{});
    if (cause_.life.shape < hazard_shape_min || cause_.life.shape > hazard_shape_max) {
        refuse("shape", fmt::format("expected {} to {}, found {}", hazard_shape_min,
                                    hazard_shape_max, cause_.life.shape));
    }
    if (cause_.life.shape == 1) {
        warn_of_keys(section_, {"age"}, "has no effect with shape = 1: such a part does not age");
    }
    const auto kind = std::ranges::find(context_.network_parts, network_part_);
    spec_.network_part = static_cast<std::size_t>(kind - context_.network_parts.begin());
}

void CauseReader::settle_life(const RateKeys& rate) {
    Hazard& life = cause_.life;
    const bool of_domain = cause_.domain != DomainKind::node;
    if (life.shape < hazard_shape_min || life.shape > hazard_shape_max) {
        refuse("shape", fmt::format("expected {} to {}, found {}", hazard_shape_min,
                                    hazard_shape_max, life.shape));
        life.shape = 1;
    }
    if (of_domain) {
        if (!rate_per_domain_ || rate.given() > 0) {
            refuse("domain",
                   "how often a domain fails is said by rate_per_domain, and by it alone");
        }
        life.rate = rate_per_domain_.value_or(Rate{});
    } else if (context_.many_jobs && rate.given() == 1 && rate.per_job()) {
        cause_.rate_per_job = *rate.per_job();
        if (life.shape != 1) {
            refuse("shape",
                   "a part that ages is a node's: of many jobs a rate per job ages nothing",
                   "rate_per_node, or rate_per_gpu");
        }
        if (cause_.burst.further > 0) {
            refuse("burst", "of many jobs only failures at a rate per node or GPU come in bursts");
        }
    } else {
        const Rate per_node = rate.per_node(section_, context_.gpus_per_node, context_.job_nodes);
        (life.shape == 1 ? cause_.rate_per_node : life.rate) = per_node;
    }
    if (!of_domain && rate_per_domain_) refuse("rate_per_domain", "has no meaning without domain");
    if (life.shape == 1) {
        warn_of_keys(section_, {"age"}, "has no effect with shape = 1: such a part does not age");
    }
    if (cause_.burst.further > 0 && (of_domain || life.shape != 1)) {
        refuse("burst", "only failures of single nodes at shape 1 come in bursts");
    }
}

// The slow part. Whether its speed or the longer step must be given depends on the jobs.
void CauseReader::settle_slow_part() {
    for (const char* key : {"speed", "slowdown", "lasts"}) {
        if (section_.has(key) && slows_.empty()) {
            const bool speed = std::string_view(key) == "speed";
            refuse(key, speed ? "has no meaning without slows or network_part"
                              : "has no meaning without slows");
        }
    }
    if (slows_.empty()) return;
    warn_of_keys(section_, {"detection", "detected_by"},
                 "has no effect with slows: [failures.search] says who finds a slow part");
    const auto part = std::ranges::find(context_.node_parts, slows_);
    spec_.slow_part = static_cast<std::size_t>(part - context_.node_parts.begin());
}

}  // namespace

const std::vector<std::string> remedy_names = {"restart", "reset", "replace"};

const std::vector<std::string> spare_part_names = {"other", "gpu", "nic"};

CauseSpec read_cause(Section& section, Catalogue& catalogue, const CauseContext& context) {
    return CauseReader(section, catalogue, context).read();
}

FailureKeys read_failure_keys(Section& failures, Catalogue& catalogue) {
    FailureKeys keys;
    std::vector<std::string> profiles = failure_profiles();
    profiles.insert(profiles.begin(), "none");
    failures.name("profile", keys.profile, profiles, "a failure profile",
                  "A cluster's published failure record, by cause");
    bool random = true;
    failures.read("random", random,
                  "Causes strike at random; false: only as [[inject]] has it (pumps and stores "
                  "have their own)");
    failures.read("rate_scale", keys.rate_scale,
                  "Multiplies the rate of every cause (pumps and stores have their own)",
                  {Bound::non_negative});
    if (!random) keys.rate_scale = 0;
    failures.read("detection", keys.detection, "Until somebody notices, whatever the cause",
                  {Bound::non_negative, "each cause's own"});
    keys.repair_sigma = catalogue.number("distribution", "repair", "sigma");
    failures.read("repair_sigma", keys.repair_sigma,
                  "Standard deviation of the logarithm of repair times",
                  {Bound::non_negative, "from the catalogue"});
    constexpr double sigma_max = 5;
    if (keys.repair_sigma > sigma_max) {
        failures.error("repair_sigma",
                       fmt::format("expected at most {}, found {}", sigma_max, keys.repair_sigma));
        keys.repair_sigma = sigma_max;
    }
    return keys;
}

}  // namespace railyard
