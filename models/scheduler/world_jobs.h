#pragma once
// The jobs that have been submitted and are not over, and the events that wait for them.

#include <memory>
#include <utility>
#include <vector>

#include "models/scheduler/world_parts.h"
#include "models/scheduler/world_progress.h"
#include "models/scheduler/world_work.h"
#include "sim/check.h"

namespace railyard {

// What a run is doing. `whole`: all of it, with stalls that always take the same.
enum class RunStage : std::uint8_t { whole, setting_up, restoring, first_batch, working, saving };
// new_pace: another plan takes its place.
// stage_over: of a job with parts.
enum class RunEnd : std::uint8_t { done, limit, own_failure, new_pace, left, stage_over };

// By a storm, until its pace changes.
struct HeldUp {
    NodeIndex node = 0;  // whose NIC pauses
    Strike strike;
    RunPlan rest;               // of its run, from the step that was stopped on
    bool pace_changes = false;  // at the end of that step
};

struct LiveJob {
    const WorldJob& job;
    const WorldJobKind& kind;
    WorldWork work;
    WorldParts::Parts* parts = nullptr;  // of a kind that has some, from its first start on
    WorldJobStatus status{};
    EventId event{};  // that ends its phase
    NodeIndex failed_node = no_node;
    Instant phase_since{};
    // What becomes of it when its epilog is over.
    struct Next {
        bool waits = false;
        Instant eligible{};
        JobEnd how = JobEnd::completed;
    } next{};

    // Its run (WorldRuns).
    RunPlan run{};
    std::int64_t save_every = 0;  // steps
    Instant run_since{};          // of the plan: it began, or its pace has changed
    StepTime step{};
    Instant own_failure = Instant::max();
    Instant pace_changes_at = Instant::max();
    NodeIndex slow_node = no_node;  // that it leaves when its pace changes
    RunStage stage = RunStage::whole;
    RunEnd run_end = RunEnd::done;
    bool grows = false;            // when its pace changes: it starts again on more nodes
    bool goes_on = false;          // its first run here is one of an earlier campaign
    bool suspended_whole = false;  // its processes stand still with all that they have
    bool cut_off = false;          // no way is left on the network: it stands still
    bool rerouted = false;         // it left its links, and comes back to others with its next pace
    std::unique_ptr<HeldUp> storm{};  // few jobs are ever held up by one
    Duration carried{};               // done of the step that a storm stopped
    std::uint64_t own_failures = 0;
    const CarriedJob* came_with =
        nullptr;  // from an earlier campaign, until its run has taken it up

    // One that can go on on fewer nodes, since it first failed.
    struct Elastic {
        Instant lacks_since = Instant::max();      // it waits for nodes
        const SmallerWorldJob* smaller = nullptr;  // it runs so; null: on all of them
        Allocation used{};                         // on these of those that it holds
        Instant unused_since{};                    // the others are booked until then
    };
    std::unique_ptr<Elastic> elastic{};

    // On the network (WorldLinks).
    Instant sends_from = Instant::max();          // of a run that shares links
    std::vector<SharedLinks::Share> waits_for{};  // with this step
    NetworkState broken{};                        // that its routes meet, with this step

    bool runs() const { return status.phase == WorldPhase::running; }
    const SmallerWorldJob* smaller() const { return elastic ? elastic->smaller : nullptr; }
    std::int64_t gpus() const {  // that it runs on
        return smaller() ? job.gpus / job.pods() * smaller()->nodes : job.gpus;
    }
    // The nodes that it runs on.
    const Allocation& working() const { return smaller() ? elastic->used : status.held; }
    const PlacedStep& placed_step() const { return smaller() ? smaller()->step : kind.step; }
    const PlacedTraffic& traffic() const { return smaller() ? smaller()->traffic : kind.traffic; }
    const PlacedRoutes& routes() const { return smaller() ? smaller()->routes : kind.routes; }
    // It saves, stops, and starts again elsewhere.
    bool leaves() const { return slow_node != no_node || grows; }
    bool waits() const {  // or is on its way back to the queue
        return status.phase == WorldPhase::pending || status.phase == WorldPhase::waiting ||
               status.phase == WorldPhase::suspended;
    }
    // A step is under way, neither a stall nor what comes before the first step.
    bool steps_now(Instant now) const;
    // One with parts: until its next save, or its end.
    std::int64_t steps_to_save() const;
    bool moves_bytes() const { return stage == RunStage::saving || stage == RunStage::restoring; }

    // From campaign to campaign. What it takes along of its run, before this stops; and all of it.
    CarriedJob run_left(Instant now) const;
    void leave(CarriedJob left, WorldJobRun& run) const;
    void take_up_run();     // its first one here, which goes on
    void begin_interval();  // to its next save: its state is in GPU memory, and saved

    // Its processes are gone, or more than these: it goes back to what is left.
    void lose_unsaved(const StateLoss& loss);
    // One that does not run loses what it has in its nodes' memory, if it has anything there.
    void lose_copies(const StateLoss& loss) {
        if (parts != nullptr) lose_unsaved(loss);
    }
    // What it loses when one of its nodes leaves.
    StateLoss loss_of(NodeIndex node) const;
    // What it computes from now on is wrong, and so is what it saves.
    void corrupt(Instant now, std::size_t corruption);
    // Somebody has found out. True if it had done any of it.
    bool lose_suspect();
};

// Others take no memory.
class LiveJobs {
  public:
    explicit LiveJobs(std::size_t jobs) : jobs_(jobs) {}
    std::size_t size() const { return jobs_.size(); }  // of all
    bool live(JobIndex job) const { return jobs_[job] != nullptr; }
    bool runs(JobIndex job) const { return live(job) && jobs_[job]->runs(); }
    void begin(JobIndex job, LiveJob state) {
        jobs_[job] = std::make_unique<LiveJob>(std::move(state));
        const WorldJob& it = jobs_[job]->job;
        jobs_[job]->status.submitted = it.goes_on ? Instant::min() : it.submit;
    }
    void end(JobIndex job) { jobs_[job].reset(); }
    LiveJob& operator[](JobIndex job) const {
        RY_CHECK(live(job));
        return *jobs_[job];
    }

  private:
    std::vector<std::unique_ptr<LiveJob>> jobs_;
};

// Events of one component of the engine, each of a job, of a reservation or of nobody.
struct WorldClock {
    enum Kind : std::uint32_t {
        submission,  // of the next job in order
        eligible,
        prolog_fails,
        run_ends,
        notices,
        waited_enough,  // for nodes that it lacks
        epilog_ends,
        decision,
        window_begins,  // of a reservation
        window_ends,
        sends,         // a job's first step begins
        links_change,  // who sends over which links
        kinds,
    };
    CampaignEngine& engine;
    CampaignEngine::ComponentId component;

    Instant now() const { return engine.now(); }
    void schedule(Instant at, Kind kind, std::uint32_t index) const {
        engine.schedule(at, component, index * kinds + kind);
    }
    // What ends the phase that a job is in.
    void schedule_end(LiveJob& of, Instant at, Kind kind, JobIndex job) const {
        of.event = engine.schedule_cancellable(at, component, job * kinds + kind);
    }
};

}  // namespace railyard
