// Reads a fleet: the sections of a scenario in which many jobs share the cluster.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "models/campaign/fleet.h"
#include "models/campaign/fleet_steps.h"
#include "models/campaign/parallel.h"

namespace railyard {

namespace {

// What a scenario names itself: there is no list of it to describe.
std::vector<std::string> own_names(const Section& section, std::vector<std::string> names) {
    return section.describing() ? std::vector<std::string>{} : std::move(names);
}

constexpr std::int64_t jobs_max = 100'000'000;  // of a kind

class FleetReader {
  public:
    FleetReader(Section& top, ValueReader& values, Catalogue& catalogue, const std::string& folder,
                Scenario& scenario)
        : top_(top),
          values_(values),
          catalogue_(catalogue),
          folder_(folder),
          s_(scenario),
          fleet_(std::make_shared<FleetScenario>()),
          spec_(fleet_->spec) {}

    void read();

  private:
    void read_groups();
    void read_scheduler();
    void read_backfill(Section& scheduler);
    void read_priority(Section& scheduler);
    void read_health(Section& scheduler);
    void read_qos(Section& scheduler);
    void resolve_preemption(Section& scheduler);
    bool preempts_itself(std::uint32_t qos, std::vector<int>& seen) const;
    void read_accounts(Section& scheduler);
    void read_partitions();
    void read_reservations();
    void read_nodes(Section& section, NodeIndex& first, std::int64_t& nodes);
    void place_nodes(Section& scheduler, std::int64_t nodes_per_leaf);
    void read_jobs();
    void read_kind(Section& section);
    void read_stream(Section& section, JobSource& source);
    void read_published(Section& section, JobSource& source);
    void read_model(Section& section, const JobSource& source, FleetJobKind& kind);
    void read_trace(Section& jobs);

    template <class Items>
    std::vector<std::string> names_of(const Items& items) const {
        std::vector<std::string> out;
        for (const auto& item : items) out.push_back(item.name);
        return out;
    }
    static std::uint32_t index_of(const std::vector<std::string>& names, const std::string& name) {
        const auto found = std::find(names.begin(), names.end(), name);
        return static_cast<std::uint32_t>(found - names.begin()) %
               static_cast<std::uint32_t>(names.size());
    }

