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

#include <optional>
#include <string>
#include <vector>

#include "models/training/job_description.h"
#include "models/training/job_nodes.h"
#include "models/training/job_phases.h"
#include "models/training/job_stages.h"
#include "models/training/job_work.h"
#include "models/training/silent_corruption.h"

namespace railyard {

// What faults did to one job, or to many, beside interrupting them.
struct FaultCounts {
    SlowPartCounts slow_parts;
    std::int64_t storms = 0;             // that held jobs up, or ended them
    std::int64_t corruptions_found = 0;  // silent ones, when steps had been kept since
    std::int64_t nodes_blamed = 0;       // that were sound
    std::int64_t network_outages = 0;

    void add(const FaultCounts& other);
};

struct JobOutcome : FaultCounts, StepCounts, PhaseTimes {
    CheckpointOutcome checkpoint;
    std::vector<std::int64_t> interruptions;  // by cause
    std::int64_t planned_interruptions = 0;
    std::int64_t strikes_while_down = 0;  // failures that found nothing to interrupt
    std::int64_t shrinks = 0;
    std::int64_t nodes_changed = 0;  // stops to swap a slow node or to grow again
    Duration data_starved{};  // its steps waited for data that others kept the store from giving
    Duration lost_work{};     // of unexpected interruptions, as time of the job
    Duration job_time{};      // from begin to the end
    bool finished = false;    // target_steps reached, or the end of the last stage
    // For a job with stages.
    std::vector<StageOutcome> stages;
    std::int64_t pauses = 0;
    Duration pause_left{};  // at the end, of the pause or the planned stop under way
    bool pause_restarts = false;
    std::vector<bool> had_pause;  // by pause
    StepsAtRisk at_risk;          // what it has done and not saved
};

// The job with that behind it: it begins in the stage that it has come to.
JobSpec job_after(JobSpec job, const JobSoFar& so_far);
// Another campaign goes on with the job as this one has left it.
void add_to(JobSoFar& so_far, const JobSpec& job, const JobOutcome& outcome);

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

    JobPhases& phases() { return phases_; }  // for those who follow it, from its begin on
    // Whose owner it is; set before the job begins, for a spec that says what steps take over it.
    void set_network(const NetworkParts& network) { work_.set_network(network); }
    // For people: what has no way left, and what would have to be mended; empty: nothing waits for that.
    std::string no_way() const;

    // The campaign opens on a job whose state has just been restored: it holds its nodes and runs.
    void begin();
    // The stores can lose what has been saved; said before the job begins.
    void stores_may_lose() { goes_back_far_ = true; }
    // Books what is under way at the engine's present instant. Call once, after the engine has run.
    void end();

    void handle(std::uint32_t kind) override;
    bool strike(const Strike& strike) override;
    void node_available();  // a spare, or a node that has come back

    // The nodes in these slots fail now. False: it does not run, and will meet them when it does.
    bool nodes_failed(const NodePool::Struck& struck);

    void safe(const SavedStates::State& state) override;
    void stall_over() override;
    void pace_changed() override;
    void moved_on() override;
    void restored() override;
    void first_batch_there() override;
    void network_changed() override;
    void pace_changed(std::size_t slot) override;
    void slow_part_found(std::size_t part) override;
    double slowdown(std::uint32_t condition) const override { return work_.slowdown(condition); }
    void data_lost(std::size_t store, double fraction, StorePart last) override;

    JobOutcome outcome() const;  // so far

  private:
    enum Kind : std::uint32_t {
        segment_end,
        phase_end,
        maintenance_due,
        corruption_shows,
        date_due,  // of a stage or a pause
    };

    void enter(JobPhase phase);
    void end_at(Instant at, Kind kind);  // what the job does now
    void end_after(Duration span) { end_at(engine_.now() + span, phase_end); }
    void proceed();  // from the phase that is over
    void start_segment();
    void pass_undisturbed();
    void begin_checkpoint();
    bool stop_pending() const { return stages_.stop_planned() || nodes_.change_planned(); }
    void begin_stop();
    void change_nodes();
    void get_nodes();
    void corruption_found();
    bool feels(const Storm& storm) const;
    void hold_up(const Strike& strike, const Storm& storm);
    void go_on();
    // States with more steps than `trusted` are worth nothing.
    void interrupt(const NodePool::Struck& struck, Duration detection,
                   std::optional<std::int64_t> trusted = std::nullopt);
    void record(const char* kind, std::string cause, std::int64_t slot, std::int64_t steps);

    CampaignEngine& engine_;
    const JobSpec& spec_;
    const std::vector<FailureCause>& causes_;
    NodePool& pool_;
    CampaignEngine::ComponentId id_;

    JobPhases phases_;
    EventId ends_;  // what it does now
    Instant ends_at_{};
    JobPhase held_ = JobPhase::running;  // what a storm holds up
    Duration held_left_{};               // of a restore of a fixed length
    bool waits_for_network_ = false;     // no way is left for its next step

    StoreService& stores_;
    std::size_t client_;  // its nodes, among the stores'
    WayToStore way_;
    Saver saver_;
    std::optional<DataFeed> feed_;
    bool goes_back_far_;  // what is in a store can be lost as well

    JobStages stages_;
    JobNodes nodes_;
    JobWork work_;
    NodePool::Struck failed_;  // what the job recovers from, and the nodes that leave for it
    SilentCorruption corruption_;
    Instant began_{};
    JobOutcome outcome_;  // beside what the parts count
};

}  // namespace railyard
