#include "models/failure/failure.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard {

namespace {

FailureCause read_cause(Catalogue& c, const std::string& name) {
    FailureCause cause;
    cause.name = name;
    const std::string remedy = c.text("failure_response", name, "remedy");
    cause.remedy = remedy == "replace" ? Remedy::replace
                   : remedy == "reset" ? Remedy::reset
                                       : Remedy::restart;
    RY_CHECK(cause.remedy != Remedy::restart || remedy == "restart");
    cause.silences = c.has("failure_response", name, "silences");
    cause.detection = c.time("detection", c.text("failure_response", name, "detected_by"), "time");
    if (cause.remedy == Remedy::restart) return cause;
    cause.reset_time = c.has("failure", name, "reset_time")
                           ? c.time("failure", name, "reset_time")
                           : c.time("restart", "node_reboot", "time");
    if (cause.remedy == Remedy::reset) return cause;
    cause.repair_time = c.has("failure", name, "repair_time")
                            ? c.time("failure", name, "repair_time")
                            : c.time("failure", "gpu_hw", "repair_time");
    if (c.has("failure", name, "swap_probability")) {
        cause.replace_fraction = c.number("failure", name, "swap_probability");
    }
    return cause;
}

}  // namespace

std::vector<std::string> failure_profiles() {
    return Catalogue::names("failure_profile");
}

std::vector<FailureCause> read_failure_profile(Catalogue& c, const std::string& profile,
                                               std::int64_t gpus_per_node) {
    std::vector<FailureCause> out;
    const Value* entry = Catalogue::entry("failure_profile", profile);
    RY_CHECK(entry != nullptr);
    const Value* causes = entry->find("causes");
    if (causes == nullptr) {  // a rate per node, without a mix of causes
        const std::string aggregate = c.text("failure_profile", profile, "aggregate");
        FailureCause cause = read_cause(c, "node");
        cause.rate_per_node.per_second =
            c.rate("aggregate", aggregate, "failure_rate_per_1000_nodes").per_second / 1000;
        return {cause};
    }
    // Counts over a known exposure: rates to the last digit, where the printed ones are rounded.
    const std::string aggregate = c.text("failure_profile", profile, "aggregate");
    const double gpus = static_cast<double>(c.integer("aggregate", aggregate, "gpus"));
    const double observed = seconds(c.time("aggregate", aggregate, "observation_time"));
    for (const Value& name : causes->items) {
        FailureCause cause = read_cause(c, name.text);
        cause.rate_per_node.per_second = c.number("failure", name.text, "events") / observed /
                                         gpus * static_cast<double>(gpus_per_node);
        out.push_back(cause);
    }
    return out;
}

void Strike::draw_consequences(RandomStream& stream) {
    acceptance = stream.uniform();
    replacement = stream.uniform();
    repair_spread = stream.normal();
    cure = stream.uniform();
}

void Strike::draw_diagnosis(RandomStream& stream) {
    diagnosis = stream.uniform();
    bystander = stream.uniform();
    search = stream.uniform();
}

FailureSource::FailureSource(CampaignEngine& engine, Target& target, std::size_t cause_index,
                             const FailureCause& cause, std::int64_t slots, double worst_multiplier,
                             std::uint64_t seed, std::uint64_t replica)
    : engine_(engine),
      target_(target),
      id_(engine.add(*this, "failure/" + cause.name)),
      stream_(seed, replica, "failure/" + cause.name),
      diagnosis_(seed, replica, "diagnosis/" + cause.name),
      cause_(cause_index),
      slots_(slots),
      rate_{cause.rate_per_node.per_second * static_cast<double>(slots) * worst_multiplier} {}

void FailureSource::start() {
    schedule_next();
}

void FailureSource::schedule_next() {
    if (rate_.per_second <= 0) return;
    const Duration gap = stream_.interarrival(rate_);
    if (gap > Instant::max() - engine_.now()) return;  // after the end of the clock
    engine_.schedule(engine_.now() + gap, id_, 0);
}

void FailureSource::handle(std::uint32_t) {
    Strike strike;
    strike.cause = cause_;
    strike.slot = static_cast<std::int64_t>(stream_.below(static_cast<std::uint64_t>(slots_)));
    strike.draw_consequences(stream_);
    strike.draw_diagnosis(diagnosis_);
    schedule_next();
    target_.strike(strike);
}

}  // namespace railyard
