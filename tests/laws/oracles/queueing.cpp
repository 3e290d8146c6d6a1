#include "tests/laws/oracles/queueing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tests/laws/oracles/rare_waits.h"
#include "tests/laws/oracles/shared_store.h"

namespace railyard {

struct QueueJob {
    double wait_s;  // of a shared store's: over its time alone
    std::int32_t priority;
    bool refused;
};

namespace {

constexpr std::size_t warm_up = 10'000;   // jobs: a queue starts empty and takes its time to fill
constexpr std::size_t counted = 600'000;  // jobs after it
// With many servers the same time is more jobs.
constexpr std::int64_t many_servers = 64;
constexpr std::size_t counted_by_many = 2 * counted;
constexpr std::size_t batches = 20;     // long enough to know nothing of each other
constexpr std::int64_t seen_min = 200;  // jobs: fewer make no estimate by themselves

// Which class a point of the whole load falls into: 0 is the highest.
std::int64_t class_of(double point, const std::vector<double>& loads) {
    std::size_t out = 0;
    while (out + 1 < loads.size() && point >= loads[out]) point -= loads[out++];
    return static_cast<std::int64_t>(out);
}

std::vector<StreamJob> random_jobs(const TextbookQueue& queue, std::uint64_t seed,
                                   const std::string& name) {
    RandomStream arrivals(seed, 0, name + "/arrivals");
    RandomStream services(seed, 0, name + "/services");
    std::vector<StreamJob> out;
    Duration now{};
    const std::size_t jobs = warm_up + (queue.servers >= many_servers ? counted_by_many : counted);
    for (std::size_t i = 0; i < jobs; ++i) {
        StreamJob job;
        job.id = static_cast<std::int64_t>(i);
        job.submit = now += arrivals.interarrival(queue.arrivals());
        job.duration = from_seconds(queue.service->draw(services));
        job.priority = -class_of(arrivals.uniform() * queue.rho(), queue.loads);
        out.push_back(job);
    }
    return out;
}

std::vector<ServedJob> serve(const TextbookQueue& queue, const std::vector<StreamJob>& jobs,
                             std::vector<QueueJob>& out) {
    const StreamSchedule schedule =
        run_job_stream(jobs, {{"queue", queue.servers, 1}}, queue.rules());
    std::vector<ServedJob> served;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const JobRun& run = schedule.jobs[i];
        served.push_back({jobs[i].submit, run.start, run.end});
        out.push_back(
            {served.back().wait_s(), static_cast<std::int32_t>(jobs[i].priority), run.refused});
    }
    return served;
}

// A mean over some of the jobs, and how many of them were not 0.
struct Measure {
    std::optional<std::int64_t> priority = {};  // of these jobs only
    bool of_refused = false;                    // whether they were lost, not how long they waited
    std::optional<double> above = {};           // whether the wait is longer than this
    bool complement = false;                    // whether it is not
    bool stretch = false;                       // how much longer it took than alone

    double of(double wait_s, bool refused) const {
        if (of_refused) return refused ? 1 : 0;
        return above ? (wait_s > *above ? 1 : 0) : wait_s;
    }
};

Measure measure_of(const Fields& row) {
    // Class of priority, more than, at most.
    const std::vector<std::string> groups =
        row.groups("quantity",
                   "Wq \\(units of mean service\\)|P\\(wait>0\\)|blocking probability Erlang B|"
                   "E\\[T \\| size x\\]/x|Wq class ([12]) \\((?:high|low)\\)|P\\(Wq>([0-9.]+)\\)|"
                   "P\\(Wq<=([0-9.]+)\\)",
                   "Wq (units of mean service)");
    const std::string& quantity = row.text("quantity");
    Measure m;
    if (!groups[0].empty()) m.priority = 1 - std::stoll(groups[0]);
    m.of_refused = quantity.starts_with("blocking");
    m.stretch = quantity.starts_with("E[T");
    if (quantity == "P(wait>0)") m.above = 0;
    if (!groups[1].empty()) m.above = std::stod(groups[1]);
    if (!groups[2].empty()) m.above = std::stod(groups[2]);
    m.complement = !groups[2].empty();
    return m;
}

// "0.3", or of two classes "0.3+0.4".
std::vector<double> loads_of(const Fields& row) {
    std::vector<double> out;
    for (const std::string& load : row.groups("rho", "([0-9.]+)(?:[+]([0-9.]+))?", "0.3+0.4")) {
        if (!load.empty()) out.push_back(std::stod(load));
    }
    return out;
}

std::optional<TextbookQueue> queue_of(const Fields& row) {
    const std::string& system = row.text("system");
    TextbookQueue queue{row.integer("servers"), loads_of(row), Service::named(row.text("service")),
                        system == "M/M/c/c (loss)", system == "M/G/1-PS" || system == "M/M/1-PS"};
    const bool priority = system == "M/M/1 non-preemptive priority";
    const bool plain = system == "M/M/c" || system == "M/G/1" || system == "M/D/1";
    const bool loaded = !queue.loads.empty() && std::all_of(queue.loads.begin(), queue.loads.end(),
                                                            [](double load) { return load > 0; });
    const bool one_store = !queue.shared || queue.servers == 1;
    if (!(plain || priority || queue.loses || queue.shared) || !one_store || !queue.service ||
        queue.servers < 1 || !loaded || (queue.loads.size() > 1) != priority) {
        return std::nullopt;
    }
    return queue;
}

}  // namespace

QueueRuns::QueueRuns(std::uint64_t seed) : seed_(seed) {}
QueueRuns::~QueueRuns() = default;

std::optional<Summary> QueueRuns::simulate(const Fields& row) {
    const std::optional<TextbookQueue> queue = queue_of(row);
    if (!queue) return std::nullopt;
    const Measure measure = measure_of(row);
    if (queue->shared != measure.stretch) return std::nullopt;
    const std::string name = fmt::format("{} {} {} {}", row.text("system"), row.text("servers"),
                                         row.text("rho"), row.text("service"));
    if (name != queue_) {
        const std::vector<StreamJob> jobs = random_jobs(*queue, seed_, name);
        jobs_.clear();
        served_.clear();
        rare_.clear();
        if (queue->shared) {
            for (const double slowdown : slowdowns_on_a_store(jobs))
                jobs_.push_back({slowdown, 0, false});
        } else {
            served_ = serve(*queue, jobs, jobs_);
        }
        queue_ = name;
    }
    std::vector<double> means;
    std::int64_t seen = 0;
    const std::size_t batch = (jobs_.size() - warm_up) / batches;
    for (std::size_t begin = warm_up; begin < jobs_.size(); begin += batch) {
        double sum = 0;
        std::int64_t count = 0;
        for (std::size_t i = begin; i < begin + batch; ++i) {
            if (measure.priority && jobs_[i].priority != measure.priority) continue;
            const double value = measure.of(jobs_[i].wait_s, jobs_[i].refused);
            sum += value;
            seen += value > 0;
            ++count;
        }
        const double mean = sum / static_cast<double>(count);
        means.push_back(measure.complement ? 1 - mean : mean);
    }
    if (seen >= seen_min) return summarise(means);
    const bool of_waits = !measure.of_refused && !measure.priority && !measure.complement;
    if (!of_waits || served_.empty()) return std::nullopt;
    const double w_s = measure.above.value_or(0);
    const auto [rare, is_new] = rare_.try_emplace(w_s);
    if (is_new) rare->second = rare_means(*queue, w_s, served_, warm_up, batches, seed_, name);
    return measure.above ? rare->second.share : rare->second.wait;
}

}  // namespace railyard
