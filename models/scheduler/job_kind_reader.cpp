#include "models/scheduler/job_kind_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/scheduler/job_trace.h"
#include "models/scheduler/reader_names.h"
#include "models/scheduler/scheduler_reader.h"

namespace railyard {

namespace {

constexpr std::int64_t jobs_max = 100'000'000;  // of a kind

class JobKindReader {
  public:
    JobKindReader(Section& section, Catalogue& catalogue, std::int64_t gpus_per_node,
                  WorldSpec& spec)
        : section_(section), catalogue_(catalogue), gpus_per_node_(gpus_per_node), spec_(spec) {}

    JobKindKeys read();

  private:
    void read_stream(JobSource& source);
    void read_queue(WorldJob& job);
    void read_arrivals(JobSource& source);
    void read_sizes(JobSource& source);
    void read_work(JobSource& source);
    void read_as_of_one(JobSource& source);
    void read_published(JobSource& source);
    void read_requires(WorldJobKind& kind);
    bool limited(const JobSource& source) const;

    Section& section_;
    Catalogue& catalogue_;
    std::int64_t gpus_per_node_;
    WorldSpec& spec_;
};

JobKindKeys JobKindReader::read() {
    JobKindKeys keys;
    WorldJobKind& kind = keys.kind;
    section_.read("name", kind.name, "What they are called", {.required = true});
    refuse_same_name(section_, kind.name, names_of(spec_.kinds), "kind of jobs");
    read_stream(keys.source);
    section_.read("checkpoint_interval", kind.checkpoint_interval,
                  "Work from one checkpoint to the next",
                  {Bound::positive, "nothing is saved: an end loses all"});
    section_.read("checkpoint_stall", kind.checkpoint_stall, "How long each stops the job",
                  {Bound::non_negative});
    section_.read(
        "checkpoint_size", keys.checkpoint_size,
        "Bytes of each save, written to and read back from [storage], which all jobs share",
        {Bound::positive, "saves and restores take checkpoint_stall and restore"});
    section_.read("restart", kind.restart,
                  "Each start: launch, imports, communicators. A table [jobs.kind.recovery], an "
                  "empty one, too, says it instead, by the catalogue where it is silent",
                  {Bound::non_negative});
    section_.read("restore", kind.restore, "Each start with a saved state: reading it back",
                  {Bound::non_negative});
    section_.read(
        "own_failure_rate_per_gpu", kind.own_failure_rate_per_gpu,
        "Failures of a job per running time of each of its GPUs that no node is to blame for",
        {Bound::non_negative});
    section_.read("requeue", kind.requeue,
                  "It waits again when it fails or its nodes do (JobRequeue)");
    section_.read("resubmit", kind.resubmit, "It is submitted again when its time limit ends it");
    if (kind.resubmit && !limited(keys.source)) {
        section_.warning("resubmit", "has no effect: no time limit ends these jobs",
                         "limit, limit_factor, or the partition's limit_max or limit_default");
    }
    section_.read("restarts_max", kind.restarts_max, "After so many it is given up",
                  {Bound::non_negative});
    read_requires(kind);
    return keys;
}

// Jobs of a trace bring limits along.
bool JobKindReader::limited(const JobSource& source) const {
    const PartitionSpec& partition = spec_.partitions[source.like.partition];
    const Duration longest =
        std::max({source.like.limit, partition.limit_max, partition.limit_default});
    return source.says_none || source.count == 0 || source.limit_factor > 0 || longest > Duration{};
}

void JobKindReader::read_queue(WorldJob& job) {
    std::string partition = spec_.partitions[0].name;
    std::string qos = spec_.slurm.qos[0].name;
    std::string account = spec_.accounts[0];
    const auto first = [](const char* what) { return KeyRules{.otherwise = what}; };
    section_.name("partition", partition, own_names(section_, names_of(spec_.partitions)),
                  "a [[partition]]", "Where they wait", first("the first"));
    section_.no_effect(
        unless_under({"slurm", "kubernetes", "volcano", "kueue", "priority"}, spec_));
    section_.name("qos", qos, own_names(section_, names_of(spec_.slurm.qos)), "a [[scheduler.qos]]",
                  "Their QOS", first("the first"));
    section_.no_effect(unless_under({"slurm"}, spec_));
    section_.name("account", account, own_names(section_, spec_.accounts),
                  "a [[scheduler.account]]", "Who pays", first("the first"));
    section_.no_effect("");
    warn_without_weight(section_, {"account"}, spec_, spec_.slurm.priority.fair_share,
                        "fair_share");
    job.partition = index_of(names_of(spec_.partitions), partition);
    job.qos = index_of(names_of(spec_.slurm.qos), qos);
    job.account = index_of(spec_.accounts, account);
}

void JobKindReader::read_arrivals(JobSource& source) {
    Duration at{};
    section_.read("at", at, "When the first is submitted; of a stream, when it begins",
                  {Bound::non_negative});
    source.like.submit = Instant(at);
    section_.read("rate", source.rate, "How often one is submitted, at random",
                  {Bound::positive, "all at once"});
    source.count = source.rate.per_second > 0 ? jobs_max : 1;
    section_.read("count", source.count, "How many at most",
                  {Bound::non_negative, "1; of a stream any number"});
    if (source.count > jobs_max) {
        section_.error("count",
                       fmt::format("expected at most {}, found {}", jobs_max, source.count));
        source.count = 1;
    }
}

void JobKindReader::read_sizes(JobSource& source) {
    section_.read("gpus", source.like.gpus, "GPUs of each", {Bound::count});
    for (Section& size : section_.sections("size", "One of several sizes, instead of gpus")) {
        JobSource::Size one;
        size.read("gpus", one.gpus, "GPUs", {.bound = Bound::count, .required = true});
        size.read("share", one.share, "How many jobs have it, in proportion to the others",
                  {.bound = Bound::positive, .required = true});
        size.finish();
        source.sizes.push_back(one);
    }
    if (!source.sizes.empty() && section_.has("gpus")) {
        section_.error("gpus", "has no effect beside [[jobs.kind.size]]");
    }
    if (source.sizes.empty()) source.sizes.push_back({source.like.gpus, 1, {}});
}

void JobKindReader::read_work(JobSource& source) {
    source.mean = std::chrono::hours(1);
    section_.read("work", source.mean,
                  "Productive time of each, on average; without a model, at full clocks: a power "
                  "cap makes it longer",
                  {Bound::positive});
    source.median = source.mean;
    section_.read("work_median", source.median, "Half of them take less: a log-normal distribution",
                  {Bound::positive, "work: all are alike"});
    if (source.median > source.mean) {
        section_.error("work_median",
                       "expected no more than work, the mean of a log-normal distribution");
        source.median = source.mean;
    }
}

void JobKindReader::read_stream(JobSource& source) {
    WorldJob& job = source.like;
    read_queue(job);
    read_arrivals(source);
    read_sizes(source);
    job.gpus_per_pod = 0;
    section_.read("gpus_per_pod", job.gpus_per_pod, "GPUs of a job on each of its nodes",
                  {Bound::count, "all of a node"});
    const std::int64_t most =
        std::ranges::max(spec_.groups, {}, &NodeGroup::gpus_per_node).gpus_per_node;
    if (job.gpus_per_pod > most) {
        section_.error("gpus_per_pod", fmt::format("no node has more than {} GPUs, found {}", most,
                                                   job.gpus_per_pod));
    }
    read_work(source);
    section_.read("limit", job.limit, "Time limit of each run",
                  {Bound::positive, "the partition's"});
    section_.read("limit_factor", source.limit_factor, "Time limit in proportion to the work",
                  {Bound::positive, "limit"});
    read_as_of_one(source);
    if (section_.has("limit") && section_.has("limit_factor")) {
        section_.error("limit_factor", "has no effect beside limit");
    }
    read_published(source);
    section_.no_effect(unless_under({"slurm"}, spec_));
    std::int64_t switches = job.switches_max;
    section_.read("switches", switches, "Leaves that it wants to be on at most (--switches)",
                  {Bound::positive, "any number"});
    constexpr std::int64_t any_number = std::numeric_limits<std::int32_t>::max();
    job.switches_max = static_cast<std::int32_t>(std::min(switches, any_number));
    job.switches_wait = spec_.slurm.switches_wait_max;
    section_.read("switches_wait", job.switches_wait, "How long it waits for that",
                  {Bound::non_negative, "scheduler.switches_wait_max"});
    section_.no_effect("");
    constexpr const char* own[] = {"at",    "rate", "count",       "stream", "gpus", "size",
                                   "nodes", "work", "work_median", "length", "steps"};
    source.says_none =
        std::ranges::none_of(own, [this](const char* key) { return section_.has(key); });
    if (source.count > 0) return;
    warn_of_keys(section_,
                 {"at", "rate", "stream", "gpus", "size", "nodes", "work", "work_median", "length"},
                 "has no effect: count = 0, and jobs of a trace bring their own");
}

// What a [job] says of its size and its length.
void JobKindReader::read_as_of_one(JobSource& source) {
    std::optional<std::int64_t> nodes;
    std::optional<Duration> length;
    section_.read("nodes", nodes, "Whole nodes of each, as of a [job]", {Bound::count, "gpus"});
    section_.read("length", length,
                  "Training time of each, as of a [job]: under a power cap the time that its "
                  "slower steps take",
                  {Bound::positive, "work"});
    if (section_.has("nodes")) {
        refuse_keys(section_, {"gpus", "size", "gpus_per_pod", "stream"},
                    "has no effect beside nodes");
    }
    if (section_.has("length")) {
        refuse_keys(section_, {"work", "work_median", "stream", "steps"},
                    "has no effect beside length");
    }
    if (nodes && spec_.groups.size() > 1) {
        section_.error("nodes", "nodes of several kinds have each their own number of GPUs",
                       "give gpus");
    }
    if (nodes) source.sizes = {{*nodes * gpus_per_node_, 1, {}}};
    if (length) source.mean = source.median = *length;
    source.like.timed = length.has_value();
}

// A stream of the catalogue says all of its jobs; how many come, a scenario may.
void JobKindReader::read_published(JobSource& source) {
    std::vector<std::string> names = Catalogue::names("job_stream");
    std::erase(names, "all");
    std::string name;
    section_.name("stream", name, names, "a job stream in the catalogue",
                  "Sizes, work and rate of a published trace's jobs",
                  {.otherwise = "none: size, work and rate"});
    if (name.empty()) return;
    refuse_keys(section_, {"gpus", "size", "work", "work_median"}, "has no effect beside stream");
    if (!section_.ok() || section_.describing()) return;
    if (!section_.has("rate")) {
        source.rate.per_second = catalogue_.number("job_stream", name, "jobs") /
                                 seconds(catalogue_.time("job_stream", name, "observation_time"));
        if (!section_.has("count")) source.count = jobs_max;
    }
    const auto shape = shape_of(read_published_stream(catalogue_, name));
    if (shape) {
        follow(*shape, source);
    } else {
        section_.error("stream", fmt::format("no jobs have the means and medians of {}", name),
                       "change job_stream." + name + " in [override] back");
    }
}

void JobKindReader::read_requires(WorldJobKind& kind) {
    Section wanted = section_.section("requires");
    GpuRequest request;
    wanted.name("gpu", request.kind, catalogue_.all_names("gpu"), "a GPU in the catalogue",
                "Which GPUs", {.otherwise = "any"});
    read_slice_request(wanted, section_, spec_, request);
    wanted.read("gpu_memory", request.memory, "Memory of each GPU at least",
                {Bound::positive, "any"});
    wanted.read("nvlink_domain", request.nvlink_domain,
                "GPUs that reach each other over NVLink at least",
                {Bound::positive, "any, or none"});
    std::optional<double> capability;
    wanted.read("compute_capability", capability, "CUDA's, at least", {Bound::positive, "any"});
    wanted.finish();
    if (capability) request.compute_capability10 = std::llround(10 * std::min(*capability, 1000.0));
    const auto known = std::ranges::find(spec_.requests, request);
    kind.request = static_cast<std::uint32_t>(known - spec_.requests.begin());
    if (known == spec_.requests.end()) spec_.requests.push_back(request);
}

// What jobs from a file have in common: they are of the kind that jobs.trace_kind names.
JobSource source_of_trace(Section& jobs, const std::string& name, std::span<JobSource> sources,
                          const std::set<std::string>& of_one_size, WorldSpec& spec) {
    if (name.empty()) {
        JobSource source;
        source.like.gpus_per_pod = 0;
        source.like.kind = static_cast<std::uint32_t>(spec.kinds.size());
        spec.kinds.push_back({.name = "trace"});
        return source;
    }
    JobSource& source = sources[index_of(names_of(spec.kinds), name)];
    if (source.says_none) source.count = 0;
    const WorldJobKind& kind = spec.kinds[source.like.kind];
    if (kind.step) {
        jobs.error("trace_kind", "a trace says how long its jobs take, and so does a model");
    }
    if (of_one_size.contains(name)) {
        jobs.error("trace_kind",
                   "a trace says how large its jobs are; checkpoint and recovery are worked out "
                   "for the size of the kind",
                   "give checkpoint_interval, checkpoint_stall, restart and restore");
    }
    if (!spec.requests[kind.request].slice.empty()) {
        jobs.error("trace_kind",
                   "a trace says how many GPUs its jobs have; a slice is less than one");
    }
    return source;
}

// The jobs of a trace as the scenario knows them.
class TraceJobs {
  public:
    TraceJobs(Section& jobs, const std::string& path, const JobTrace& trace)
        : jobs_(jobs), path_(path), trace_(trace) {}

