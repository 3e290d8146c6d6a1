// Many jobs on a cluster: who starts when, and on which GPUs.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "models/scheduler/scheduler.h"
#include "sim/rng.h"

using namespace railyard;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;

namespace {

StreamJob job(std::int64_t id, Duration submit, Duration duration, std::int64_t gpus,
              Duration limit = {}) {
    StreamJob out;
    out.id = id;
    out.submit = submit;
    out.duration = duration;
    out.gpus = gpus;
    out.limit = limit;
    return out;
}

StreamRules rules(const std::string& policy, const std::string& placement = "pool") {
    StreamRules out;
    out.policy = policy;
    out.placement = placement;
    return out;
}

const std::vector<VirtualCluster> one_node = {{"all", 1, 8}};

std::vector<Duration> starts(const std::vector<StreamJob>& jobs, const StreamRules& how,
                             const std::vector<VirtualCluster>& clusters = one_node) {
    std::vector<Duration> out;
    for (const JobRun& run : run_job_stream(jobs, clusters, how).jobs) out.push_back(run.start);
    return out;
}

// Jobs of all sizes, about as many as the cluster can take, submitted in bursts; limits are honest, most
// of them far too long.
std::vector<StreamJob> random_jobs(std::uint64_t seed, std::size_t count, std::int64_t gpus_max) {
    RandomStream random(seed, 0, "jobs");
    std::vector<StreamJob> out;
    Duration now{};
    for (std::size_t i = 0; i < count; ++i) {
        if (random.chance(0.7)) now += std::chrono::seconds(random.below(40));
        const auto duration = std::chrono::seconds(random.below(200));
        const auto slack = std::chrono::seconds(random.chance(0.3) ? 0 : random.below(400));
        const std::uint64_t most = random.chance(0.2) ? static_cast<std::uint64_t>(gpus_max) : 9;
        out.push_back(job(static_cast<std::int64_t>(random.below(1000)), now, duration,
                          static_cast<std::int64_t>(1 + random.below(most)),
                          duration + slack + 1s));
    }
    return out;
}

// Checks the books at every start and end: no GPU is in two jobs, and each job has what it asked for, where
// the rule in the head of table 63 puts it.
class Auditor : public WorldListener {
  public:
    // Jobs are in order of submission.
    Auditor(const std::vector<StreamJob>& jobs, const VirtualCluster& cluster,
            const StreamRules& how)
        : jobs_(jobs),
          consolidate_(how.placement == "consolidate"),
          by_plan_(how.policy == "backfill" || how.policy == "easy"),
          per_node_(consolidate_ ? cluster.gpus_per_node : 1),
          free_(static_cast<std::size_t>(cluster.gpus() / per_node_), per_node_) {}

    void started(JobIndex j, Instant now, const Allocation& allocation) override {
        REQUIRE(now.time_since_epoch() >= jobs_[j].submit);
        REQUIRE(running_.count(j) == 0);
        if (consolidate_ && !by_plan_) REQUIRE(places(allocation) == by_the_rule(jobs_[j].gpus));
        std::int64_t gpus = 0;
        for (const NodeShare& share : allocation) {
            REQUIRE(share.gpus > 0);
            free_[share.node] -= share.gpus;
            REQUIRE(free_[share.node] >= 0);
            gpus += share.gpus;
        }
        REQUIRE(gpus == jobs_[j].gpus);
        running_[j] = allocation;
        if (promised_.count(j) > 0) REQUIRE(now <= promised_[j]);
        ++starts;
    }
    void stopped(JobIndex j, Instant) override {
        REQUIRE(running_.count(j) == 1);
        for (const NodeShare& share : running_[j]) {
            free_[share.node] += share.gpus;
            REQUIRE(free_[share.node] <= per_node_);
        }
        running_.erase(j);
    }
    void promised(JobIndex j, Instant now, Instant start) override {
        REQUIRE(start >= now);
        if (promised_.count(j) > 0) REQUIRE(start <= promised_[j]);
        promised_[j] = start;
    }

    std::size_t starts = 0;
    std::size_t promises() const { return promised_.size(); }
    bool idle() const { return running_.empty(); }

