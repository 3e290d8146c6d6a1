#include "tests/laws/oracles/rare_waits.h"

#include <algorithm>
#include <numeric>

#include "sim/cancel.h"
#include "sim/check.h"

namespace railyard {

namespace {

// Above each level, for each batch: more where there are many levels, whose spreads add up.
constexpr std::size_t stays_min = 400;
constexpr std::size_t stays_per_level = 8;
constexpr std::size_t pilot_stays = 1000;  // for all: they choose the levels
constexpr double climbing =
    0.2;  // climbs to the next level in a stay, at least, where levels can be so near
constexpr double first_climbs = 0.01;  // climbs to the first level for each arrival, at least
constexpr std::size_t together = 16;   // stays that are drawn together
constexpr std::size_t look_ahead = 8;  // arrivals, before anybody looks whether a stay is over

// A queue just after an arrival that has climbed to a level.
struct Climb {
    struct Left {
        Duration known{};  // that it has still to run
        bool more = false;
    };
    std::vector<Left> left;  // of each job there, in order of arrival
};

// One queue from arrival to arrival.
class Sight {
  public:
    // With these jobs, that have arrived at 0.
    Sight(double w_s, std::span<const ServedJob> there)
        : horizon_(from_seconds(w_s)), there_(there.begin(), there.end()) {}

    void arrive(const ServedJob& job) {
        now_ = job.submit;
        std::erase_if(there_, [&job](const ServedJob& j) { return j.end <= job.submit; });
        before_ = std::count_if(there_.begin(), there_.end(),
                                [this](const ServedJob& j) { return stays(j); });
        after_ = before_ + (stays(job) ? 1 : 0);
        there_.push_back(job);
    }
    // Its height just before the last arrival, and just after it.
    std::int64_t before() const { return before_; }
    std::int64_t after() const { return after_; }
    bool climbs_to(std::int64_t level) const { return before_ < level && after_ >= level; }
    Climb climb(bool memoryless) const {
        Climb out;
        for (const ServedJob& job : there_) {
            const Duration from = std::max(job.start, now_);
            if (memoryless && stays(job)) {
                out.left.push_back({std::max(Duration{}, now_ + horizon_ - from), true});
            } else {
                out.left.push_back({job.end - from, false});
            }
        }
        return out;
    }

  private:
    bool stays(const ServedJob& job) const { return job.end > now_ + horizon_; }

    Duration horizon_;
    std::vector<ServedJob> there_;  // in order of arrival
    Duration now_{};
    std::int64_t before_ = 0;
    std::int64_t after_ = 0;
};

class Splitting {
  public:
    Splitting(const TextbookQueue& queue, double w_s, std::uint64_t seed, std::uint64_t batch,
              const std::string& name)
        : queue_(queue),
          w_s_(w_s),
          memoryless_(queue.service->memoryless()),
          arrivals_(seed, batch, name + "/rare arrivals"),
          services_(seed, batch, name + "/rare services"),
          choices_(seed, batch, name + "/rare choices") {}

    // Climbs in a part of a run.
    std::vector<Climb> climbs(std::span<const ServedJob> run, std::int64_t level,
                              Sight& sight) const {
        std::vector<Climb> out;
        for (const ServedJob& job : run) {
            sight.arrive(job);
            if (sight.climbs_to(level)) out.push_back(sight.climb(memoryless_));
        }
        return out;
    }
    // Climbs to `next` in stays above `level` that begin with some of these.
    std::vector<Climb> climbs(const std::vector<Climb>& from, std::size_t count, std::int64_t level,
                              std::int64_t next) {
        std::vector<Climb> out;
        stay(some_of(from, count), level, [&](const Sight& sight, const ServedJob&) {
            if (sight.climbs_to(next)) out.push_back(sight.climb(memoryless_));
        });
        return out;
    }
    // What is counted in one stay above the last level.
    struct Value {
        double longer = 0;  // arrivals that wait longer
        double waits_s = 0;
    };
    Value value(const std::vector<Climb>& from, std::size_t count, std::int64_t level) {
        Value sum;
        stay(some_of(from, count), level, [&](const Sight&, const ServedJob& job) {
            if (job.wait_s() <= w_s_) return;
            sum.longer += 1;
            sum.waits_s += job.wait_s();
        });
        return {sum.longer / static_cast<double>(count), sum.waits_s / static_cast<double>(count)};
    }

  private:
    std::vector<Climb> some_of(const std::vector<Climb>& climbs, std::size_t count);
    // Calls see(sight, job) for every arrival while the queue stays above the level.
    template <class See>
    void stay(std::vector<Climb> begin, std::int64_t level, const See& see);
    template <class See>
    void stay_together(std::span<Climb> begin, std::int64_t level, const See& see);

