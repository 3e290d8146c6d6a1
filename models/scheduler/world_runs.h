#pragma once
// The runs of jobs: from the instant at which a job holds all its GPUs to its end, or to what stops it.
//
// A run is a plan in closed form (RunPlan), and another one whenever its pace changes: by slow parts, other
// jobs on its links, what breaks of the network, or a storm. One that saves to stores and tiers, or reads
// its data from a store, goes from stage to stage instead, as its parts say. What it has done is booked when
// the plan ends or is replaced.

#include <optional>

#include "models/scheduler/job_sizes.h"
#include "models/scheduler/run_books.h"
#include "models/scheduler/world_job_strikes.h"
#include "models/scheduler/world_links.h"
#include "models/scheduler/world_repair.h"

namespace railyard {

class WorldRuns : public WorldParts::Owner, public WorldLinks::Owner, public WorldRepair::Runs {
  public:
    class Owner {
      public:
        virtual ~Owner() = default;
        // Before something changes behind the owner's back: what no job holds is booked up to now.
        virtual void book_free() = 0;
        // All its steps are done, or its time is up. It runs still.
        virtual void run_over(JobIndex job, bool at_limit) = 0;
        // It has stopped by itself, or to leave a slow node, and gathers.
        virtual void run_failed(JobIndex job, NodeIndex node) = 0;
        // It has saved and stopped, to start again on more of the nodes that it holds.
        virtual void run_grows(JobIndex job) = 0;
    };
    // `submitted`: so many of the jobs by now. References must outlive it.
    WorldRuns(const WorldClock& clock, const WorldView& world, const WorldRun& run,
              WorldRepair& repair, LiveJobs& jobs, JobSizes& sizes, const JobIndex& submitted,
              WorldOutcome& outcome, Owner& owner);
    void start_clock();
    void end_campaign();  // once no run is left

    // The job has all its GPUs. `ran`: so much of its time limit has passed.
    void start(JobIndex job, Duration ran = {});
    // The processes of a running job stand still where they are, and give up its GPUs; then go on there.
    void suspend(JobIndex job);
    void resume(JobIndex job);
    using Unsaved = RunBooks::Unsaved;
    void stop(JobIndex job, Unsaved unsaved, const StateLoss& loss = {});
    void handle(WorldClock::Kind kind, JobIndex job);
    void forget(JobIndex job);  // it is over
    void change_pace_soon(JobIndex job) override;
    // One that has been stopped by a node holds its GPUs until it notices, or its time is up.
    void stall(JobIndex job, NodeIndex node, Duration unnoticed);

    // To the runs on a node.
    void storm(NodeIndex node, const Strike& strike) override;
    void pace_changed(NodeIndex node) override;
    void leave_slow_node(NodeIndex node) override;
    void corrupted(NodeIndex node, std::size_t corruption) override;

  private:
    void stall_over(JobIndex job) override;
    void restored(JobIndex job) override;
    void moved_on(JobIndex job) override;
    void pace_of_parts_changed(JobIndex job) override;
    void first_batch_there(JobIndex job) override;
    void copies_lost(JobIndex job) override;
    void network_changed() override;

    bool meets_broken_node(JobIndex job);
    void join_others(JobIndex job);
    void expect_end(JobIndex job);
    void end_run(JobIndex job);
    void left(JobIndex job);
    void change_pace(JobIndex job);
    void stand_still(JobIndex job, RunPlan& plan);
    // Stages (world_stages.cpp).
    void begin_stage(JobIndex job, RunStage stage, const RunPlan& plan, Duration already = {});
    void book_stage(JobIndex job);
    void end_stage(JobIndex job);
    void begin_interval(JobIndex job);
    void begin_work(JobIndex job);
    void after_steps(JobIndex job);
    void resume_step(JobIndex job, Duration partial);
    void begin_save(JobIndex job);
    void leave_when_saved(JobIndex job);
    // Storms (world_storms.cpp).
    void hold_up(JobIndex job, NodeIndex node, const Strike& strike);
    void storm_over(JobIndex job);

    const WorldClock& clock_;
    const WorldRun& run_;
    const WorldCluster& cluster_;
    WorldRepair& repair_;
    LiveJobs& jobs_;
    JobSizes& sizes_;
    const JobIndex& submitted_;
    WorldOutcome& outcome_;
    Owner& owner_;
    std::optional<WorldJobStrikes> strikes_;
    std::optional<WorldParts> parts_;
    WorldLinks links_;
    RunBooks books_;
};

}  // namespace railyard
