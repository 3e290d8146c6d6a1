#include "tools/queueing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "models/scheduler/scheduler.h"
#include "sim/rng.h"
#include "tools/shared_store.h"

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
constexpr std::size_t batches = 20;      // long enough to know nothing of each other
constexpr std::int64_t seen_min = 1000;  // jobs: fewer make no estimate

// A distribution of service times with mean 1, by the table's words for it.
class Service {
  public:
    static std::optional<Service> named(const std::string& text);
    double draw(RandomStream& random) const;

  private:
    enum class Kind : std::uint8_t {
        deterministic,
        exponential,
        erlang,
        hyperexponential,
        lognormal
    };
    Service(Kind kind, double parameter) : kind_(kind), parameter_(parameter) {}

    Kind kind_;
    double parameter_;  // an Erlang's phases, else the squared coefficient of variation
};

std::optional<Service> Service::named(const std::string& text) {
    struct Word {
        std::string_view begin;
        Kind kind;
        double parameter_min;
    };
    constexpr Word words[] = {{"deterministic 1", Kind::deterministic, 0},
                              {"exp mean 1", Kind::exponential, 0},
                              {"any", Kind::exponential, 0},
                              {"Erlang-", Kind::erlang, 1},
                              {"hyperexp cs2=", Kind::hyperexponential, 1},
                              {"lognormal cs2=", Kind::lognormal, 0}};
    for (const Word& word : words) {
        if (!text.starts_with(word.begin)) continue;
        const double parameter = std::strtod(text.c_str() + word.begin.size(), nullptr);
        if (!(parameter >= word.parameter_min)) return std::nullopt;
        return Service(word.kind, parameter);
    }
    return std::nullopt;
}

double Service::draw(RandomStream& random) const {
    switch (kind_) {
        case Kind::deterministic:
            return 1;
        case Kind::exponential:
            break;
        case Kind::erlang: {
            double sum = 0;
            for (int phase = 0; phase < parameter_; ++phase) sum += random.exponential();
            return sum / parameter_;
        }
        case Kind::hyperexponential: {
            // Two exponentials that have the same share of the work.
            const double p = (1 + std::sqrt((parameter_ - 1) / (parameter_ + 1))) / 2;
            const bool often = random.chance(p);
            return random.exponential() / (2 * (often ? p : 1 - p));
        }
        case Kind::lognormal:
            return lognormal(1, std::sqrt(portable_log(1 + parameter_)), random.normal());
    }
    return random.exponential();
}

struct Queue {
    std::int64_t servers = 1;
    std::vector<double> loads;  // of each class, the first the highest; their sum is rho
    std::optional<Service> service = {};
    bool loses = false;   // who finds no server free is lost
    bool shared = false;  // all at once have equal shares of the one server
};

// Which class a point of the whole load falls into: 0 is the highest.
std::int64_t class_of(double point, const std::vector<double>& loads) {
    std::size_t out = 0;
    while (out + 1 < loads.size() && point >= loads[out]) point -= loads[out++];
    return static_cast<std::int64_t>(out);
}

std::vector<StreamJob> random_jobs(const Queue& queue, const std::string& name) {
    RandomStream arrivals(1, 0, name + "/arrivals");
    RandomStream services(1, 0, name + "/services");
    double rho = 0;
    for (const double load : queue.loads) rho += load;
    const Rate rate{rho * static_cast<double>(queue.servers)};
    std::vector<StreamJob> out;
    Duration now{};
    const std::size_t jobs = warm_up + (queue.servers >= many_servers ? counted_by_many : counted);
    for (std::size_t i = 0; i < jobs; ++i) {
        StreamJob job;
        job.id = static_cast<std::int64_t>(i);
        job.submit = now += arrivals.interarrival(rate);
        job.duration = from_seconds(queue.service->draw(services));
        job.priority = -class_of(arrivals.uniform() * rho, queue.loads);
        out.push_back(job);
    }
    return out;
}

