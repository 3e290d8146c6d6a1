#include "models/failure/failure.h"

#include <algorithm>
#include <string>

#include "sim/check.h"

namespace railyard {

FailureCause read_failure_cause(Catalogue& c, const std::string& name) {
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
    if (c.has("failure_response", name, "spare_part")) {
        const auto part =
            std::ranges::find(spare_part_names, c.text("failure_response", name, "spare_part"));
        RY_CHECK(part != spare_part_names.end());
        cause.spare_part = static_cast<SparePart>(part - spare_part_names.begin());
    }
    if (c.has("failure", name, "swap_probability")) {
        cause.replace_fraction = c.number("failure", name, "swap_probability");
    }
    return cause;
}

std::vector<std::string> failure_profiles() {
    return Catalogue::names("failure_profile");
}

namespace {

// What a record's rates are taken times: an estimate where no record is of GPUs of this generation.
double by_analogy(Catalogue& c, const std::string& generation) {
    for (const std::string& profile : failure_profiles()) {
        const Value* of = Catalogue::entry("failure_profile", profile)->find("generations");
        if (std::ranges::find(of->items, generation, &Value::text) != of->items.end()) return 1;
    }
    return c.number("failure_analogy", "new_generation", "rate_factor");
}

}  // namespace

std::vector<FailureCause> read_failure_profile(Catalogue& c, const std::string& profile,
                                               const std::string& generation,
                                               std::int64_t gpus_per_node) {
    std::vector<FailureCause> out;
    const double factor = by_analogy(c, generation);
    const Value* entry = Catalogue::entry("failure_profile", profile);
    RY_CHECK(entry != nullptr);
    const Value* causes = entry->find("causes");
    if (causes == nullptr) {  // a rate per node, without a mix of causes
        const std::string aggregate = c.text("failure_profile", profile, "aggregate");
        FailureCause cause = read_failure_cause(c, "node");
        cause.rate_per_node.per_second =
            c.rate("aggregate", aggregate, "failure_rate_per_1000_nodes").per_second / 1000 *
            factor;
        return {cause};
    }
    // Counts over a known exposure: rates to the last digit, where the printed ones are rounded.
    const std::string aggregate = c.text("failure_profile", profile, "aggregate");
    const double gpus = real(c.integer("aggregate", aggregate, "gpus"));
    const double observed = seconds(c.time("aggregate", aggregate, "observation_time"));
    for (const Value& name : causes->items) {
        FailureCause cause = read_failure_cause(c, name.text);
        cause.rate_per_node.per_second = c.number("failure", name.text, "events") / observed /
                                         gpus * real(gpus_per_node) * factor;
        out.push_back(cause);
    }
    return out;
}

OutOfService out_of_service(const Strike& strike, const FailureCause& cause, double repair_sigma) {
    OutOfService out;
    out.repaired = cause.remedy == Remedy::replace && strike.replacement < cause.replace_fraction;
    if (strike.out_for) {
        out.time = *strike.out_for;
    } else if (!out.repaired) {
        out.time = cause.reset_time;
    } else {
        constexpr double repair_seconds_max = 3e8;  // ten years: the log-normal's tail ends there
        const double mean = seconds(cause.repair_time);
        const double drawn = lognormal(mean, repair_sigma, strike.repair_spread);
        out.time = from_seconds(std::min(drawn, repair_seconds_max));
    }
    return out;
}

bool Strike::misleads(double misdiagnosis) const {
    double wrong = misdiagnosis;
    for (std::int64_t i = 0; i < guesses; ++i) wrong *= misdiagnosis;
    return diagnosis < wrong;
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

Strike InjectedStrike::drawn(std::uint64_t seed, std::uint64_t replica) const {
    RandomStream stream(seed, replica, "inject/" + std::to_string(number));
    Strike strike;
    strike.cause = cause;
    strike.slot = unit;
    strike.out_for = duration;
    strike.draw_consequences(stream);
    strike.draw_diagnosis(stream);
    return strike;
}

FailureSource::FailureSource(CampaignEngine& engine, Target& target, std::size_t cause_index,
                             const FailureCause& cause, std::int64_t slots, double worst_multiplier,
                             std::uint64_t seed, std::uint64_t replica)
    : engine_(engine),
      target_(target),
      id_(engine.add(*this, "failure/" + cause.name)),
      stream_(seed, replica, "failure/" + cause.name),
      diagnosis_(seed, replica, "diagnosis/" + cause.name),
      further_(seed, replica, "burst/" + cause.name),
      burst_(cause.burst),
      cause_(cause_index),
      slots_(slots),
      rate_{cause.rate_per_node.per_second * real(slots) * worst_multiplier} {}

void FailureSource::start() {
    schedule_next();
}

void FailureSource::schedule_next() {
    if (rate_.per_second <= 0) return;
    const Duration gap = stream_.interarrival(rate_);
    if (gap > Instant::max() - engine_.now()) return;  // after the end of the clock
    engine_.schedule(engine_.now() + gap, id_, first_of_burst);
}

// Geometric: whether there is one more is asked anew each time.
void FailureSource::schedule_burst() {
    if (burst_.further <= 0) return;
    while (further_.chance(burst_.further / (1 + burst_.further))) {
        const Duration after = from_seconds(seconds(burst_.within) * further_.uniform());
        engine_.schedule(engine_.now() + after, id_, one_more);
    }
}

Strike FailureSource::draw(RandomStream& stream, RandomStream& diagnosis) {
    Strike strike;
    strike.cause = cause_;
    strike.slot = static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(slots_)));
    strike.draw_consequences(stream);
    strike.draw_diagnosis(diagnosis);
    return strike;
}

void FailureSource::handle(std::uint32_t kind) {
    if (kind == one_more) return strike_once_more();
    const Strike strike = draw(stream_, diagnosis_);
    schedule_next();
    if (target_.strike(strike)) schedule_burst();
}

// On whichever node has it among its strikes: lemons sooner than others.
void FailureSource::strike_once_more() {
    constexpr int draws_max = 1'000'000;  // where next to no node has any
    for (int i = 0; i < draws_max; ++i) {
        Strike strike = draw(further_, further_);
        strike.follows = true;
        if (target_.strike(strike)) return;
    }
}

Duration SearchSpec::found_after(const Strike& strike, Instant now, double slowdown) const {
    Duration after = Duration::max();
    if (check_every > Duration{} && check_finds > 0) {
        // The n-th check finds it when those before have not: geometric.
        std::int64_t checks = 1;
        double missed = 1 - check_finds;
        for (; strike.search < missed && checks < 1'000'000; ++checks) missed *= 1 - check_finds;
        const Duration since_check = now.time_since_epoch() % check_every;
        after = (check_every - since_check) + (checks - 1) * check_every;
    }
    if (compare > Duration{} && slowdown >= compare_above) after = std::min(after, compare);
    return after;
}

}  // namespace railyard
