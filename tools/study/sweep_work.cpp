#include "tools/study/sweep_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace railyard {

namespace {

double thread_cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// What a thread has found, to be written.
using Write = std::function<void(ResultsDb&)>;

// What the threads have found, written in batches by whichever of them finds a batch worth while, one at a
// time and in the order of the pushes. No thread of its own: a sweep with -j N takes N processors' time, not
// a little more.
class ReplicaWriter {
  public:
    explicit ReplicaWriter(ResultsDb& db) : db_(db) {}

    // Throws what the database throws when it is this thread that writes.
    void push(Write write) {
        std::size_t waiting = 0;
        {
            const std::lock_guard lock(mutex_);
            waiting_.push_back(std::move(write));
            waiting = waiting_.size();
        }
        if (waiting >= writes_max) {  // after whoever writes now: memory stays bounded
            const std::lock_guard writing(db_mutex_);
            write_waiting();
        } else if (waiting >= writes_worth_it || Clock::now() >= due_.load()) {
            if (std::unique_lock writing(db_mutex_, std::try_to_lock); writing) write_waiting();
        }
    }
    // For who watches the threads: writes what no push has come to write for a second.
    void write_overdue() {
        if (Clock::now() < due_.load() + std::chrono::seconds(1)) return;
        const std::lock_guard writing(db_mutex_);
        write_waiting();
    }
    // Replicas that were there before anything was pushed for their point.
    void read(std::int64_t point, const std::function<void(StoredReplica)>& take) {
        const std::lock_guard reading(db_mutex_);
        db_.each_replica(point, take);
    }
    // The last write, when nobody pushes any more.
    void finish() {
        write_waiting();
        if (!broken_) db_.commit();
    }
    double cpu_seconds() const { return cpu_s_; }  // after finish()

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::size_t writes_max = 4096;
    static constexpr std::size_t writes_worth_it = writes_max / 2;

    // With `db_mutex_`.
    void write_waiting() {
        if (broken_) return;
        broken_ = true;  // unless all goes well
        std::vector<Write> writes;
        {
            const std::lock_guard lock(mutex_);
            writes.swap(waiting_);
        }
        const double cpu_before = thread_cpu_seconds();
        for (Write& write : writes) write(db_);
        db_.commit_when_due();
        cpu_s_ += thread_cpu_seconds() - cpu_before;
        due_ = Clock::now() + std::chrono::milliseconds(100);
        broken_ = false;
    }

    std::mutex db_mutex_;  // who holds it writes; of `db_`, `broken_` and `cpu_s_`
    ResultsDb& db_;
    bool broken_ = false;  // a write failed: what came after it must not be committed without it
    double cpu_s_ = 0;
    std::mutex mutex_;  // of `waiting_`
    std::vector<Write> waiting_;
    std::atomic<Clock::time_point> due_{Clock::time_point()};
};

// The study's mistake, not a point's.
class UnknownMetric : public ScenarioError {
  public:
    using ScenarioError::ScenarioError;
};

// A point that is being simulated.
struct OpenPoint {
    OpenPoint(std::int64_t its_id, bool is_described, Scenario of)
        : id(its_id), described(is_described), scenario(std::move(of)) {}

    std::int64_t id;
    bool failed = false;
    std::atomic<bool> described;
    Scenario scenario;
    ReplicaTally tally{scenario};
    std::map<std::int64_t, StoredReplica> early;  // there before one with a lower index
    std::int64_t wanted = 0;                      // replicas, as far as the rule has looked
    std::int64_t next = 0;                        // the first that no thread has taken
};

class Sweep {
  public:
    Sweep(std::vector<SweepPoint>& points, const SweepOptions& options, ResultsDb& db)
        : points_(points),
          options_(options),
          windows_(std::make_shared<WindowCache>(WindowObserver{&stopped_})),
          writer_(db) {}

    // What a thread does.
    void work() {
        try {
            Place own;
            while (const std::optional<Task> task = next_task(own)) {
                const auto failure = failure_of([&] {
                    ReplicaResult result = run_replica(task->point->scenario, task->replica, false);
                    note_deadlock(task->point->id, result);
                    finish_replica(task->point, record_of(std::move(result)));
                });
                if (failure) give_up(task->point, *failure);
            }
        } catch (const Interrupted&) {
            stop();
        } catch (...) {
            {
                const std::lock_guard lock(mutex_);
                if (!failure_) failure_ = std::current_exception();
            }
            stop();
        }
        const std::lock_guard lock(mutex_);
        if (--at_work_ == 0) ended_.notify_all();
    }

