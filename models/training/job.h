#pragma once
// One training job on the campaign clock: it steps, saves, fails, is found to
// have failed, gets nodes, starts again, reads its state back, and repeats what
// was lost.
//
//                     +--------------- planned maintenance <--------------+
//                     v                                                   |
//     restart --> restore --> running <--> checkpointing -----------------+
//        ^                       |               |
//        |        any failure while processes run (restart, restore, running,
//        checkpointing) |                       v
//        +-- replacement <-- detection          replacement waits in
//        requeue_wait for a spare
//
// Stages and pauses (stages.h) come between two steps: a pause without a restart is a phase of its own
// beside running, a stage or a pause with one is a planned stop.
//
// A slow part slows the steps until somebody finds it; then, as when lost nodes
// are back after the job has gone on without them, the job saves, changes nodes
// and starts again. Silent corruption changes nothing but what was saved since
// is worth.
//
// A pause storm holds a running job up: it then goes on where it was, or one of
// its connections has given up and it has failed. Where the store is on the
// network that storms, a write, an upload and a restore stand still as long.
// Else the job sends little while it saves or comes back, and only a fatal
// storm matters.
//
// Steps are skipped in bulk: between two things that can happen, a segment of
// whole steps is one event. Failures strike while the job's processes run.
// Those that fall into detection, replacement or waiting find nothing to
// interrupt and are counted apart; for exponential hazards, which have no
// memory, this is the same law as failure clocks that stand still meanwhile.

#include <vector>

#include "models/failure/failure.h"
#include "models/training/data_feed.h"
#include "models/training/job_description.h"
#include "models/training/job_nodes.h"
#include "models/training/job_stages.h"
#include "models/training/ledger.h"
#include "models/training/network_parts.h"
#include "models/training/node_pool.h"
#include "models/training/running_steps.h"
#include "models/training/saver.h"
#include "models/training/silent_corruption.h"
#include "models/training/step.h"
#include "models/training/steps_done.h"

namespace railyard {

enum class JobPhase : std::uint8_t {
    running,
    checkpointing,
    storm_stall,
    detection,
    replacement,
    requeue_wait,
    restart,
    restore,
    maintenance,
    first_batch,  // its loaders fill their shuffle buffers
    pause,        // between two steps, as the scenario says
    done,
};
std::string_view phase_name(JobPhase phase);  // snake_case

// From this instant on, until the next.
struct PhaseStart {
    Instant at;
    JobPhase phase = JobPhase::done;
};

// Something that happened to the job or a node, for people and databases.
struct CampaignEvent {
    Instant at;
    const char* kind = "";   // interruption, resumed, checkpoint_safe, maintenance, finished
    std::string cause;       // of an interruption
    std::int64_t slot = -1;  // of an interruption: the job's node slot
    std::int64_t steps = 0;  // steps safe (checkpoint_safe, resumed) or lost (interruption)
    std::int64_t job =
        -1;  // of many jobs: whose; slot is then its node, steps what it has left to do
};

// What faults did to one job, or to many, beside interrupting them.
struct FaultCounts {
    SlowPartCounts slow_parts;
    std::int64_t storms = 0;             // that held jobs up, or ended them
    std::int64_t corruptions_found = 0;  // silent ones, when steps had been kept since
    std::int64_t nodes_blamed = 0;       // that were sound
    std::int64_t network_outages = 0;

