#pragma once
// Many jobs on the campaign clock, from submission to end. README.md has the model.

#include <memory>
#include <vector>

#include "models/scheduler/maintenance_windows.h"
#include "models/scheduler/power_room.h"
#include "models/scheduler/world_border.h"
#include "models/scheduler/world_holdings.h"
#include "models/scheduler/world_runs.h"

namespace railyard {

class WorldSimulation : public WorldView,
                        public CampaignEngine::Component,
                        public WorldRepair::Owner,
                        public WorldRuns::Owner,
                        public WorldBorder::Owner {
  public:
    WorldSimulation(CampaignEngine& engine, const WorldRun& run, WorldLedger& ledger);
    void start();
    // Books what is under way at the engine's present instant. Call once, after the engine has run.
    WorldOutcome end_campaign();

    // For the scheduler.
    const WorldJobStatus& status(JobIndex job) const override;
    void bind(JobIndex job, const Allocation& gpus) override;
    void unbind(JobIndex job, NodeIndex node) override;
    bool runs_on(JobIndex job, NodeIndex node) const override;
    void halt(JobIndex job) override;
    void requeue(JobIndex job, Instant eligible, JobEnd otherwise) override;
    void end(JobIndex job, JobEnd how) override;
    void suspend(JobIndex job) override;
    void resume(JobIndex job) override;
    void drain(NodeIndex node) override { repair_.drain(node); }
    void wake_at(Instant at) override { clock_.schedule(at, WorldClock::decision, 0); }
    void promise(JobIndex job, Instant start) override;
    bool power_for(JobIndex job) const override { return power_.fits(job); }
    bool answers(NodeIndex node) const override { return repair_.answers(node); }
    void note(const char* what, JobIndex job, NodeIndex node) override;

    // From the engine, and from the nodes.
    void handle(std::uint32_t event) override;
    void before_node_changes(NodeIndex node) override;
    void after_node_changed(NodeIndex node) override;
    void struck(NodeIndex node, const Strike& strike) override;
    void silent(NodeIndex node) override;
    void memory_lost(NodeIndex node) override;
    void corruption_found(std::size_t corruption, NodeIndex node, const Strike& strike) override;
    // From the runs.
    void book_free() override;
    void run_over(JobIndex job, bool at_limit) override;
    void run_failed(JobIndex job, NodeIndex node) override;
    void run_grows(JobIndex job) override;
    // From the border to an earlier campaign.
    void wait(JobIndex job, Instant since) override;
    void close(JobIndex job, JobEnd how) override;

  private:
    using Unsaved = WorldRuns::Unsaved;

    void decide_soon();
    void submit_next();
    void submit(JobIndex job, bool runs_on);
    void release(JobIndex job);
    void go_back(JobIndex job, NodeIndex node, std::size_t cause);
    void stop(JobIndex job, Unsaved unsaved);
    void leave(JobIndex job, const LiveJob::Next& next);
    void after_epilog(JobIndex job);
    void record(const char* what, JobIndex job, std::string cause = {},
                NodeIndex node = no_node) const {
        run_.record(now(), what, job, std::move(cause), node, jobs_[job].work.left());
    }

    const WorldRun& run_;
    WorldLedger& ledger_;
    WorldClock clock_;
    PowerRoom power_;
    WorldRepair repair_;
    WorldBooks books_;
    MaintenanceWindows windows_;
    std::unique_ptr<WorldScheduler> scheduler_;
    LiveJobs jobs_;
    WorldHoldings holdings_;
    std::vector<JobIndex> suspended_;
    JobIndex submitted_ = 0;
    JobIndex over_ = 0;
    std::vector<std::int64_t> held_;  // by partition: that wait or run, or are on their way back
    bool deciding_ = false;
    WorldBooks::Needs needs_;
    Instant booked_until_{};
    WorldOutcome outcome_;
    JobSizes sizes_;
    WorldRuns runs_;
    WorldBorder border_;
};

}  // namespace railyard