  private:
    using Places = std::map<std::uint32_t, std::int64_t>;
    static Places places(const Allocation& allocation) {
        Places out;
        for (const NodeShare& share : allocation) out[share.node] += share.gpus;
        return out;
    }
    Places by_the_rule(std::int64_t gpus) const {
        Places out;
        if (gpus <= per_node_) {
            std::size_t best = free_.size();
            for (std::size_t n = 0; n < free_.size(); ++n) {
                if (free_[n] >= gpus && (best == free_.size() || free_[n] < free_[best])) best = n;
            }
            out[static_cast<std::uint32_t>(best)] = gpus;
            return out;
        }
        for (std::uint32_t n = 0; n < free_.size() && gpus >= per_node_; ++n) {
            if (free_[n] != per_node_) continue;
            out[n] = per_node_;
            gpus -= per_node_;
        }
        if (gpus == 0) return out;
        std::size_t most = free_.size();
        for (std::uint32_t n = 0; n < free_.size(); ++n) {
            if (out.count(n) > 0) continue;
            if (most == free_.size() || free_[n] > free_[most]) most = n;
        }
        out[static_cast<std::uint32_t>(most)] = gpus;
        return out;
    }

    const std::vector<StreamJob>& jobs_;
    bool consolidate_;
    bool by_plan_;  // on GPUs that keep out of the way of later reservations
    std::int64_t per_node_;
    std::vector<std::int64_t> free_;
    std::map<JobIndex, Allocation> running_;
    std::map<JobIndex, Instant> promised_;
};

// When `wanted` GPUs are free if all ends as expected, and how many are left then.
std::pair<Duration, std::int64_t> shadow_of(std::int64_t wanted, std::int64_t free,
                                            std::vector<std::pair<Duration, std::int64_t>> ends) {
    std::sort(ends.begin(), ends.end());
    Duration shadow{};
    for (const auto& [end, count] : ends) {
        if (free >= wanted && end > shadow) break;
        free += count;
        shadow = end;
    }
    return {shadow, free - wanted};
}

// EASY as the textbook says it, with a look at every job in every instant.
std::vector<Duration> textbook_easy(const std::vector<StreamJob>& jobs, std::int64_t gpus,
                                    RuntimeEstimate estimate) {
    const auto expected = [&](std::size_t j) {
        return estimate == RuntimeEstimate::limit ? jobs[j].limit : jobs[j].duration;
    };
    std::vector<std::size_t> queue(jobs.size());
    for (std::size_t j = 0; j < jobs.size(); ++j) queue[j] = j;
    std::sort(queue.begin(), queue.end(), [&](std::size_t a, std::size_t b) {
        return std::tuple(jobs[a].submit, jobs[a].id, a) <
               std::tuple(jobs[b].submit, jobs[b].id, b);
    });
    std::set<Duration> instants;
    for (const StreamJob& j : jobs) instants.insert(j.submit);
    std::vector<Duration> start(jobs.size());
    std::vector<std::size_t> running;
    std::int64_t free = gpus;
    const auto run = [&](std::size_t j, Duration now) {
        start[j] = now;
        free -= jobs[j].gpus;
        running.push_back(j);
        instants.insert(now + jobs[j].duration);
    };
    for (auto at = instants.begin(); at != instants.end();) {
        const Duration now = *at;
        bool again = false;  // jobs of no duration end in the instant in which they start
        std::erase_if(running, [&](std::size_t j) {
            if (start[j] + jobs[j].duration > now) return false;
            free += jobs[j].gpus;
            return true;
        });
        const auto started = [&](std::size_t j) {
            again = again || jobs[j].duration == 0s;
            std::erase(queue, j);
        };
        const auto waits = [&](std::size_t j) { return jobs[j].submit <= now; };
        while (!queue.empty() && waits(queue[0]) && jobs[queue[0]].gpus <= free) {
            const std::size_t j = queue[0];
            run(j, now);
            started(j);
        }
        if (!queue.empty() && waits(queue[0])) {
            std::vector<std::pair<Duration, std::int64_t>> ends;
            for (const std::size_t j : running) {
                ends.emplace_back(start[j] + expected(j), jobs[j].gpus);
            }
            auto [shadow, extra] = shadow_of(jobs[queue[0]].gpus, free, std::move(ends));
            for (const std::size_t j : std::vector<std::size_t>(queue.begin() + 1, queue.end())) {
                if (!waits(j) || jobs[j].gpus > free) continue;
                const bool ends_before = now + expected(j) <= shadow;
                if (!ends_before && jobs[j].gpus > extra) continue;
                if (!ends_before) extra -= jobs[j].gpus;
                run(j, now);
                started(j);
            }
        }
        if (!again) ++at;
    }
    return start;
}

}  // namespace

