// Reads what Slurm takes.

#include <fmt/format.h>

#include <algorithm>

#include "models/scheduler/reader_names.h"
#include "models/scheduler/scheduler_reader.h"
#include "sim/text.h"

namespace railyard {

namespace {

void read_backfill(Section& scheduler, WorldSpec& spec) {
    Section section = scheduler.section("backfill");
    BackfillRules& rules = spec.slurm.backfill;
    section.read("enabled", spec.slurm.backfill_enabled,
                 "Jobs may pass others that they are not in the way of");
    section.read("interval", rules.interval, "From one look to the next (bf_interval)",
                 {Bound::positive});
    section.read("window", rules.window, "How far ahead it plans (bf_window)", {Bound::positive});
    section.read("resolution", rules.resolution,
                 "Expected ends are rounded up to it (bf_resolution)", {Bound::positive});
    section.read("depth", rules.depth, "Jobs that it looks at (bf_max_job_test)", {Bound::count});
    section.finish();
    if (spec.scheduler != "slurm" || spec.slurm.backfill_enabled) return;
    warn_of_keys(section, {"interval", "window", "resolution", "depth"},
                 "has no effect with enabled = false");
}

void read_priority(Section& scheduler, WorldSpec& spec) {
    Section section = scheduler.section("priority");
    SlurmPriority& p = spec.slurm.priority;
    const KeyRules weight{Bound::non_negative};
    section.read("age", p.age, "Weight of waiting (PriorityWeightAge)", weight);
    section.read("fair_share", p.fair_share, "Weight of the account's fair share", weight);
    section.read("job_size", p.job_size, "Weight of the job's size", weight);
    section.read("partition", p.partition, "Weight of the partition's priority", weight);
    section.read("qos", p.qos, "Weight of the QOS's priority", weight);
    section.read("age_max", p.age_max, "When waiting counts fully (PriorityMaxAge)",
                 {Bound::positive});
    section.read("half_life", p.half_life, "Half-life of what was used (PriorityDecayHalfLife)",
                 {Bound::positive});
    section.read("calc_period", p.calc_period, "How often priorities are made anew",
                 {Bound::positive});
    section.read("favor_small", p.favor_small, "The smaller a job, the higher its size counts");
    section.finish();
    warn_without_weight(section, {"age_max"}, spec, p.age, "age");
    warn_without_weight(section, {"half_life"}, spec, p.fair_share, "fair_share");
    warn_without_weight(section, {"calc_period"}, spec, std::max(p.age, p.fair_share),
                        "age or fair_share");
    warn_without_weight(section, {"favor_small"}, spec, p.job_size, "job_size");
    constexpr std::int64_t weight_max = 1'000'000'000'000;
    for (std::int64_t* w : {&p.age, &p.fair_share, &p.job_size, &p.partition, &p.qos}) {
        if (*w <= weight_max) continue;
        section.error("", fmt::format("a weight is at most {}, found {}", weight_max, *w));
        *w = weight_max;
    }
    constexpr Duration shortest = std::chrono::seconds(1);
    for (auto& [key, value] :
         {std::pair{"half_life", &p.half_life}, {"calc_period", &p.calc_period}}) {
        if (*value >= shortest) continue;
        section.error(
            key, fmt::format("expected at least {}, found {}", to_text(shortest), to_text(*value)));
        *value = shortest;
    }
}

bool preempts_itself(const SlurmSpec& slurm, std::uint32_t qos, std::vector<int>& seen) {
    if (seen[qos] != 0) return seen[qos] == 1;
    seen[qos] = 1;
    for (const std::uint32_t other : slurm.qos[qos].preempts) {
        if (preempts_itself(slurm, other, seen)) return true;
    }
    seen[qos] = 2;
    return false;
}

// The QOS that each QOS preempts, as written.
void resolve_preemption(Section& scheduler, const std::vector<std::string>& preempts,
                        SlurmSpec& slurm) {
    const std::vector<std::string> names = names_of(slurm.qos);
    for (std::size_t q = 0; q < preempts.size(); ++q) {
        const std::string& text = preempts[q];
        if (text.empty()) continue;
        for (const std::string& name : split_text(text, ',')) {
            if (std::ranges::find(names, name) == names.end()) {
                scheduler.error("qos",
                                fmt::format("'{}' preempts '{}', which is no QOS", names[q], name),
                                suggest(name, names));
                continue;
            }
            std::vector<std::uint32_t>& of_q = slurm.qos[q].preempts;
            const std::uint32_t other = index_of(names, name);
            if (std::ranges::find(of_q, other) == of_q.end()) of_q.push_back(other);
        }
    }
    std::vector<int> seen(names.size());
    for (std::uint32_t q = 0; q < names.size(); ++q) {
        if (!preempts_itself(slurm, q, seen)) continue;
        scheduler.error("qos", fmt::format("preemption goes in a circle that '{}' leads to: its "
                                           "jobs would displace each other for ever",
                                           names[q]));
        break;
    }
}

// Keys that say who is displaced first, and how, where nobody is.
void warn_of_idle_qos(std::vector<Section>& sections, const WorldSpec& spec) {
    if (spec.scheduler != "slurm") return;
    for (std::uint32_t q = 0; q < sections.size(); ++q) {
        if (std::ranges::any_of(spec.slurm.qos, [q](const SlurmQos& other) {
                return std::ranges::find(other.preempts, q) != other.preempts.end();
            })) {
            continue;
        }
        warn_without_weight(sections[q], {"priority"}, spec, spec.slurm.priority.qos, "qos");
        warn_of_keys(sections[q], {"preempt_mode", "grace", "exempt"},
                     "has no effect: no QOS preempts this one");
    }
}

void read_qos(Section& scheduler, WorldSpec& spec) {
    SlurmSpec& slurm = spec.slurm;
    const std::string unranked =
        unless_under({"slurm", "kubernetes", "volcano", "kueue", "priority"}, spec);
    std::vector<std::string> preempted;
    scheduler.no_effect(unranked);
    std::vector<Section> sections = scheduler.sections("qos", "A quality of service");
    scheduler.no_effect("");
    for (Section& section : sections) {
        SlurmQos qos;
        section.read("name", qos.name, "What it is called", {.required = true});
        section.read("priority", qos.priority, "Relative to that of others", {Bound::non_negative});
        section.no_effect(unless_under({"slurm"}, spec));
        std::string preempts;
        section.read("preempts", preempts, "QOS whose jobs it may displace: \"low,scavenger\"");
        section.choose("preempt_mode", qos.mode, preempt_mode_names,
                       "What becomes of its own jobs when they are displaced");
        if (qos.mode == PreemptMode::suspend) {
            section.warning("preempt_mode",
                            "Slurm keeps the GPUs of a job that it suspends (its manual, "
                            "gres.html): here others get them, as if the site did that itself",
                            "\"requeue\" is what Slurm does with GPUs");
        }
        section.read("grace", qos.grace, "How long they run on then (GraceTime)",
                     {Bound::non_negative});
        section.read("exempt", qos.exempt,
                     "How long they are safe after their start (PreemptExemptTime)",
                     {Bound::non_negative});
        section.read("gpus_max", qos.gpus_max, "GPUs of all its running jobs together (GrpTRES)",
                     {Bound::positive, "any number"});
        section.finish();
        refuse_same_name(section, qos.name, names_of(slurm.qos), "QOS");
        slurm.qos.push_back(qos);
        preempted.push_back(preempts);
    }
    if (slurm.qos.empty()) {
        slurm.qos.push_back({.name = "normal"});
        preempted.emplace_back();
    }
    resolve_preemption(scheduler, preempted, slurm);
    warn_of_idle_qos(sections, spec);
}

void read_accounts(Section& scheduler, WorldSpec& spec) {
    std::int64_t sum = 0;
    for (Section& section : scheduler.sections("account", "Who pays: a group of users")) {
        std::string name;
        std::int64_t shares = 1;
        section.read("name", name, "What it is called", {.required = true});
        section.read("shares", shares, "Its part of the cluster, in proportion to the others'",
                     {Bound::non_negative});
        section.finish();
        warn_without_weight(section, {"shares"}, spec, spec.slurm.priority.fair_share,
                            "fair_share");
        refuse_same_name(section, name, spec.accounts, "account");
        spec.accounts.push_back(name);
        spec.slurm.shares.push_back(shares);
        sum += shares;
    }
    if (spec.accounts.empty()) {
        spec.accounts = {"all"};
        spec.slurm.shares = {1};
    } else if (sum == 0 && !scheduler.describing()) {
        scheduler.error("account", "the shares of all accounts sum to zero: nobody has any part");
    }
}

}  // namespace

void read_slurm(Section& scheduler, Catalogue& catalogue, WorldSpec& spec) {
    SlurmSpec& slurm = spec.slurm;
    const std::string elsewhere = unless_under({"slurm"}, spec);
    scheduler.no_effect(unless_under({"slurm", "fifo", "sjf", "priority", "easy"}, spec));
    scheduler.read("node_timeout", slurm.node_timeout,
                   "How long a node may be silent until it is taken for down (SlurmdTimeout)",
                   {Bound::positive});
    slurm.prolog_hold = catalogue.time("detection", "human", "time");
    scheduler.read("prolog_hold", slurm.prolog_hold,
                   "How long a job is held whose prolog failed, until somebody releases it",
                   {Bound::non_negative, "until a human looks, from the catalogue"});
    scheduler.no_effect(elsewhere);
    scheduler.read("main_interval", slurm.main_interval,
                   "From one look at the whole queue to the next (sched_interval)",
                   {Bound::positive});
    scheduler.read("event_depth", slurm.event_depth,
                   "Jobs looked at when something happens (default_queue_depth)", {Bound::count});
    scheduler.choose("topology", slurm.topology, topology_aware_names,
                     "tree: the lowest switch that has enough, then the leaves that fit best; "
                     "block: on as few blocks as the job would fill");
    scheduler.read("switches_wait_max", slurm.switches_wait_max,
                   "How long a job may wait for few switches at most (max_switch_wait)",
                   {Bound::non_negative});
    read_backfill(scheduler, spec);
    read_priority(scheduler, spec);
    scheduler.no_effect("");
    read_qos(scheduler, spec);
    scheduler.no_effect(elsewhere);
    read_accounts(scheduler, spec);
    scheduler.no_effect("");
}

const std::vector<std::string> topology_aware_names = {"none", "tree", "block"};

const std::vector<std::string> preempt_mode_names = {"off", "cancel", "requeue", "suspend"};

}  // namespace railyard