    const TextbookQueue& queue_;
    double w_s_;
    bool memoryless_;
    RandomStream arrivals_;
    RandomStream services_;
    RandomStream choices_;
};

// So many of them, spread evenly.
std::vector<Climb> Splitting::some_of(const std::vector<Climb>& climbs, std::size_t count) {
    std::vector<Climb> out;
    const double step = static_cast<double>(climbs.size()) / static_cast<double>(count);
    const double first = choices_.uniform();
    for (std::size_t i = 0; i < count && !climbs.empty(); ++i) {
        const auto at = static_cast<std::size_t>((static_cast<double>(i) + first) * step);
        out.push_back(climbs[std::min(at, climbs.size() - 1)]);
    }
    return out;
}

template <class See>
void Splitting::stay(std::vector<Climb> begin, std::int64_t level, const See& see) {
    for (std::size_t first = 0; first < begin.size(); first += together) {
        heed_cancel();
        const std::size_t count = std::min(together, begin.size() - first);
        stay_together(std::span(begin).subspan(first, count), level, see);
    }
}

// Queues of so many servers each (Kiefer and Wolfowitz). Jobs are in order of arrival at theirs, and each
// queue's follow one another.
std::vector<ServedJob> first_come_first_served(std::span<const StreamJob> jobs,
                                               std::int64_t servers) {
    std::vector<ServedJob> out;
    std::vector<Duration> free;  // when each server of the queue is
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        const bool another = j == 0 || jobs[j].cluster != jobs[j - 1].cluster;
        if (another) free.assign(static_cast<std::size_t>(servers), Duration{});
        const auto next = std::ranges::min_element(free);
        const Duration start = std::max(jobs[j].submit, *next);
        *next = start + jobs[j].duration;
        out.push_back({jobs[j].submit, start, *next});
    }
    return out;
}

template <class See>
void Splitting::stay_together(std::span<Climb> begin, std::int64_t level, const See& see) {
    std::vector<std::size_t> open(begin.size());
    std::iota(open.begin(), open.end(), std::size_t{0});
    while (!open.empty()) {
        std::vector<StreamJob> jobs;
        const auto service = [this] { return from_seconds(queue_.service->draw(services_)); };
        for (std::uint32_t i = 0; i < open.size(); ++i) {
            for (const Climb::Left& left : begin[open[i]].left) {
                const Duration more = left.more ? service() : Duration{};
                jobs.push_back({.duration = left.known + more, .cluster = i});
            }
            Duration now{};
            for (std::size_t a = 0; a < look_ahead; ++a) {
                now += arrivals_.interarrival(queue_.arrivals());
                jobs.push_back({.submit = now, .duration = service(), .cluster = i});
            }
        }
        const std::vector<ServedJob> served = first_come_first_served(jobs, queue_.servers);
        std::vector<std::size_t> still_open;
        std::span<const ServedJob> rest = served;
        for (const std::size_t i : open) {
            const std::size_t there = begin[i].left.size();
            Sight sight(w_s_, rest.first(there));
            bool over = false;
            for (const ServedJob& job : rest.subspan(there, look_ahead)) {
                sight.arrive(job);
                over = sight.before() < level;
                if (over) break;
                see(sight, job);
            }
            rest = rest.subspan(there + look_ahead);
            if (over) continue;
            begin[i] = sight.climb(memoryless_);
            still_open.push_back(i);
        }
        open = std::move(still_open);
    }
}

// The highest to which there are still enough climbs in a run.
std::int64_t first_level(std::int64_t last, std::span<const ServedJob> run, Sight sight) {
    std::vector<std::int64_t> climbs(static_cast<std::size_t>(last) + 1);
    for (const ServedJob& job : run) {
        sight.arrive(job);
        if (sight.after() > sight.before() && sight.after() <= last) {
            ++climbs[static_cast<std::size_t>(sight.after())];
        }
    }
    const double enough = first_climbs * static_cast<double>(run.size());
    std::int64_t level = last;
    while (level > 1 && static_cast<double>(climbs[static_cast<std::size_t>(level)]) < enough) {
        --level;
    }
    return level;
}

// Up to the last, each about as hard to reach.
std::vector<std::int64_t> levels_to(std::int64_t last, std::int64_t first, Splitting& pilot,
                                    std::vector<Climb> climbs) {
    std::vector<std::int64_t> out = {first};
    double since = 1;  // climbs in a stay above the last that was chosen
    for (std::int64_t level = first; level < last; ++level) {
        RY_CHECK(!climbs.empty());
        climbs = pilot.climbs(climbs, pilot_stays, level, level + 1);
        const double more = static_cast<double>(climbs.size()) / static_cast<double>(pilot_stays);
        if (level > out.back() && since * more < climbing) {
            out.push_back(level);
            since = 1;
        }
        since *= more;
    }
    if (out.back() < last) out.push_back(last);
    return out;
}

// For estimates whose logarithms are spread evenly about the logarithm of the true value.
Summary summarise_products(const std::vector<double>& estimates) {
    Summary out = summarise(estimates);
    if (out.mean == 0) return out;
    const double factor = portable_exp(out.ci95.half_width() / out.mean);
    out.ci95 = {out.mean / factor, out.mean * factor};
    return out;
}

}  // namespace

RareMeans rare_means(const TextbookQueue& queue, double w_s, std::span<const ServedJob> run,
                     std::size_t warm_up, std::size_t batches, std::uint64_t seed,
                     const std::string& name) {
    const std::size_t length = (run.size() - warm_up) / batches;
    Sight sight(w_s, {});
    const std::int64_t first = first_level(queue.servers, run.first(warm_up), sight);
    Splitting pilot(queue, w_s, seed, batches, name);
    const std::vector<std::int64_t> levels =
        levels_to(queue.servers, first, pilot, pilot.climbs(run.first(warm_up), first, sight));
    const std::size_t stays = std::max(stays_min, stays_per_level * levels.size());
    std::vector<double> shares;
    std::vector<double> waits;
    for (std::size_t b = 0; b < batches; ++b) {
        Splitting splitting(queue, w_s, seed, b, name);
        std::vector<Climb> climbs =
            splitting.climbs(run.subspan(warm_up + b * length, length), first, sight);
        double rate = static_cast<double>(climbs.size()) / static_cast<double>(length);
        for (std::size_t l = 0; l + 1 < levels.size(); ++l) {
            climbs = splitting.climbs(climbs, stays, levels[l], levels[l + 1]);
            rate *= static_cast<double>(climbs.size()) / static_cast<double>(stays);
        }
        const Splitting::Value value = splitting.value(climbs, stays, levels.back());
        shares.push_back(rate * value.longer);
        waits.push_back(rate * value.waits_s);
    }
    return {summarise_products(shares), summarise_products(waits)};
}

}  // namespace railyard
