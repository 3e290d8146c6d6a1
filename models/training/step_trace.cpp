#include "models/training/step_trace.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <set>
#include <utility>

#include "sim/check.h"

namespace railyard {

namespace {

std::vector<std::uint32_t> counts_before(const StepTrace& trace) {
    std::vector<std::uint32_t> before(trace.tasks.size());
    for (const TraceTask& task : trace.tasks) {
        for (const std::uint32_t next : task.after) ++before[next];
    }
    return before;
}

double kernel_seconds(const Gpu& gpu, const TraceTask& kernel) {
    return std::max(kernel.flops / gpu.sustained_flops(), memory_seconds(gpu, kernel.bytes));
}

Duration kernel_time(const StepTrace& trace, const Gpu& gpu, const TraceTask& kernel) {
    const bool work_known = kernel.flops + kernel.bytes > 0;
    if (kernel.length == Duration{}) return from_seconds(kernel_seconds(gpu, kernel));
    const Gpu& sound = trace.measured_on;
    const double slower = work_known ? kernel_seconds(gpu, kernel) / kernel_seconds(sound, kernel)
                                     : sound.sustained_flops() / gpu.sustained_flops();
    return slower == 1 ? kernel.length : from_seconds(seconds(kernel.length) * slower);
}

double message_seconds(const TraceMessage& m, Communicators& groups) {
    if (m.ranks == 1 || m.bytes == 0) return 0;
    return seconds(m.collective, groups.of(m.collective, m.stride, m.ranks), m.bytes);
}

// What each task takes, by its place.
std::vector<Duration> lengths_of(const StepTrace& trace, Communicators& groups) {
    std::map<TraceMessage, Duration> messages;
    std::vector<Duration> out;
    out.reserve(trace.tasks.size());
    for (const TraceTask& task : trace.tasks) {
        Duration length{};
        if (task.kind == TraceTask::Kind::host) length = task.length;
        if (task.kind == TraceTask::Kind::kernel) {
            length = kernel_time(trace, groups.node().gpu, task);
        }
        if (task.kind == TraceTask::Kind::message) {
            const auto [known, is_new] = messages.try_emplace(task.message);
            if (is_new) {
                const double s = message_seconds(task.message, groups);
                known->second = std::isnan(s) ? step_part_max : from_seconds(s);
            }
            length = known->second;
        }
        out.push_back(std::min(length, step_part_max));
    }
    return out;
}

// What a rank does at an instant, and has done.
struct RankClock {
    int host = 0;  // tasks under way
    int kernels = 0;
    int messages = 0;
    Duration since{};
    Duration compute{};
    Duration communication{};

    void advance(Duration now) {
        if (kernels > 0 || (host > 0 && messages == 0)) {
            compute += now - since;
        } else if (messages > 0) {
            communication += now - since;
        }
        since = now;
    }
    int& under_way(TraceTask::Kind kind) {
        return kind == TraceTask::Kind::kernel ? kernels
               : kind == TraceTask::Kind::host ? host
                                               : messages;
    }
};

class Schedule {
  public:
    Schedule(const StepTrace& trace, std::vector<Duration> lengths)
        : trace_(trace),
          lengths_(std::move(lengths)),
          before_(counts_before(trace)),
          lanes_(trace.lanes),
          ranks_(trace.ranks) {}

    StepTime run();

  private:
    using Waiting = std::pair<Duration, std::uint32_t>;  // since when, and which task
    struct Lane {
        bool busy = false;
        std::set<Waiting> waiting;
    };

    void ready(std::uint32_t task);
    void free_lane(std::uint32_t lane);
    bool begin(Waiting waiting);
    void count(const TraceTask& task, int change);
    void end(std::uint32_t task);
    StepTime split() const;