TEST_CASE("in a fifo who does not fit makes all others wait") {
    const std::vector<StreamJob> jobs = {job(1, 0s, 10s, 6), job(2, 1s, 10s, 4), job(3, 2s, 1s, 1)};
    CHECK(starts(jobs, rules("fifo")) == std::vector<Duration>{0s, 10s, 10s});
}

TEST_CASE("in one instant jobs end first, then others are submitted, then the queue moves") {
    const std::vector<StreamJob> jobs = {job(1, 0s, 10s, 8), job(2, 10s, 1s, 8)};
    CHECK(starts(jobs, rules("fifo")) == std::vector<Duration>{0s, 10s});
    // And a job of no duration makes room in the instant in which it starts.
    CHECK(starts({job(1, 0s, 0s, 8), job(2, 0s, 1s, 8)}, rules("fifo")) ==
          std::vector<Duration>{0s, 0s});
}

TEST_CASE("the shortest job goes first, by its time limit where that is what is known") {
    const std::vector<StreamJob> jobs = {job(1, 0s, 10s, 8, 20s), job(2, 1s, 5s, 8, 100s),
                                         job(3, 2s, 7s, 8, 10s)};
    CHECK(starts(jobs, rules("sjf")) == std::vector<Duration>{0s, 10s, 15s});
    StreamRules by_limit = rules("sjf");
    by_limit.estimate = RuntimeEstimate::limit;
    CHECK(starts(jobs, by_limit) == std::vector<Duration>{0s, 17s, 10s});
}

TEST_CASE("a higher priority goes first, and nobody is preempted") {
    std::vector<StreamJob> jobs = {job(1, 0s, 10s, 8), job(2, 1s, 5s, 8), job(3, 2s, 7s, 8)};
    jobs[2].priority = 1;
    CHECK(starts(jobs, rules("priority")) == std::vector<Duration>{0s, 17s, 10s});
}

TEST_CASE("a job is ended at its time limit") {
    CHECK(starts({job(1, 0s, 10s, 8, 4s), job(2, 0s, 1s, 8)}, rules("fifo")) ==
          std::vector<Duration>{0s, 4s});
}

TEST_CASE("EASY lets jobs overtake that end in time or use what the first leaves over") {
    const std::vector<StreamJob> jobs = {
        job(1, 0s, 100s, 5), job(2, 1s, 10s, 7),  // waits for job 1 and leaves one GPU over
        job(3, 2s, 98s, 2),                       // ends in time
        job(4, 3s, 500s, 1),                      // uses what is left over
        job(5, 4s, 500s, 1)};                     // would delay job 2
    CHECK(starts(jobs, rules("easy")) == std::vector<Duration>{0s, 100s, 2s, 3s, 110s});
}

TEST_CASE("backfill looks at the queue at multiples of its interval, EASY at once") {
    const std::vector<StreamJob> jobs = {job(1, 0s, 1000s, 5), job(2, 1s, 10s, 7),
                                         job(3, 7s, 100s, 2)};
    CHECK(starts(jobs, rules("easy")) == std::vector<Duration>{0s, 1000s, 7s});
    CHECK(starts(jobs, rules("backfill")) == std::vector<Duration>{0s, 1000s, 30s});
    StreamRules slow = rules("backfill");
    slow.backfill.interval = 5min;
    CHECK(starts(jobs, slow) == std::vector<Duration>{0s, 1000s, 300s});
}

TEST_CASE("backfill delays nobody that it has looked at, EASY only the first") {
    // Job 4 fits beside job 2's reservation and is in the way of job 3's.
    const std::vector<StreamJob> jobs = {job(1, 0s, 600s, 6), job(2, 0s, 600s, 7),
                                         job(3, 0s, 600s, 8), job(4, 0s, 6000s, 1)};
    CHECK(starts(jobs, rules("easy")) == std::vector<Duration>{0s, 600s, 6000s, 0s});
    CHECK(starts(jobs, rules("backfill")) == std::vector<Duration>{0s, 600s, 1200s, 1800s});
    // Unless it does not look so far down the queue, or ahead in time.
    StreamRules near = rules("backfill");
    near.backfill.window = 15min;
    CHECK(starts(jobs, near) == std::vector<Duration>{0s, 600s, 6000s, 0s});
    StreamRules shallow = rules("backfill");
    shallow.backfill.depth = 1;
    CHECK(starts({job(1, 0s, 600s, 6), job(2, 0s, 600s, 7), job(3, 0s, 60s, 2)}, shallow)[2] ==
          1200s);
}