    // Waits for the threads' end, at most `longest`; true: it has come.
    bool wait(std::chrono::milliseconds longest) {
        std::unique_lock lock(mutex_);
        return ended_.wait_for(lock, longest, [&] { return at_work_ == 0; });
    }
    // So many threads could not be started.
    void do_without(unsigned threads) {
        const std::lock_guard lock(mutex_);
        if ((at_work_ -= threads) == 0) ended_.notify_all();
    }
    void stop() {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        changed_.notify_all();
    }
    ReplicaWriter& writer() { return writer_; }
    std::int64_t done() const { return done_; }
    const std::exception_ptr& failure() const { return failure_; }
    // When no thread is at work any more.
    void tell_deadlocks() const {
        if (!options_.deadlocked) return;
        for (const auto& [point, first] : deadlocks_) {
            options_.deadlocked(point, first.first, first.second);
        }
    }

  private:
    using Place = std::shared_ptr<OpenPoint>;
    struct Task {
        Place point;
        std::int64_t replica = 0;
    };
    // How a point came to nothing.
    struct Failure {
        std::string status;
        std::string problem;
    };

    // What went wrong with a point, whatever it is: it must not take other points with it. What goes wrong
    // with the database or the study, and Ctrl-C, pass.
    template <class Work>
    std::optional<Failure> failure_of(const Work& work) {
        try {
            work();
        } catch (const Interrupted&) {
            throw;
        } catch (const DatabaseError&) {
            throw;
        } catch (const UnknownMetric&) {
            throw;
        } catch (const ScenarioError& error) {
            return Failure{"impossible", error.what()};
        } catch (const std::bad_alloc&) {
            return Failure{"failed", "out of memory"};
        } catch (const std::exception& error) {
            return Failure{"failed", error.what()};
        }
        return std::nullopt;
    }

    void note_deadlock(std::int64_t point, const ReplicaResult& result) {
        if (result.stuck_report.empty() || result.ending != Ending::complete) return;
        const std::lock_guard lock(mutex_);
        const auto [it, first] = deadlocks_.try_emplace(point, result.index, result.stuck_report);
        if (!first && result.index < it->second.first) {
            it->second = {result.index, result.stuck_report};
        }
    }

    // The next replica of the thread's own point; the first of a new point; else somebody else's.
    std::optional<Task> next_task(Place& own) {
        std::unique_lock lock(mutex_);
        while (!stopped_) {
            if (own) {
                if (auto task = replica_of(own)) return task;
                own.reset();
            }
            if (next_point_ < points_.size()) {
                SweepPoint& point = points_[next_point_++];
                ++opening_;
                lock.unlock();
                own = open(point);
                lock.lock();
                --opening_;
                if (own) open_.push_back(own);
                changed_.notify_all();
                continue;
            }
            for (const Place& other : open_) {
                if (auto task = replica_of(other)) return task;
            }
            if (open_.empty() && opening_ == 0) return std::nullopt;
            changed_.wait(lock);  // the rule may want more of a point that others are at
        }
        return std::nullopt;
    }

    std::optional<Task> replica_of(const Place& point) {
        OpenPoint& p = *point;
        if (p.failed) return std::nullopt;
        p.next = std::max(p.next, p.tally.replicas());
        while (p.early.contains(p.next)) ++p.next;
        if (p.next >= p.wanted) return std::nullopt;
        return Task{point, p.next++};
    }

    // Null: nothing is to be simulated.
    Place open(SweepPoint& from) {
        Place point;
        bool enough = false;
        const auto failure = failure_of([&] {
            ScenarioChanges changes;
            changes.settings = std::move(from.settings);
            changes.windows = windows_;
            changes.phases = true;
            point = std::make_shared<OpenPoint>(
                from.id, from.described,
                load_scenario(options_.scenario_text, options_.scenario_file, changes));
            if (!point->scenario.no_path.empty()) return;
            enough = look(*point);
            if (from.described) {
                writer_.read(from.id, [&](StoredReplica record) {
                    if (!enough) enough = add(*point, std::move(record));
                });
            }
            if (enough) finish_point(*point);
        });
        if (failure) {
            fail(from.id, *failure);
        } else if (!point->scenario.no_path.empty()) {
            fail(from.id,
                 {"stuck", "the job can't take its first step: " + point->scenario.no_path});
        } else if (!enough) {
            return point;
        }
        return nullptr;
    }

    void finish_replica(const Place& point, StoredReplica record) {
        if (!point->described.exchange(true)) {
            writer_.push([point, first = record](ResultsDb& db) {
                db.describe_point(point->id, point->scenario, first);
            });
        }
        writer_.push([id = point->id, head = ReplicaHead(record), texts = texts_of(record)](
                         ResultsDb& db) mutable { db.add(id, head, std::move(texts)); });
        {
            const std::lock_guard lock(mutex_);
            if (point->failed) return;
            const std::int64_t wanted = point->wanted;
            const bool enough = add(*point, std::move(record));
            if (enough || point->wanted > wanted) changed_.notify_all();
            if (!enough) return;
            open_.remove(point);
        }
        finish_point(*point);
    }