StreamSchedule run_queue(const Queue& queue, const std::vector<StreamJob>& jobs) {
    StreamRules rules;
    rules.policy = queue.loads.size() > 1 ? "priority" : "fifo";
    rules.submitted_max = queue.loses ? queue.servers : 0;
    return run_job_stream(jobs, {{"queue", queue.servers, 1}}, rules);
}

std::vector<QueueJob> run_jobs(const Queue& queue, const std::vector<StreamJob>& jobs) {
    std::vector<QueueJob> out;
    if (queue.shared) {
        for (const double slowdown : slowdowns_on_a_store(jobs))
            out.push_back({slowdown, 0, false});
        return out;
    }
    const StreamSchedule schedule = run_queue(queue, jobs);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const JobRun& run = schedule.jobs[i];
        out.push_back({seconds(run.start - jobs[i].submit),
                       static_cast<std::int32_t>(jobs[i].priority), run.refused});
    }
    return out;
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

std::optional<Measure> measure_of(const std::string& quantity) {
    Measure m;
    constexpr std::string_view of_class = "Wq class ";
    if (quantity.starts_with(of_class)) {
        m.priority = 1 - std::atoll(quantity.c_str() + of_class.size());
    } else if (quantity.starts_with("blocking probability")) {
        m.of_refused = true;
    } else if (quantity.starts_with("E[T | size x]/x")) {
        m.stretch = true;
    } else if (quantity == "P(wait>0)") {
        m.above = 0;
    } else if (quantity.starts_with("P(Wq>")) {
        m.above = std::strtod(quantity.c_str() + 5, nullptr);
    } else if (quantity.starts_with("P(Wq<=")) {
        m.above = std::strtod(quantity.c_str() + 6, nullptr);
        m.complement = true;
    } else if (!quantity.starts_with("Wq (")) {
        return std::nullopt;
    }
    return m;
}

std::vector<double> loads_of(const std::string& rho) {
    std::vector<double> out;
    for (std::size_t from = 0; from < rho.size();) {
        const std::size_t plus = std::min(rho.find('+', from), rho.size());
        out.push_back(std::strtod(rho.c_str() + from, nullptr));
        from = plus + 1;
    }
    return out;
}

std::optional<Queue> queue_of(const Fields& row) {
    const std::string& system = row.text("system");
    Queue queue{row.integer("servers"), loads_of(row.text("rho")),
                Service::named(row.text("service")), system.find("loss") != std::string::npos,
                system == "M/G/1-PS" || system == "M/M/1-PS"};
    const bool priority = system.find("non-preemptive priority") != std::string::npos;
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

QueueRuns::QueueRuns() = default;
QueueRuns::~QueueRuns() = default;

std::optional<Summary> QueueRuns::simulate(const Fields& row) {
    const std::optional<Queue> queue = queue_of(row);
    const std::optional<Measure> measure = measure_of(row.text("quantity"));
    if (!queue || !measure || queue->shared != measure->stretch) return std::nullopt;
    const std::string name = fmt::format("{} {} {} {}", row.text("system"), row.text("servers"),
                                         row.text("rho"), row.text("service"));
    if (name != queue_) {
        const std::vector<QueueJob> run = run_jobs(*queue, random_jobs(*queue, name));
        jobs_.assign(run.begin() + warm_up, run.end());
        queue_ = name;
    }
    std::vector<double> means;
    std::int64_t seen = 0;
    const std::size_t batch = jobs_.size() / batches;
    for (std::size_t begin = 0; begin < jobs_.size(); begin += batch) {
        double sum = 0;
        std::int64_t count = 0;
        for (std::size_t i = begin; i < begin + batch; ++i) {
            if (measure->priority && jobs_[i].priority != *measure->priority) continue;
            const double value = measure->of(jobs_[i].wait_s, jobs_[i].refused);
            sum += value;
            seen += value > 0;
            ++count;
        }
        const double mean = sum / static_cast<double>(count);
        means.push_back(measure->complement ? 1 - mean : mean);
    }
    if (seen < seen_min) return std::nullopt;
    return summarise(means);
}

}  // namespace railyard