TEST_CASE("backfill needs time limits: a job without one is planned for a year") {
    std::vector<StreamJob> jobs = {job(1, 0s, 600s, 6, 600s), job(2, 0s, 600s, 7, 600s),
                                   job(3, 0s, 60s, 2)};
    StreamRules how = rules("backfill");
    how.estimate = RuntimeEstimate::limit;
    CHECK(starts(jobs, how) == std::vector<Duration>{0s, 600s, 1200s});
    jobs[2].limit = 120s;
    CHECK(starts(jobs, how) == std::vector<Duration>{0s, 600s, 0s});
}

TEST_CASE("EASY starts every job when the textbook's loop over the whole queue does") {
    for (const RuntimeEstimate estimate : {RuntimeEstimate::work, RuntimeEstimate::limit}) {
        StreamRules how = rules("easy");
        how.estimate = estimate;
        for (std::uint64_t seed = 0; seed < 40; ++seed) {
            const std::vector<StreamJob> jobs = random_jobs(seed, 300, 32);
            CHECK(starts(jobs, how, {{"all", 4, 8}}) == textbook_easy(jobs, 32, estimate));
        }
    }
}

TEST_CASE("no GPU is ever in two jobs, and no policy delays the first job's reservation") {
    const VirtualCluster cluster{"all", 6, 8};
    std::size_t promises = 0;
    for (const StreamChoice& policy : policy_kinds()) {
        for (const StreamChoice& placement : placement_kinds()) {
            for (const RuntimeEstimate estimate : {RuntimeEstimate::work, RuntimeEstimate::limit}) {
                StreamRules how = rules(policy.name, placement.name);
                how.estimate = estimate;
                for (std::uint64_t seed = 0; seed < 12; ++seed) {
                    std::vector<StreamJob> jobs = random_jobs(seed, 400, cluster.gpus());
                    std::ranges::stable_sort(
                        jobs, {}, [](const StreamJob& j) { return std::pair(j.submit, j.id); });
                    Auditor auditor(jobs, cluster, how);
                    INFO(fmt::format("{} {}", policy.name, placement.name));
                    run_job_stream(jobs, {cluster}, how, &auditor);
                    CHECK(auditor.starts == jobs.size());
                    CHECK(auditor.idle());
                    promises += auditor.promises();
                }
            }
        }
    }
    CHECK(promises > 1000);
}

TEST_CASE("the order in which jobs are listed changes nothing") {
    std::vector<StreamJob> jobs = random_jobs(7, 300, 32);
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].id = static_cast<std::int64_t>(i);
    std::vector<StreamJob> reversed(jobs.rbegin(), jobs.rend());
    for (const StreamChoice& policy : policy_kinds()) {
        std::vector<Duration> a = starts(jobs, rules(policy.name, "consolidate"), {{"all", 4, 8}});
        const auto b = starts(reversed, rules(policy.name, "consolidate"), {{"all", 4, 8}});
        std::reverse(a.begin(), a.end());
        CHECK(a == b);
    }
}