    // Looks whether the replicas that there are suffice, at the rule's counts; true: they do. Else `wanted`
    // says how many there should be.
    bool look(OpenPoint& p) {
        Summary summary;
        if (p.wanted > 0 && !options_.rule.metric.empty()) {
            const MetricTable::Column* column = p.tally.values().find(options_.rule.metric);
            if (column == nullptr) {
                throw UnknownMetric(
                    fmt::format("sweep.stop.metric: there is no metric '{}'", options_.rule.metric),
                    did_you_mean(options_.rule.metric, names_of(p.tally.values().columns())));
            }
            const std::vector<double> values = paired_values(*column);
            summary = summarise(values, dealt_over(values.size(), p.scenario.draws.size()));
        }
        const std::int64_t before =
            std::exchange(p.wanted, options_.rule.wanted(p.wanted, summary));
        return p.wanted == before;
    }

    // Adds up a replica and those that waited for it; true: these suffice.
    bool add(OpenPoint& p, StoredReplica record) {
        const std::int64_t index = record.index;
        p.early.emplace(index, std::move(record));
        while (!p.early.empty() && p.early.begin()->first == p.tally.replicas()) {
            p.tally.add(figures_of(p.early.begin()->second));
            p.early.erase(p.early.begin());
            if (p.tally.replicas() == p.wanted && look(p)) return true;
        }
        return false;
    }

    void finish_point(OpenPoint& p) {
        ReplicaSums sums = with_prices(p.tally.take(), p.scenario);
        std::string problem;
        for (const LimitReached& limit : p.scenario.limits->all()) problem += limit.what + "\n";
        const Ending ending = problem.empty() ? sums.worst : Ending::limit;
        if (sums.worst == Ending::limit) {
            problem += fmt::format("run.events_max = {} was reached", p.scenario.events_max);
        }
        if (ending == Ending::stuck) problem = "some replicas never get their job done";
        writer_.push([id = p.id, causes = p.scenario.causes, sums = std::move(sums), ending,
                      problem](ResultsDb& db) {
            db.finish_point(id, causes, sums, ending_name(ending), problem);
        });
        ++done_;
    }

    void fail(std::int64_t id, const Failure& failure) {
        writer_.push([=](ResultsDb& db) { db.fail_point(id, failure.status, failure.problem); });
        ++done_;
    }

    // Marks an open point as failed; replicas of it that are under way are of no more use.
    void give_up(const Place& point, const Failure& failure) {
        {
            const std::lock_guard lock(mutex_);
            if (std::exchange(point->failed, true)) return;
            open_.remove(point);
            changed_.notify_all();
        }
        fail(point->id, failure);
    }

    std::vector<SweepPoint>& points_;
    const SweepOptions& options_;
    std::atomic<bool> stopped_{false};
    std::shared_ptr<WindowCache> windows_;
    ReplicaWriter writer_;

    std::mutex mutex_;  // of all below
    std::condition_variable changed_;
    std::condition_variable ended_;
    unsigned at_work_ = options_.threads;
    std::size_t next_point_ = 0;
    std::int64_t opening_ = 0;
    std::list<Place> open_;
    std::atomic<std::int64_t> done_{0};
    std::exception_ptr failure_;
    std::map<std::int64_t, std::pair<std::int64_t, std::string>> deadlocks_;  // the first, by point
};

}  // namespace

SweepWorkDone run_points(std::vector<SweepPoint> points, const SweepOptions& options,
                         ResultsDb& db) {
    Sweep sweep(points, options, db);
    std::vector<std::jthread> threads;
    try {
        while (threads.size() < options.threads) threads.emplace_back([&] { sweep.work(); });
    } catch (const std::system_error&) {
        if (threads.empty()) throw;
        sweep.do_without(options.threads - static_cast<unsigned>(threads.size()));
    }
    try {
        while (!sweep.wait(std::chrono::milliseconds(100))) {
            if (options.cancelled != nullptr && *options.cancelled) sweep.stop();
            sweep.writer().write_overdue();
            if (options.progress) options.progress(sweep.done());
        }
        threads.clear();
        sweep.writer().finish();
        if (options.progress) options.progress(sweep.done());
    } catch (...) {
        sweep.stop();
        throw;
    }
    if (sweep.failure()) std::rethrow_exception(sweep.failure());
    sweep.tell_deadlocks();
    return {sweep.done(), sweep.writer().cpu_seconds()};
}

}  // namespace railyard
