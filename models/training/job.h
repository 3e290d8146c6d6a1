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

#include <functional>
#include <vector>

#include "models/failure/failure.h"
#include "models/training/data_feed.h"
#include "models/training/ledger.h"
#include "models/training/network_parts.h"
#include "models/training/node_pool.h"
#include "models/training/running_steps.h"
#include "models/training/saver.h"
#include "models/training/silent_corruption.h"
#include "models/training/stages.h"
#include "models/training/step.h"
#include "models/training/steps_done.h"

namespace railyard {

// What a job does when nodes are lost.
enum class RecoveryPolicy : std::uint8_t {
    spare,       // hot spares take the empty places; without one the job waits
    requeue,     // it is torn down whatever has failed, and goes through the queue
                 // again
    in_process,  // processes restart where they are; a spare takes a lost node's
                 // place
    shrink,      // as spare; without one it goes on with fewer replicas until nodes
                 // are back
};

// The job on fewer nodes.
struct SmallerJob {
    std::int64_t nodes = 0;
    std::int64_t replicas = 0;
    StepTime step;
    std::vector<Duration> slowed;  // as JobSteps::slowed
};

// How much longer a step takes while these parts of the network are broken, by size (0: whole, then as
// JobSteps::smaller) and conditions of slow parts; nothing when no way is left.
using OverNetwork = std::function<std::optional<Duration>(
    const NetworkState& broken, std::size_t size, std::uint32_t conditions)>;

struct RecoverySpec {
    RecoveryPolicy policy = RecoveryPolicy::spare;
    double misdiagnosis = 0;  // of diagnoses, how many blame another node
    SearchSpec search;
    Duration replacement{};
    Duration restart{};
    std::optional<Duration> restore;  // otherwise what reading the state back takes
    bool recompute = true;            // false: the job goes on where it was, as if every
                                      // step had been saved
};

struct MaintenanceSpec {
    Duration every{};  // zero: none
    Duration duration{};
    Duration since{};  // the campaign's start, when the first one counts from an earlier instant
};

// What a job's steps take on the places and the network that it has got.
struct JobSteps {
    StepTime step;
    std::vector<Duration> slowed;     // what a step takes longer, by the conditions
                                      // of slow parts (bits)
    std::vector<SmallerJob> smaller;  // the largest first; with RecoveryPolicy::shrink
    OverNetwork over_network{};       // of a job on a network whose parts break
    std::vector<StageSpec> stages;    // instead of `step`, from the first on; none: `step` is all
};

struct JobSpec : JobSteps {
    std::int64_t nodes = 0;
    std::int64_t gpus_per_node = 0;
    std::int64_t replicas = 1;  // data-parallel, that share the batch
    std::vector<PauseSpec> pauses;
    std::int64_t target_steps = 0;  // the job ends after these; 0: it runs until the campaign ends
    CheckpointSpec checkpoint;
    RecoverySpec recovery;
    MaintenanceSpec maintenance;
    std::optional<DataFeedSpec> data;  // read from a store while the job runs
    // What its nodes together move: to and from all stores, and by store.
    struct StorePath {
        Bandwidth read;
        Bandwidth write;
    };
    StorePath network;
    std::vector<StorePath> store_paths;

    std::int64_t gpus() const { return nodes * gpus_per_node; }
};

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
    struct Stage {
        StepSchedule::Done kept;
        Duration wall{};  // from its beginning to the next one's
    };
    std::vector<Stage> stages;
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
    std::int64_t nodes() const { return spec_.nodes - static_cast<std::int64_t>(missing_.size()); }
    std::int64_t gpus() const { return nodes() * spec_.gpus_per_node; }
    // Nodes that are missing at a job's full size had their part in its steps.
    std::int64_t gpus_of_steps() const {
        return size_ == 0 ? wanted_nodes() * spec_.gpus_per_node : gpus();
    }
    std::int64_t replicas() const;
    const StepTime& step() const;  // of the size, or the stage, that it has now
    std::int64_t steps_to_target() const;
    bool stop_pending() const { return maintenance_pending_ || change_pending_ || planned_stop_; }
    // Stages and pauses (job_stages.cpp).
    bool staged() const { return !spec_.stages.empty(); }
    void schedule_dates();
    void look_at_schedule();
    void enter_stage(std::size_t stage);
    void begin_planned_stop();
    void begin_pause(std::size_t pause);
    void return_nodes();
    std::int64_t wanted_nodes() const { return schedule_.stage(stage_).nodes; }
    bool lacks_nodes() const { return nodes() < wanted_nodes(); }
    std::int64_t checkpoint_steps() const;
    void end_stages(Duration partial);
    void feel(const NodePool::Struck& struck);
    void meet_what_is_broken();
    // Nodes come and go.
    void part_with(const NodePool::Struck& struck);
    void part_with_slow_nodes();
    void left(std::int64_t slot);
    void state_leaves(std::int64_t slot);
    void get_nodes();
    bool shrink();
    bool could_grow() const;
    void begin_stop();
    void change_nodes();
    // Slow parts and silent corruption.
    Duration slowed_by_parts() const;
    // What a step takes longer on a network of which something is broken; nothing when no way is left.
    std::optional<Duration> slowed_by_network() const {
        if (network_ == nullptr || network_->broken().empty()) return Duration{};
        return spec_.over_network(network_->broken(), size_, conditions_);
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

    StepSchedule schedule_;
    Pauses pauses_;
    std::size_t stage_ = 0;
    Instant stage_since_{};
    std::optional<Duration> planned_stop_;      // for a stage or a pause; so long
    std::optional<std::size_t> pause_to_stop_;  // the pause that it is for

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
    std::vector<std::int64_t> missing_;  // slots without a node
    std::size_t size_ = 0;               // 0: full; then spec_.smaller[size_ - 1]

    std::optional<SlowParts> slow_;
    std::vector<std::size_t> found_slow_;  // their numbers
    std::uint32_t conditions_ = 0;         // of the slow parts at present, bits
    SilentCorruption corruption_;
    Instant began_{};
    JobOutcome outcome_;
};

}  // namespace railyard