    const StepTrace& trace_;
    std::vector<Duration> lengths_;
    std::vector<std::uint32_t> before_;
    std::vector<Lane> lanes_;
    std::vector<RankClock> ranks_;
    std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> ends_;
    std::set<std::uint32_t> freed_;
    Duration now_{};
    std::size_t done_ = 0;
};

// What takes no time ends at once. The stack is explicit: chains are long.
void Schedule::ready(std::uint32_t first) {
    std::vector<std::uint32_t> at_once = {first};
    while (!at_once.empty()) {
        const std::uint32_t i = at_once.back();
        at_once.pop_back();
        const TraceTask& task = trace_.tasks[i];
        if (lengths_[i] > Duration{}) {
            for (const std::uint32_t lane : task.lanes) {
                lanes_[lane].waiting.emplace(now_, i);
                freed_.insert(lane);
            }
            continue;
        }
        ++done_;
        for (const std::uint32_t next : task.after) {
            if (--before_[next] == 0) at_once.push_back(next);
        }
    }
}

bool Schedule::begin(Waiting waiting) {
    const TraceTask& task = trace_.tasks[waiting.second];
    if (std::ranges::any_of(task.lanes, [&](std::uint32_t l) { return lanes_[l].busy; })) {
        return false;
    }
    for (const std::uint32_t lane : task.lanes) {
        lanes_[lane].busy = true;
        lanes_[lane].waiting.erase(waiting);
    }
    count(task, 1);
    ends_.emplace(now_ + lengths_[waiting.second], waiting.second);
    return true;
}

void Schedule::free_lane(std::uint32_t lane) {
    if (lanes_[lane].busy) return;
    for (const Waiting& waiting : lanes_[lane].waiting) {
        if (begin(waiting)) return;
    }
}

void Schedule::count(const TraceTask& task, int change) {
    for (const std::uint32_t rank : task.ranks) {
        ranks_[rank].advance(now_);
        ranks_[rank].under_way(task.kind) += change;
    }
}

void Schedule::end(std::uint32_t i) {
    const TraceTask& task = trace_.tasks[i];
    count(task, -1);
    for (const std::uint32_t lane : task.lanes) {
        lanes_[lane].busy = false;
        freed_.insert(lane);
    }
    ++done_;
    for (const std::uint32_t next : task.after) {
        if (--before_[next] == 0) ready(next);
    }
}

StepTime Schedule::run() {
    std::vector<std::uint32_t> first;
    for (std::uint32_t i = 0; i < trace_.tasks.size(); ++i) {
        if (before_[i] == 0) first.push_back(i);
    }
    for (const std::uint32_t i : first) ready(i);
    while (true) {
        for (const std::uint32_t lane : std::exchange(freed_, {})) free_lane(lane);
        if (ends_.empty()) break;
        now_ = ends_.top().first;
        if (now_ > step_part_max) break;  // cut, as a modelled step is
        while (!ends_.empty() && ends_.top().first == now_) {
            const std::uint32_t i = ends_.top().second;
            ends_.pop();
            end(i);
        }
    }
    RY_CHECK(done_ == trace_.tasks.size() || now_ > step_part_max);
    now_ = std::min(now_, step_part_max);
    return split();
}

// Means over ranks, in whole nanoseconds; the parts sum to the step.
StepTime Schedule::split() const {
    std::int64_t compute = 0;
    std::int64_t communication = 0;
    for (const RankClock& rank : ranks_) {
        compute += rank.compute.count();
        communication += rank.communication.count();
    }
    const auto ranks = static_cast<std::int64_t>(ranks_.size());
    StepTime step;
    step.compute = Duration(compute / ranks);
    if (compute + communication == now_.count() * ranks) {  // nobody waits
        step.exposed_communication = now_ - step.compute;
        return step;
    }
    step.exposed_communication = Duration(communication / ranks);
    step.bubble = now_ - step.compute - step.exposed_communication;
    return step;
}

}  // namespace

std::size_t StepTrace::in_a_circle() const {
    std::vector<std::uint32_t> before = counts_before(*this);
    std::vector<std::uint32_t> free;
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
        if (before[i] == 0) free.push_back(i);
    }
    while (!free.empty()) {
        const std::uint32_t i = free.back();
        free.pop_back();
        for (const std::uint32_t next : tasks[i].after) {
            if (--before[next] == 0) free.push_back(next);
        }
    }
    // Whatever is left waits for something that is left: back along these lies the circle.
    std::vector<std::size_t> waits_for(tasks.size(), tasks.size());
    std::size_t last = tasks.size();
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (before[i] == 0) continue;
        last = i;
        for (const std::uint32_t next : tasks[i].after) waits_for[next] = i;
    }
    for (std::size_t i = 0; i < tasks.size() && last < tasks.size(); ++i) last = waits_for[last];
    return last;
}

StepTime trace_step(const StepTrace& trace, Communicators& groups) {
    return Schedule(trace, lengths_of(trace, groups)).run();
}

double trace_message_seconds(const StepTrace& trace, Communicators& groups) {
    std::map<TraceMessage, double> known;
    double sum = 0;
    for (const TraceTask& task : trace.tasks) {
        if (task.kind != TraceTask::Kind::message) continue;
        const auto [each, is_new] = known.try_emplace(task.message);
        if (is_new) each->second = message_seconds(task.message, groups);
        sum += each->second * real(task.ranks.size());
    }
    return sum / real(trace.ranks);
}

}  // namespace railyard