    void add(const FaultCounts& other);
};

struct JobOutcome : FaultCounts, StepCounts {
    CheckpointOutcome checkpoint;
    std::vector<std::int64_t> interruptions;  // by cause
    std::int64_t planned_interruptions = 0;
    std::int64_t strikes_while_down = 0;  // failures that found nothing to interrupt
    std::int64_t shrinks = 0;
    std::int64_t nodes_changed = 0;  // stops to swap a slow node or to grow again
    // Time from an unexpected interruption to running again, by phase.
    Duration detection{}, replacement{}, requeue_wait{}, restart{}, restore{};
    Duration storm_stall{};
    Duration data_starved{};         // its steps waited for data that others kept the
                                     // store from giving
    GpuNanoseconds first_batch = 0;  // waiting while shuffle buffers fill
    Duration lost_work{};            // of unexpected interruptions, as time of the job
    Duration job_time{};             // from begin to the end
    bool finished = false;           // target_steps reached, or the end of the last stage
    // For a job with stages.
    std::vector<StageOutcome> stages;
    std::int64_t pauses = 0;
    Duration paused{};      // without those that ended in a restart
    Duration pause_left{};  // at the end, of the pause or the planned stop under way
    bool pause_restarts = false;
    std::vector<bool> had_pause;  // by pause
};

// The job with that behind it: it begins in the stage that it has come to.
JobSpec job_after(JobSpec job, const JobSoFar& so_far);
// Another campaign goes on with the job as this one has left it.
void add_to(JobSoFar& so_far, const JobSpec& job, const JobOutcome& outcome);

// Told when the job begins to do something else: what its nodes draw changes then.
class PhaseWatcher {
  public:
    virtual ~PhaseWatcher() = default;
    virtual void phase_changed(JobPhase now) = 0;
};

class TrainingJob : public CampaignEngine::Component,
                    public FailureSource::Target,
                    public Checkpointer::Job,
                    public DataFeed::Job,
                    public NetworkParts::Owner,
                    public SlowParts::Owner,
                    public FailingStore::DataOwner {
  public:
    // `events` may be nullptr. All references must outlive the job.
    TrainingJob(CampaignEngine& engine, const JobSpec& spec,
                const std::vector<FailureCause>& causes, NodePool& pool, StoreService& stores,
                Ledger& ledger, std::vector<CampaignEvent>* events);

    // Keeps every phase from now on; the last one is done, at the end. Call before begin().
    void log_phases(std::vector<PhaseStart>& phases) { phases_ = &phases; }
    // Set before the job begins; it outlives the job.
    void set_watcher(PhaseWatcher& watcher) { watcher_ = &watcher; }

    // Whose owner it is; set before the job begins, for a spec that says what steps take over it.
    void set_network(const NetworkParts& network) { network_ = &network; }
    bool waits_for_network() const { return waits_for_network_; }

    // The campaign opens on a job whose state has just been restored: it holds its nodes and runs.
    void begin();
    // The stores can lose what has been saved; said before the job begins.
    void stores_may_lose() { goes_back_far_ = true; }
    // Books what is under way at the engine's present instant. Call once, after the engine has run.
    void end();

    void handle(std::uint32_t kind) override;
    void strike(const Strike& strike) override;
    void node_available();  // a spare, or a node that has come back

    void safe(const SavedStates::State& state) override;
    void stall_over() override { after_checkpoint(); }
    void uploads_changed() override;
    void moved_on() override;
    void restored() override { resume(); }
    void data_wait_changed() override;
    void network_changed() override;
    void pace_changed(std::size_t slot) override;
    void slow_part_found(std::size_t part) override;
    double slowdown(std::uint32_t condition) const override;
    void first_batch_there() override;
    void data_lost(std::size_t store, double fraction, StorePart last) override;
    // The nodes in these slots fail now. False: it does not run, and will meet them when it does.
    bool nodes_failed(const NodePool::Struck& struck);

    const JobOutcome& outcome() const { return outcome_; }
    JobPhase phase() const { return phase_; }

  private:
    enum Kind : std::uint32_t {
        segment_end,
        phase_end,
        maintenance_due,
        corruption_shows,
        date_due,  // of a stage or a pause
    };

    void enter(JobPhase phase);
    void end_phase_after(Duration span, Kind kind);
    void book_phase();
    void start_segment();
    void plan_segment();
    std::int64_t steps_ahead() const;  // of the segment, that nothing which is known ends
    bool only_steps_and_saves() const;
    void pass_undisturbed();
    void run_steps(std::int64_t steps, Duration already_done);
    void complete_steps(std::int64_t steps);
    Duration stop_steps();  // completes the whole ones; returns the time spent in the next one
    void resume_step(Duration partial);
    void finish_step_under_way();  // and then look again at what comes next
    StepTime next_step() const;    // as things are now
    Duration extra_wait() const { return feed_ ? feed_->extra_wait(step().data_wait) : Duration{}; }
    void begin_checkpoint();
    bool saves() const { return checkpointer_.saves(); }
    Duration lose_what_is_not_saved();  // which has taken so long
    void fail_checkpoints(const StateLoss& loss);
    void lose_work(Duration partial);
    bool exposed() const;                               // processes run
    std::int64_t done() const { return book_.done(); }  // steps
    std::int64_t gpus() const { return nodes_.count() * spec_.gpus_per_node; }
    // Nodes that are missing at a job's full size had their part in its steps.
    std::int64_t gpus_of_steps() const {
        return nodes_.smaller() == nullptr ? stages_.stage().nodes * spec_.gpus_per_node : gpus();
    }
    std::int64_t replicas() const;
    const StepTime& step() const;  // of the size, or the stage, that it has now
    std::int64_t steps_to_target() const;
    bool stop_pending() const {
        return maintenance_pending_ || change_pending_ || stages_.stop_planned();
    }
    void begin_planned_stop();
    void begin_pause(const PauseSpec& pause);
    void feel(const NodePool::Struck& struck);
    void meet_what_is_broken();
    // Nodes come and go.
    void states_leave(const JobNodes::Slots& slots);
    void part_with_slow_nodes();
    void get_nodes();
    void begin_stop();
    void change_nodes();
    // Slow parts and silent corruption.
    Duration slowed_by_parts() const;
    // What a step takes longer on a network of which something is broken; nothing when no way is left.
    std::optional<Duration> slowed_by_network() const {
        if (network_ == nullptr || network_->broken().empty()) return Duration{};
        return spec_.over_network(network_->broken(), nodes_.size(), nodes_.conditions());
    }
    void stand_still();
    void corrupt(const Strike& strike);
    void corruption_found();
    void release_network();
    void after_checkpoint();
    void begin_restore();
    bool on_the_store() const;  // what it waits for now is bytes to or from there
    void hold_up(const Strike& strike, const Storm& storm);
    void go_on();
    // States with more steps than `trusted` are worth nothing.
    void interrupt(const NodePool::Struck& struck, Duration detection,
                   std::optional<std::int64_t> trusted = std::nullopt);
    void begin_maintenance();
    void stop_for(Duration span);  // all processes are gone, and what memory held
    void drain();
    void proceed_from(JobPhase phase);
    void resume();
    Duration span_of(JobPhase phase) const;
    void record(const char* kind, std::string cause, std::int64_t slot, std::int64_t steps);

    CampaignEngine& engine_;
    const JobSpec& spec_;
    const std::vector<FailureCause>& causes_;
    NodePool& pool_;
    Ledger& ledger_;
    std::vector<CampaignEvent>* events_;
    std::vector<PhaseStart>* phases_ = nullptr;
    PhaseWatcher* watcher_ = nullptr;
    CampaignEngine::ComponentId id_;

    JobPhase phase_ = JobPhase::done;
    Instant phase_since_{};
    EventId phase_event_;
    Instant phase_ends_{};               // of phases of a known length
    JobPhase held_ = JobPhase::running;  // what a storm holds up
    const NetworkParts* network_ = nullptr;
    bool waits_for_network_ = false;  // no way is left for its next step
    bool network_held_ = false;       // and with it the bytes to and from the stores
    Duration held_left_{};            // of a restore of a fixed length

    StepBook book_;
    RunningSteps running_;  // with recompute off, a failure carries the step under way on

    JobStages stages_;
    StoreService& stores_;
    std::size_t client_;  // its nodes, among the stores'
    Saver checkpointer_;
    std::optional<DataFeed> feed_;
    bool goes_back_far_ = false;  // what is in a store can be lost as well
    Duration stalled_{};          // in all, waiting for checkpoints

    bool maintenance_pending_ = false;
    bool recovering_from_failure_ = false;
    bool change_pending_ = false;
    Strike failure_;  // what the job recovers from
    std::vector<std::int64_t> failed_slots_;

    JobNodes nodes_;
    SilentCorruption corruption_;
    Instant began_{};
    JobOutcome outcome_;
};

}  // namespace railyard