    std::vector<WorldJob> read(const JobSource& source, const WorldSpec& spec);

  private:
    using Indices = std::vector<std::uint32_t>;
    void leave_out_no_duration();
    bool use_priorities(const WorldSpec& spec);
    Indices find(const Indices& name_of, const std::vector<std::string>& names,
                 const std::vector<std::string>& known, std::uint32_t otherwise, const char* what);

    Section& jobs_;
    const std::string& path_;
    const JobTrace& trace_;
};

// By job, the index of its name among those of the scenario; `otherwise` for another name, or none.
TraceJobs::Indices TraceJobs::find(const Indices& name_of, const std::vector<std::string>& names,
                                   const std::vector<std::string>& known, std::uint32_t otherwise,
                                   const char* what) {
    Indices out(name_of.size(), otherwise);
    if (names.empty() || known == std::vector<std::string>{"all"}) return out;  // none is given
    std::optional<std::size_t> first;
    std::int64_t count = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::string& name = names[name_of[i]];
        const auto found = std::ranges::find(known, name);
        if (found != known.end()) {
            out[i] = static_cast<std::uint32_t>(found - known.begin());
        } else if (!name.empty()) {
            if (!first) first = i;
            ++count;
        }
    }
    if (!first) return out;
    const std::string& name = names[name_of[*first]];
    jobs_.warning(
        "trace",
        fmt::format(
            "{} of {} jobs have a {}, the first '{}' in {}:{}: they are taken for ones of '{}'",
            count, out.size(), what, name, path_, trace_.lines[*first], known[otherwise]),
        suggest(name, known));
    return out;
}

// A job that was cancelled as it began has no duration, say.
void TraceJobs::leave_out_no_duration() {
    constexpr auto none = [](const StreamJob& job) { return job.duration == Duration{}; };
    const auto first = std::ranges::find_if(trace_.jobs, none);
    if (first == trace_.jobs.end()) return;
    const auto count = std::ranges::count_if(trace_.jobs, none);
    const auto index = static_cast<std::size_t>(first - trace_.jobs.begin());
    jobs_.warning("trace",
                  fmt::format("jobs of no duration are left out: {} of {}, the first in {}:{}",
                              count, trace_.jobs.size(), path_, trace_.lines[index]));
}

// Kubernetes' pods have a priority each. Slurm works out its own, which is what sacct prints; the other
// queues have an order of their own.
bool TraceJobs::use_priorities(const WorldSpec& spec) {
    constexpr auto none = [](const StreamJob& job) { return job.priority == 0; };
    if (std::ranges::all_of(trace_.jobs, none)) return false;
    const bool printed = trace_.format == TraceFormat::sacct;
    const std::string elsewhere =
        unless_under({"kubernetes", "volcano", "kueue", "priority"}, spec);
    const bool used = !printed && elsewhere.empty();
    if (!used) {
        jobs_.warning("trace", fmt::format("its column of priorities has no effect{}",
                                           printed ? ": it is what Slurm had worked out"
                                           : spec.scheduler == "slurm"
                                               ? ": Slurm works out each job's priority"
                                               : " " + elsewhere));
    }
    return used;
}

std::vector<WorldJob> TraceJobs::read(const JobSource& source, const WorldSpec& spec) {
    std::vector<WorldJob> out;
    leave_out_no_duration();
    const WorldJob& like = source.like;
    const Indices partitions =
        find(trace_.partitions, trace_.partition_names, names_of(spec.partitions), like.partition,
             "partition that is no [[partition]]");
    const Indices accounts = find(trace_.users, trace_.user_names, spec.accounts, like.account,
                                  "user that is no [[scheduler.account]]");
    const bool priorities = use_priorities(spec);
    for (std::size_t i = 0; i < trace_.jobs.size(); ++i) {
        const StreamJob& job = trace_.jobs[i];
        if (job.duration == Duration{}) continue;
        WorldJob& one = out.emplace_back(like);
        one.submit = Instant(job.submit);
        one.gpus = job.gpus;
        one.work = job.duration;
        one.timed = false;
        if (source.limit_factor > 0) {
            one.limit = from_seconds(seconds(job.duration) * source.limit_factor);
        }
        if (job.limit > Duration{}) one.limit = job.limit;
        one.trace_row = static_cast<std::uint32_t>(i + 1);
        one.partition = partitions[i];
        one.account = accounts[i];
        if (priorities) one.priority = job.priority;
    }
    std::ranges::stable_sort(
        out, [](const WorldJob& a, const WorldJob& b) { return a.submit < b.submit; });
    if (out.empty()) return out;
    const Instant first = out.front().submit;  // the campaign begins with it
    for (WorldJob& job : out) job.submit -= first - Instant{};
    return out;
}

}  // namespace