    Section& top_;
    ValueReader& values_;
    Catalogue& catalogue_;
    const std::string& folder_;
    Scenario& s_;
    std::shared_ptr<FleetScenario> fleet_;
    FleetSpec& spec_;
    std::vector<std::string> preempts_;  // of each QOS, as written
};

void FleetReader::read() {
    read_groups();
    read_scheduler();
    read_partitions();
    read_reservations();
    read_jobs();
    s_.fleet = fleet_;
}

// ---- nodes ----

void FleetReader::read_groups() {
    std::int64_t sum = 0;
    for (Section& section :
         top_.sections("node_group", "Nodes of one kind, where a cluster has several")) {
        NodeGroup group;
        std::string node;
        section.read("name", group.name, "What it is called", {.required = true});
        section.name("node", node, Catalogue::names("node"), "a node in the catalogue",
                     "What each of them is", {.required = true});
        group.nodes = 1;
        section.read("nodes", group.nodes, "How many; all together cluster.nodes",
                     {.bound = Bound::count, .required = true});
        section.finish();
        if (node.empty()) continue;
        group.gpus_per_node = read_node(catalogue_, node).gpus;
        sum += group.nodes;
        spec_.groups.push_back(group);
    }
    if (spec_.groups.empty()) {
        spec_.groups.push_back({"all", s_.nodes.nodes, s_.node.gpus});
    } else if (sum != s_.nodes.nodes) {
        top_.error("node_group", fmt::format("the groups have {} nodes, cluster.nodes is {}", sum,
                                             s_.nodes.nodes));
    }
    constexpr std::int64_t gpus_per_node_max = 255;
    for (NodeGroup& group : spec_.groups) {
        if (group.gpus_per_node <= gpus_per_node_max) continue;
        top_.error("cluster", fmt::format("a fleet's nodes have at most {} GPUs, found {}",
                                          gpus_per_node_max, group.gpus_per_node));
        group.gpus_per_node = gpus_per_node_max;
    }
    s_.fleet_gpus = spec_.gpus();
}

// Some of the nodes: from one on, or those of a group.
void FleetReader::read_nodes(Section& section, NodeIndex& first, std::int64_t& nodes) {
    std::int64_t from = 0;
    std::string group;
    section.name("group", group, own_names(section, names_of(spec_.groups)), "a [[node_group]]",
                 "Its nodes", {.otherwise = "first_node and nodes say which"});
    section.read("first_node", from, "The first of its nodes, counted from 0",
                 {.bound = Bound::non_negative});
    nodes = s_.nodes.nodes - from;
    section.read("nodes", nodes, "How many",
                 {.bound = Bound::positive, .otherwise = "from first_node to the last"});
    if (!group.empty()) {
        from = 0;
        for (const NodeGroup& g : spec_.groups) {
            if (g.name == group) {
                nodes = g.nodes;
                break;
            }
            from += g.nodes;
        }
        for (const char* key : {"first_node", "nodes"}) {
            if (section.has(key)) section.error(key, "has no effect with group");
        }
    }
    if (from < 0 || nodes < 1 || from + nodes > s_.nodes.nodes) {
        section.error("nodes", fmt::format("expected nodes from 0 to {}, found {} to {}",
                                           s_.nodes.nodes - 1, from, from + nodes - 1));
        from = 0;
        nodes = s_.nodes.nodes;
    }
    first = static_cast<NodeIndex>(from);
}

// Leaves as the compute network has them, blocks as its spines join them; or runs of nodes.
void FleetReader::place_nodes(Section& scheduler, std::int64_t nodes_per_leaf) {
    const Topology& network = s_.networks[0].topology;
    spec_.places.resize(static_cast<std::size_t>(s_.nodes.nodes));
    if (nodes_per_leaf > 0) {
        for (std::size_t n = 0; n < spec_.places.size(); ++n) {
            spec_.places[n].leaf =
                static_cast<std::uint32_t>(n / static_cast<std::size_t>(nodes_per_leaf));
        }
        return;
    }
    if (network.nodes() != s_.nodes.nodes) {
        if (spec_.slurm.topology != SlurmTopology::none) {
            scheduler.error("topology", "the nodes stand nowhere",
                            "give scheduler.nodes_per_leaf, or [fabric.compute]");
        }
        return;
    }
    std::map<VertexId, std::uint32_t> leaves;
    std::map<VertexId, std::uint32_t> blocks;
    for (std::size_t n = 0; n < spec_.places.size(); ++n) {
        const auto ups = network.up_links(network.nic(static_cast<std::int64_t>(n), 0));
        if (ups.empty()) continue;
        const VertexId leaf = network.links()[ups[0]].to;
        VertexId spine = leaf;
        for (const LinkId up : network.up_links(leaf)) {
            const VertexId above = network.links()[up].to;
            spine = spine == leaf ? above : std::min(spine, above);
        }
        const auto number = [](auto& known, VertexId of) {
            return known.emplace(of, static_cast<std::uint32_t>(known.size())).first->second;
        };
        spec_.places[n] = {number(leaves, leaf), number(blocks, spine)};
    }
}

// ---- the scheduler ----

void FleetReader::read_scheduler() {
    Section scheduler = top_.section("scheduler");
    std::vector<std::string> kinds;
    for (const FleetSchedulerKind& kind : fleet_scheduler_kinds()) kinds.emplace_back(kind.name);
    scheduler.name("kind", spec_.scheduler, kinds, "a scheduler",
                   "Who decides which job gets what");
    SlurmSpec& slurm = spec_.slurm;
    scheduler.read("node_timeout", slurm.node_timeout,
                   "How long a node may be silent until it is taken for down (SlurmdTimeout)",
                   {.bound = Bound::positive});
    scheduler.read("main_interval", slurm.main_interval,
                   "From one look at the whole queue to the next (sched_interval)",
                   {.bound = Bound::positive});
    scheduler.read("event_depth", slurm.event_depth,
                   "Jobs looked at when something happens (default_queue_depth)",
                   {.bound = Bound::count});
    int topology = 0;
    scheduler.choose("topology", topology, topology_aware_names(),
                     "tree: the lowest switch that has enough, then the leaves that fit best; "
                     "block: on as few blocks as the job would fill");
    slurm.topology = static_cast<SlurmTopology>(topology);
    std::int64_t nodes_per_leaf = 0;
    scheduler.read("nodes_per_leaf", nodes_per_leaf, "Nodes of a leaf, or of a block",
                   {.bound = Bound::positive, .otherwise = "as [fabric.compute] cables them"});
    scheduler.read("switches_wait_max", slurm.switches_wait_max,
                   "How long a job may wait for few switches at most (max_switch_wait)",
                   {.bound = Bound::non_negative});
    slurm.prolog_hold = catalogue_.time("detection", "human", "time");
    scheduler.read(
        "prolog_hold", slurm.prolog_hold,
        "How long a job is held whose prolog failed, until somebody releases it",
        {.bound = Bound::non_negative, .otherwise = "until a human looks, from the catalogue"});
    read_backfill(scheduler);
    read_priority(scheduler);
    read_health(scheduler);
    read_qos(scheduler);
    read_accounts(scheduler);
    scheduler.finish();
    if (!top_.describing() && scheduler.ok()) place_nodes(scheduler, nodes_per_leaf);
}

void FleetReader::read_backfill(Section& scheduler) {
    Section section = scheduler.section("backfill");
    BackfillRules& rules = spec_.slurm.backfill;
    section.read("enabled", spec_.slurm.backfill_enabled,
                 "Jobs may pass others that they are not in the way of");
    section.read("interval", rules.interval, "From one look to the next (bf_interval)",
                 {.bound = Bound::positive});
    section.read("window", rules.window, "How far ahead it plans (bf_window)",
                 {.bound = Bound::positive});
    section.read("resolution", rules.resolution,
                 "Expected ends are rounded up to it (bf_resolution)", {.bound = Bound::positive});
    section.read("depth", rules.depth, "Jobs that it looks at (bf_max_job_test)",
                 {.bound = Bound::count});
    section.finish();
}

void FleetReader::read_priority(Section& scheduler) {
    Section section = scheduler.section("priority");
    SlurmPriority& p = spec_.slurm.priority;
    const KeyRules weight{.bound = Bound::non_negative};
    section.read("age", p.age, "Weight of waiting (PriorityWeightAge)", weight);
    section.read("fair_share", p.fair_share, "Weight of the account's fair share", weight);
    section.read("job_size", p.job_size, "Weight of the job's size", weight);
    section.read("partition", p.partition, "Weight of the partition's priority", weight);
    section.read("qos", p.qos, "Weight of the QOS's priority", weight);
    section.read("age_max", p.age_max, "When waiting counts fully (PriorityMaxAge)",
                 {.bound = Bound::positive});
    section.read("half_life", p.half_life, "Half-life of what was used (PriorityDecayHalfLife)",
                 {.bound = Bound::positive});
    section.read("calc_period", p.calc_period, "How often priorities are made anew",
                 {.bound = Bound::positive});
    section.read("favor_small", p.favor_small, "The smaller a job, the higher its size counts");
    section.finish();
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

void FleetReader::read_health(Section& scheduler) {
    Section section = scheduler.section("health");
    HealthChecks& health = spec_.health;
    section.read("prolog", health.prolog, "Nodes are checked before a job starts on them");
    section.read("epilog", health.epilog, "Nodes are checked after a job has ended");
    section.read("prolog_time", health.prolog_time, "How long that takes",
                 {.bound = Bound::non_negative});
    section.read("epilog_time", health.epilog_time, "How long that takes",
                 {.bound = Bound::non_negative});
    section.read("interval", health.interval, "From one check of all nodes to the next",
                 {.bound = Bound::positive, .otherwise = "there are none (HealthCheckInterval)"});
    section.finish();
    if (!health.prolog && !health.epilog && health.interval == Duration{}) {
        section.warning("",
                        "nobody looks for broken nodes that answer: jobs fail on them for ever");
    }
}

void FleetReader::read_qos(Section& scheduler) {
    for (Section& section : scheduler.sections("qos", "A quality of service")) {
        SlurmQos qos;
        section.read("name", qos.name, "What it is called", {.required = true});
        section.read("priority", qos.priority, "Relative to that of others",
                     {.bound = Bound::non_negative});
        std::string preempts;
        section.read("preempts", preempts, "QOS whose jobs it may displace: \"low,scavenger\"");
        int mode = static_cast<int>(qos.mode);
        section.choose("preempt_mode", mode, preempt_mode_names(),
                       "What becomes of its own jobs when they are displaced");
        qos.mode = static_cast<PreemptMode>(mode);
        section.read("grace", qos.grace, "How long they run on then (GraceTime)",
                     {.bound = Bound::non_negative});
        section.read("exempt", qos.exempt,
                     "How long they are safe after their start (PreemptExemptTime)",
                     {.bound = Bound::non_negative});
        section.read("gpus_max", qos.gpus_max, "GPUs of all its running jobs together (GrpTRES)",
                     {.bound = Bound::positive, .otherwise = "any number"});
        section.finish();
        spec_.slurm.qos.push_back(qos);
        preempts_.push_back(preempts);
    }
    if (spec_.slurm.qos.empty()) {
        spec_.slurm.qos.push_back({.name = "normal"});
        preempts_.emplace_back();
    }
    resolve_preemption(scheduler);
}

bool FleetReader::preempts_itself(std::uint32_t qos, std::vector<int>& seen) const {
    if (seen[qos] != 0) return seen[qos] == 1;
    seen[qos] = 1;
    for (const std::uint32_t other : spec_.slurm.qos[qos].preempts) {
        if (preempts_itself(other, seen)) return true;
    }
    seen[qos] = 2;
    return false;
}

void FleetReader::resolve_preemption(Section& scheduler) {
    const std::vector<std::string> names = names_of(spec_.slurm.qos);
    for (std::size_t q = 0; q < preempts_.size(); ++q) {
        const std::string& text = preempts_[q];
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = std::min(text.find(',', begin), text.size());
            const std::string name = text.substr(begin, end - begin);
            begin = end + 1;
            if (std::find(names.begin(), names.end(), name) == names.end()) {
                scheduler.error("qos",
                                fmt::format("'{}' preempts '{}', which is no QOS", names[q], name),
                                suggest(name, names));
                continue;
            }
            spec_.slurm.qos[q].preempts.push_back(index_of(names, name));
        }
    }
    std::vector<int> seen(names.size());
    for (std::uint32_t q = 0; q < names.size(); ++q) {
        if (!preempts_itself(q, seen)) continue;
        scheduler.error("qos",
                        fmt::format("preemption goes in a circle that '{}' leads to: its jobs "
                                    "would displace each other for ever",
                                    names[q]));
        break;
    }
}

void FleetReader::read_accounts(Section& scheduler) {
    std::int64_t sum = 0;
    for (Section& section : scheduler.sections("account", "Who pays: a group of users")) {
        std::string name;
        std::int64_t shares = 1;
        section.read("name", name, "What it is called", {.required = true});
        section.read("shares", shares, "Its part of the cluster, in proportion to the others'",
                     {.bound = Bound::non_negative});
        section.finish();
        spec_.accounts.push_back(name);
        spec_.slurm.shares.push_back(shares);
        sum += shares;
    }
    if (spec_.accounts.empty()) {
        spec_.accounts = {"all"};
        spec_.slurm.shares = {1};
    } else if (sum == 0 && !top_.describing()) {
        scheduler.error("account", "the shares of all accounts sum to zero: nobody has any part");
    }
}

void FleetReader::read_partitions() {
    for (Section& section : top_.sections("partition", "Nodes behind one queue")) {
        PartitionSpec p;
        section.read("name", p.name, "What it is called", {.required = true});
        read_nodes(section, p.first_node, p.nodes);
        section.read("limit_max", p.limit_max, "Longest time of a job (MaxTime)",
                     {.bound = Bound::positive, .otherwise = "none"});
        section.read("limit_default", p.limit_default, "Of a job that names none (DefaultTime)",
                     {.bound = Bound::positive, .otherwise = "limit_max"});
        section.read("gpus_max", p.gpus_max, "GPUs of one job at most",
                     {.bound = Bound::positive, .otherwise = "any number"});
        section.read("priority", p.priority, "Relative to that of others (PriorityJobFactor)",
                     {.bound = Bound::non_negative});
        section.read("tier", p.tier, "Jobs of higher tiers come first, whatever their priority",
                     {.bound = Bound::non_negative});
        section.finish();
        spec_.partitions.push_back(p);
    }
    if (spec_.partitions.empty()) {
        PartitionSpec all;
        all.name = "all";
        all.nodes = s_.nodes.nodes;
        spec_.partitions.push_back(all);
    }
}

void FleetReader::read_reservations() {
    for (Section& section : top_.sections(
             "reservation", "Nodes under maintenance for a while: no job may run into it")) {
        Reservation r;
        Duration start{};
        read_nodes(section, r.first_node, r.nodes);
        section.read("start", start, "When it begins", {.bound = Bound::non_negative});
        section.read("duration", r.length, "How long it lasts",
                     {.bound = Bound::positive, .required = true});
        section.read("every", r.every, "From one to the next",
                     {.bound = Bound::positive, .otherwise = "there is one"});
        section.finish();
        r.start = Instant(start);
        if (r.every > Duration{} && r.every <= r.length) {
            section.error("every",
                          "expected more than its duration: the nodes would never be back");
            r.every = {};
        }
        spec_.reservations.push_back(r);
    }
}

// ---- jobs ----

void FleetReader::read_jobs() {
    Section jobs = top_.section("jobs");
    for (Section& section : jobs.sections("kind", "Jobs that are alike")) read_kind(section);
    read_trace(jobs);
    jobs.finish();
    if (!top_.describing() && top_.has("scheduler") && fleet_->sources.empty() &&
        fleet_->trace.empty()) {
        jobs.error("", "there are no jobs", "give a [[jobs.kind]], or jobs.trace");
    }
}

void FleetReader::read_kind(Section& section) {
    FleetJobKind kind;
    JobSource source;
    section.read("name", kind.name, "What they are called", {.required = true});
    read_stream(section, source);
    section.read("checkpoint_interval", kind.checkpoint_interval,
                 "Work from one checkpoint to the next",
                 {.bound = Bound::positive, .otherwise = "nothing is saved: an end loses all"});
    section.read("checkpoint_stall", kind.checkpoint_stall, "How long each stops the job",
                 {.bound = Bound::non_negative});
    section.read("restart", kind.restart, "Each start: launch, imports, communicators",
                 {.bound = Bound::non_negative});
    section.read("restore", kind.restore, "Each start with a saved state: reading it back",
                 {.bound = Bound::non_negative});
    section.read(
        "own_failure_rate_per_gpu", kind.own_failure_rate_per_gpu,
        "Failures of a job per running time of each of its GPUs that no node is to blame for",
        {.bound = Bound::non_negative});
    section.read("requeue", kind.requeue,
                 "It waits again when it fails or its nodes do (JobRequeue)");
    section.read("resubmit", kind.resubmit, "It waits again when its time limit ends it");
    section.read("restarts_max", kind.restarts_max, "After so many it is given up",
                 {.bound = Bound::non_negative});
    read_model(section, source, kind);
    section.finish();
    for (const char* key : {"checkpoint_stall", "restore"}) {
        if (kind.checkpoint_interval == Duration{} && section.has(key)) {
            section.warning(key, "has no effect without checkpoint_interval");
        }
    }
    source.like.kind = static_cast<std::uint32_t>(spec_.kinds.size());
    spec_.kinds.push_back(kind);
    if (source.count > 0) fleet_->sources.push_back(source);
}

void FleetReader::read_stream(Section& section, JobSource& source) {
    FleetJob& job = source.like;
    std::string partition = spec_.partitions[0].name;
    std::string qos = spec_.slurm.qos[0].name;
    std::string account = spec_.accounts[0];
    const auto first = [](const char* what) { return KeyRules{.otherwise = what}; };
    section.name("partition", partition, own_names(section, names_of(spec_.partitions)),
                 "a [[partition]]", "Where they wait", first("the first"));
    section.name("qos", qos, own_names(section, names_of(spec_.slurm.qos)), "a [[scheduler.qos]]",
                 "Their QOS", first("the first"));
    section.name("account", account, own_names(section, spec_.accounts), "a [[scheduler.account]]",
                 "Who pays", first("the first"));
    job.partition = index_of(names_of(spec_.partitions), partition);
    job.qos = index_of(names_of(spec_.slurm.qos), qos);
    job.account = index_of(spec_.accounts, account);
    Duration at{};
    section.read("at", at, "When the first is submitted; of a stream, when it begins",
                 {.bound = Bound::non_negative});
    job.submit = Instant(at);
    section.read("rate", source.rate, "How often one is submitted, at random",
                 {.bound = Bound::non_negative, .otherwise = "all at once"});
    source.count = source.rate.per_second > 0 ? jobs_max : 1;
    section.read("count", source.count, "How many at most",
                 {.bound = Bound::non_negative, .otherwise = "1; of a stream any number"});
    if (source.count > jobs_max) {
        section.error("count",
                      fmt::format("expected at most {}, found {}", jobs_max, source.count));
        source.count = 1;
    }
    section.read("gpus", job.gpus, "GPUs of each", {.bound = Bound::count});
    for (Section& size : section.sections("size", "One of several sizes, instead of gpus")) {
        JobSource::Size one;
        size.read("gpus", one.gpus, "GPUs", {.bound = Bound::count, .required = true});
        size.read("share", one.share, "How many jobs have it, in proportion to the others",
                  {.bound = Bound::positive, .required = true});
        size.finish();
        source.sizes.push_back(one);
    }
    if (!source.sizes.empty() && section.has("gpus")) {
        section.error("gpus", "has no effect beside [[jobs.kind.size]]");
    }
    if (source.sizes.empty()) source.sizes.push_back({job.gpus, 1, {}});
    job.gpus_per_pod = 0;
    section.read("gpus_per_pod", job.gpus_per_pod, "GPUs of a job on each of its nodes",
                 {.bound = Bound::count, .otherwise = "all of a node"});
    source.mean = std::chrono::hours(1);
    section.read("work", source.mean, "Productive time of each, on average",
                 {.bound = Bound::positive});
    source.median = source.mean;
    section.read("work_median", source.median, "Half of them take less: a log-normal distribution",
                 {.bound = Bound::positive, .otherwise = "work: all are alike"});
    if (source.median > source.mean) {
        section.error("work_median",
                      "expected no more than work, the mean of a log-normal distribution");
        source.median = source.mean;
    }
    section.read("limit", job.limit, "Time limit of each run",
                 {.bound = Bound::positive, .otherwise = "the partition's"});
    section.read("limit_factor", source.limit_factor, "Time limit in proportion to the work",
                 {.bound = Bound::positive, .otherwise = "limit"});
    if (section.has("limit") && section.has("limit_factor")) {
        section.error("limit_factor", "has no effect beside limit");
    }
    read_published(section, source);
    section.read("switches", job.switches_max, "Leaves that it wants to be on at most (--switches)",
                 {.bound = Bound::positive, .otherwise = "any number"});
    job.switches_wait = spec_.slurm.switches_wait_max;
    section.read("switches_wait", job.switches_wait, "How long it waits for that",
                 {.bound = Bound::non_negative, .otherwise = "scheduler.switches_wait_max"});
}

// A stream of the catalogue says all of its jobs; how many come, a scenario may.
void FleetReader::read_published(Section& section, JobSource& source) {
    std::vector<std::string> names = Catalogue::names("job_stream");
    std::erase(names, "all");
    std::string name;
    section.name("stream", name, names, "a job stream in the catalogue",
                 "Sizes, work and rate of a published trace's jobs",
                 {.otherwise = "none: size, work and rate"});
    if (name.empty()) return;
    for (const char* key : {"gpus", "size", "work", "work_median"}) {
        if (section.has(key)) section.error(key, "has no effect beside stream");
    }
    if (!section.ok() || section.describing()) return;
    if (!section.has("rate")) {
        source.rate.per_second = catalogue_.number("job_stream", name, "jobs") /
                                 seconds(catalogue_.time("job_stream", name, "observation_time"));
        if (!section.has("count")) source.count = jobs_max;
    }
    const auto shape = shape_of(read_published_stream(catalogue_, name));
    if (shape) {
        follow(*shape, source);
    } else {
        section.error("stream", fmt::format("no jobs have the means and medians of {}", name),
                      "change job_stream." + name + " in [override] back");
    }
}

void FleetReader::read_model(Section& section, const JobSource& source, FleetJobKind& kind) {
    std::string model;
    section.name("model", model, Catalogue::names("model"), "a model in the catalogue",
                 "What is trained: a step takes as long as on the nodes that the job has got",
                 {.otherwise = "none: work goes on at the clock's pace"});
    const auto view = std::make_shared<Scenario>(s_);
    view->fleet.reset();
    view->job.nodes = std::max<std::int64_t>(1, source.sizes[0].gpus / s_.node.gpus);
    view->nodes.job_nodes = view->job.nodes;
    view->job.gpus_per_node = s_.node.gpus;
    if (!model.empty()) view->model = railyard::read_model(catalogue_, model);
    read_parallel(section, values_, catalogue_, true, *view);
    kind.steps = 0;
    section.read(
        "steps", kind.steps, "Steps of each job",
        {.bound = Bound::positive, .otherwise = "work, with all of the cluster's first nodes"});
    if (model.empty()) {
        for (const char* key : {"steps", "parallel"}) {
            if (section.has(key)) section.error(key, "has no effect without model");
        }
        return;
    }
    if (source.sizes.size() > 1 || source.sizes[0].gpus % s_.node.gpus != 0 ||
        source.like.gpus_per_pod != 0 || spec_.groups.size() > 1) {
        section.error("model",
                      "a job with a model has one size and whole nodes of the cluster's one kind");
    }
    if (!section.ok() || top_.describing()) return;
    view->optimizer_traffic = catalogue_.number("bytes_per_param", "", "optimizer_step_traffic");
    view->collective_constants = read_collective_constants(catalogue_, s_.node);
    kind.step = steps_by_placement(view);
    if (kind.steps > 0) return;
    std::vector<NodeIndex> nodes;
    for (std::int64_t n = 0; n < view->job.nodes; ++n) nodes.push_back(static_cast<NodeIndex>(n));
    kind.steps = std::max<std::int64_t>(1, source.mean / kind.step(nodes).duration());
}

// Jobs from a file are of the kind that jobs.trace_kind names.
void FleetReader::read_trace(Section& jobs) {
    std::string path;
    jobs.read("trace", path,
              "A file of jobs: CSV, sacct -P, or the Standard Workload Format; its "
              "folder is the scenario's",
              {.otherwise = "none"});
    TraceReading reading;
    jobs.read("time_unit", reading.time_unit, "Of the numbers in a CSV's times",
              {.bound = Bound::positive});
    jobs.read("skip_bad", reading.skip_bad, "Malformed lines are left out");
    const std::vector<std::string> kinds = names_of(spec_.kinds);
    std::string name;
    jobs.name("trace_kind", name, own_names(jobs, kinds), "a [[jobs.kind]]",
              "What its jobs are like",
              {.otherwise = "they save nothing and wait in the first partition"});
    if (path.empty()) {
        for (const char* key : {"time_unit", "skip_bad", "trace_kind"}) {
            if (jobs.has(key)) jobs.error(key, "has no effect without jobs.trace");
        }
        return;
    }
    FleetJob like;
    like.gpus_per_pod = 0;
    if (name.empty()) {
        like.kind = static_cast<std::uint32_t>(spec_.kinds.size());
        spec_.kinds.push_back({.name = "trace"});
    } else {
        like.kind = index_of(kinds, name);
        if (spec_.kinds[like.kind].step) {
            jobs.error("trace_kind", "a trace says how long its jobs take, and so does a model");
        }
    }
    const JobTrace trace = read_job_trace(path.starts_with('/') ? path : folder_ + path, reading);
    const std::vector<std::string> partitions = names_of(spec_.partitions);
    for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
        const StreamJob& job = trace.jobs[i];
        FleetJob out = like;
        out.submit = Instant(job.submit);
        out.gpus = job.gpus;
        out.work = job.duration;
        out.limit = job.limit;
        if (!trace.partition_names.empty()) {
            out.partition = index_of(partitions, trace.partition_names[trace.partitions[i]]);
        }
        if (!trace.user_names.empty()) {
            out.account = index_of(spec_.accounts, trace.user_names[trace.users[i]]);
        }
        fleet_->trace.push_back(out);
    }
    std::stable_sort(fleet_->trace.begin(), fleet_->trace.end(),
                     [](const FleetJob& a, const FleetJob& b) { return a.submit < b.submit; });
    if (fleet_->trace.empty()) return;
    const Instant first = fleet_->trace.front().submit;  // the campaign begins with it
    for (FleetJob& job : fleet_->trace) job.submit -= first - Instant{};
}

}  // namespace

const std::vector<std::string>& topology_aware_names() {
    static const std::vector<std::string> names = {"none", "tree", "block"};
    return names;
}

const std::vector<std::string>& preempt_mode_names() {
    static const std::vector<std::string> names = {"off", "cancel", "requeue", "suspend"};
    return names;
}

std::shared_ptr<const FleetScenario> fleet_with_failures(const FleetScenario& fleet,
                                                         const Scenario& scenario) {
    auto out = std::make_shared<FleetScenario>(fleet);
    static_cast<NodeFailures&>(out->spec) = scenario.nodes;
    return out;
}

void read_fleet(Section& top, ValueReader& values, Catalogue& catalogue, const std::string& folder,
                Scenario& scenario) {
    FleetReader(top, values, catalogue, folder, scenario).read();
}

}  // namespace railyard