TEST_CASE(
    "a placement that knows nodes waits for an empty one, and the time is booked as fragmented") {
    // Two nodes with five busy GPUs each: six are free, and no node has them all.
    const std::vector<StreamJob> jobs = {job(1, 0s, 100s, 5), job(2, 0s, 50s, 5),
                                         job(3, 0s, 10s, 6)};
    const std::vector<VirtualCluster> two = {{"all", 2, 8}};
    CHECK(starts(jobs, rules("fifo"), two)[2] == 0s);
    const StreamSchedule s = run_job_stream(jobs, two, rules("fifo", "consolidate"));
    CHECK(s.jobs[2].start == 50s);
    CHECK(s.use[0].fragmented == GpuNanoseconds{6} * Duration(50s).count());
    CHECK(s.use[0].busy == GpuNanoseconds{5 * 100 + 5 * 50 + 6 * 10} * 1'000'000'000);
    CHECK(s.use[0].node_busy == GpuNanoseconds{8} * (100 + 50 + 10) * 1'000'000'000);
}

TEST_CASE("virtual clusters share nothing") {
    std::vector<StreamJob> jobs = random_jobs(3, 200, 16);
    std::vector<StreamJob> first;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        jobs[i].cluster = i % 3 == 0 ? 0 : 1;
        if (jobs[i].cluster == 0) first.push_back(jobs[i]);
    }
    const auto together = starts(jobs, rules("easy"), {{"a", 2, 8}, {"b", 4, 8}});
    const auto alone = starts(first, rules("easy"), {{"a", 2, 8}});
    for (std::size_t i = 0; i < alone.size(); ++i) CHECK(together[3 * i] == alone[i]);
}

TEST_CASE("a job that can never run is refused at its submission, and says why") {
    const std::vector<StreamJob> jobs = {job(1, 0s, 10s, 17), job(2, 0s, 10s, 16)};
    const StreamSchedule pool = run_job_stream(jobs, {{"all", 2, 8}}, rules("fifo"));
    REQUIRE(pool.refused.size() == 1);
    CHECK(pool.refused[0].job == 0);
    CHECK(pool.refused[0].reason == "wants 17 GPUs of 16");
    CHECK(pool.jobs[1].start == 0s);
    const StreamSchedule nodes =
        run_job_stream(jobs, {{"all", 2, 8}}, rules("fifo", "consolidate"));
    CHECK(nodes.refused[0].reason == "wants 17 GPUs of 16");
}

TEST_CASE("a virtual cluster that holds all the jobs it may refuses the next") {
    StreamRules how = rules("fifo");
    how.submitted_max = 2;
    const std::vector<StreamJob> jobs = {job(1, 0s, 10s, 8), job(2, 1s, 10s, 8), job(3, 2s, 10s, 8),
                                         job(4, 10s, 10s, 8)};
    const StreamSchedule s = run_job_stream(jobs, one_node, how);
    REQUIRE(s.refused.size() == 1);
    CHECK(s.refused[0].job == 2);
    CHECK(s.refused[0].reason == "2 jobs are submitted already");
}

TEST_CASE("statistics are those of a schedule done by hand") {
    const std::vector<StreamJob> jobs = {job(1, 10s, 100s, 8), job(2, 20s, 5s, 4),
                                         job(3, 30s, 20s, 4), job(4, 40s, 10s, 99)};
    const StreamSchedule s = run_job_stream(jobs, one_node, rules("fifo"));
    const StreamStatistics all = stream_statistics(jobs, one_node, s);
    CHECK(all.jobs == 3);
    CHECK(all.refused == 1);
    CHECK(all.mean_wait_s == doctest::Approx((0 + 90 + 80) / 3.0));
    CHECK(all.mean_jct_s == doctest::Approx((100 + 95 + 100) / 3.0));
    CHECK(all.mean_slowdown == doctest::Approx((1 + 9.5 + 5) / 3.0));
    CHECK(all.wait_p50 == 80s);
    CHECK(all.wait_max == 90s);
    CHECK(all.zero_wait == doctest::Approx(1 / 3.0));
    CHECK(all.makespan_s() == doctest::Approx(120));
    CHECK(all.utilisation == doctest::Approx((800 + 20 + 80) / (8 * 120.0)));
}

TEST_CASE("of jobs that are all refused there is no wait, no makespan and no share") {
    const std::vector<StreamJob> jobs = {job(1, 1000000s, 100s, 99)};
    const StreamSchedule s = run_job_stream(jobs, one_node, rules("fifo"));
    const StreamStatistics all = stream_statistics(jobs, one_node, s);
    CHECK(all.refused == 1);
    for (const double value :
         {all.mean_wait_s, all.mean_jct_s, all.mean_runtime_s, all.mean_slowdown, all.zero_wait,
          all.utilisation, all.fragmentation, all.occupancy, all.makespan_s()}) {
        CHECK(std::isnan(value));
    }
    CHECK_FALSE(all.wait_p50);
    CHECK_FALSE(all.wait_max);
}

TEST_CASE("a stream that outlasts the clock is a user's error") {
    const Duration century = time_max;
    const std::vector<StreamJob> jobs = {job(1, 0s, century, 8), job(2, 0s, century, 8)};
    CHECK_THROWS_WITH_AS(
        run_job_stream(jobs, one_node, rules("fifo")),
        "railyard: error: job 2 would end after 150 years: longer than a stream may last",
        ScenarioError);
}