JobKindKeys read_job_kind(Section& section, Catalogue& catalogue, std::int64_t gpus_per_node,
                          WorldSpec& spec) {
    return JobKindReader(section, catalogue, gpus_per_node, spec).read();
}

std::vector<WorldJob> read_trace_jobs(Section& jobs, std::span<JobSource> sources,
                                      const std::set<std::string>& of_one_size, WorldSpec& spec) {
    const std::string path = jobs.file("trace",
                                       "A file of jobs: CSV, sacct -P, or the Standard Workload "
                                       "Format; its folder is the scenario's");
    TraceReading reading;
    jobs.read("time_unit", reading.time_unit, "Unit of the times in a CSV", {Bound::positive});
    jobs.read("skip_bad", reading.skip_bad, "Malformed lines are left out");
    std::string name;
    jobs.name("trace_kind", name, own_names(jobs, names_of(spec.kinds)), "a [[jobs.kind]]",
              "What its jobs are like in all that the file does not say: how they save, their QOS, "
              "limit, queue",
              {.otherwise = "they save nothing and wait in the first partition"});
    if (path.empty()) {
        refuse_keys(jobs, {"time_unit", "skip_bad", "trace_kind"},
                    "has no effect without jobs.trace");
        return {};
    }
    const JobSource source = source_of_trace(jobs, name, sources, of_one_size, spec);
    const JobTrace trace = read_job_trace(path, reading);
    for (const std::string& text : trace.warnings()) jobs.warning("trace", text);
    if (trace.format != TraceFormat::csv) {
        warn_of_keys(jobs, {"time_unit"}, "has no effect: the trace is no CSV");
    }
    spec.trace_ids = trace.ids;
    return TraceJobs(jobs, path, trace).read(source, spec);
}

}  // namespace railyard
