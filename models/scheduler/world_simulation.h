#pragma once
// Many jobs on the campaign clock, from submission to end. README.md has the model.

#include <map>
#include <memory>
#include <vector>

#include "models/scheduler/power_room.h"
#include "models/scheduler/world.h"
#include "models/scheduler/world_books.h"
#include "models/scheduler/world_job_strikes.h"
#include "models/scheduler/world_parts.h"
#include "models/scheduler/world_progress.h"
#include "models/scheduler/world_repair.h"
#include "models/scheduler/world_work.h"
#include "sim/check.h"

namespace railyard {

class WorldSimulation : public WorldView,
                        public CampaignEngine::Component,
                        public WorldRepair::Owner,
                        public WorldParts::Owner,
                        public NetworkParts::Owner {
  public:
    WorldSimulation(CampaignEngine& engine, const WorldRun& run, WorldLedger& ledger);
    void start();
    // Books what is under way at the engine's present instant. Call once, after the engine has run.
    void end_campaign();
    WorldOutcome take_outcome() { return std::move(outcome_); }

    // For the scheduler.
    const WorldSpec& spec() const override { return run_.spec; }
    const WorldCluster& cluster() const override { return cluster_; }
    const WorldJob& job(JobIndex job) const override { return run_.jobs.jobs[job]; }
    const WorldJobStatus& status(JobIndex job) const override;
    Instant now() const override { return engine_.now(); }
    void bind(JobIndex job, const Allocation& gpus) override;
    void unbind(JobIndex job, NodeIndex node) override;
    void halt(JobIndex job) override;
    void requeue(JobIndex job, Instant eligible, JobEnd otherwise) override;
    void end(JobIndex job, JobEnd how) override;
    void suspend(JobIndex job) override;
    void resume(JobIndex job) override;
    void drain(NodeIndex node) override { repair_.drain(node); }
    void wake_at(Instant at) override;
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
    void storm(NodeIndex node, const Strike& strike) override;
    void pace_changed(NodeIndex node) override;
    void leave_slow_node(NodeIndex node) override;
    void memory_lost(NodeIndex node) override;
    void corrupted(NodeIndex node, std::size_t corruption) override;
    void corruption_found(std::size_t corruption, NodeIndex node, const Strike& strike) override;
    void stall_over(JobIndex job) override;
    void restored(JobIndex job) override;
    void moved_on(JobIndex job) override;
    void pace_of_parts_changed(JobIndex job) override;
    void first_batch_there(JobIndex job) override;
    void network_changed() override;
    void copies_lost(JobIndex job) override;

  private:
    enum Kind : std::uint32_t {
        submission,  // of the next job in order
        eligible,
        prolog_fails,
        run_ends,
        notices,
        epilog_ends,
        decision,
        window_begins,  // of a reservation
        window_ends,
        sends,         // a job's first step begins
        links_change,  // who sends over which links
        kinds,
    };
    // new_pace: another plan takes its place.
    // stage_over: of a job with parts.
    enum class RunEnd : std::uint8_t {
        done,
        limit,
        own_failure,
        new_pace,
        left_slow_node,
        stage_over
    };
    // What a run is doing. `whole`: all of it, with stalls that always take the same.
    enum class Stage : std::uint8_t { whole, setting_up, restoring, first_batch, working, saving };
    // What becomes of a job when its epilog is over.
    struct Next {
        bool waits = false;
        Instant eligible{};
        JobEnd how = JobEnd::completed;
    };
    // By a storm, until its pace changes.
    struct HeldUp {
        NodeIndex node = 0;  // whose NIC pauses
        Strike strike;
        RunPlan rest;               // of its run, from the step that was stopped on
        bool pace_changes = false;  // at the end of that step
    };
    struct Job {
        explicit Job(WorldWork of_it) : work(std::move(of_it)) {}

        WorldJobStatus status;
        RunPlan run;
        Stage stage = Stage::whole;
        std::int64_t save_every = 0;  // steps
        Instant run_since{};          // of the plan: it began, or its pace has changed
        StepTime step;
        WorldWork work;
        Instant own_failure = Instant::max();
        Instant sends_from = Instant::max();        // of a run that shares links
        std::vector<SharedLinks::Share> waits_for;  // with this step
        Instant pace_changes_at = Instant::max();
        NodeIndex slow_node = no_node;  // that it leaves when its pace changes
        NetworkState broken;            // that its routes meet, with this step
        bool cut_off = false;           // no way is left: it stands still
        std::unique_ptr<HeldUp> storm;  // few jobs are ever held up by one
        Duration carried{};             // done of the step that a storm stopped
        bool rerouted = false;  // it left its links, and comes back to others with its next pace
        RunEnd run_end = RunEnd::done;
        EventId event;  // that ends its phase
        NodeIndex failed_node = no_node;
        Instant phase_since{};
        Next next;
        std::uint64_t own_failures = 0;
    };

    // The state of jobs that have been submitted and are not over; others take no memory.
    class LiveJobs {
      public:
        explicit LiveJobs(std::size_t jobs) : jobs_(jobs) {}
        std::size_t size() const { return jobs_.size(); }  // of all
        bool live(JobIndex job) const { return jobs_[job] != nullptr; }
        void begin(JobIndex job, WorldWork work) {
            jobs_[job] = std::make_unique<Job>(std::move(work));
        }
        void end(JobIndex job) { jobs_[job].reset(); }
        Job& operator[](JobIndex job) const {
            RY_CHECK(live(job));
            return *jobs_[job];
        }

      private:
        std::vector<std::unique_ptr<Job>> jobs_;
    };

    void schedule(Instant at, Kind kind, std::uint32_t index);
    void schedule_for(JobIndex job, Instant at, Kind kind);  // cancellable, ends its phase
    void decide_soon();
    void book_free();
    void prolog_finds(JobIndex job);
    void submit_next();
    void wait(JobIndex job, Instant since);
    void take(JobIndex job, const Allocation& gpus);
    void give_back(JobIndex job, const Allocation& gpus);
    void release(JobIndex job);
    void start_run(JobIndex job);
    // So many GPUs of a job, as the ledger counts.
    std::int64_t parts(JobIndex index, std::int64_t gpus) const {
        return gpus * spec().parts_of(job(index));
    }
    std::vector<JobIndex> reached_by_storm(NodeIndex node, const Strike& strike) const;
    bool steps_now(JobIndex job) const;
    void hold_up(JobIndex job, NodeIndex node, const Strike& strike);
    void storm_over(JobIndex job);
    void resume_step(JobIndex job, Duration partial);
    StepTime step_of(JobIndex job) const;
    NetworkState broken_on_routes(JobIndex job) const;
    std::optional<StepTime> step_over_network(JobIndex job, std::uint32_t conditions) const;
    void stand_still(JobIndex job, RunPlan& plan);
    std::string waits_for_network() const;
    void set_step(JobIndex job);
    std::vector<NodeIndex> nodes_of(JobIndex job) const;
    void send_from(JobIndex job, Instant from);
    void join_links(JobIndex job);
    void leave_links(JobIndex job);
    void links_change_soon();
    void change_paces_on_links();
    Duration until_own_failure(JobIndex job);
    void expect_end(JobIndex job);
    void lose_unsaved(JobIndex job, const StateLoss& loss);
    void keep_what_lasts(JobIndex job);
    WorldParts::Parts* parts_of(JobIndex job) const { return parts_ ? parts_->find(job) : nullptr; }
    void begin_stage(JobIndex job, Stage stage, const RunPlan& plan, Duration already = {});
    void begin_work(JobIndex job);
    std::int64_t steps_to_save(JobIndex job) const;
    void begin_save(JobIndex job);
    void begin_interval(JobIndex job);
    void after_steps(JobIndex job);
    void part_with_slow_node(JobIndex job);
    void leave_stage(JobIndex job);
    void book_stage(JobIndex job);
    StateLoss loss_of(JobIndex job, NodeIndex node) const;
    const TransferSpec* transfer_of(JobIndex job) const;
    // The member of shared links that a job's uploads are, beside its steps.
    SharedLinks::Member uploads_of(JobIndex job) const {
        return job + static_cast<JobIndex>(jobs_.size());
    }
    void send_uploads(JobIndex job);
    bool transfer_joins(JobIndex job, SharedLinks::Member as, const TransferSpec& transfer);
    void change_upload(JobIndex job);
    void wait_on_links(JobIndex job);
    void begin_transfer(JobIndex job);
    void change_transfer(JobIndex job);
    bool moves_bytes(JobIndex job) const {
        return jobs_[job].stage == Stage::saving || jobs_[job].stage == Stage::restoring;
    }
    void end_stage(JobIndex job);
    void left_slow_node(JobIndex job);
    void end_run(JobIndex job);
    void change_pace_soon(JobIndex job);
    void change_pace(JobIndex job);
    enum class Unsaved : std::uint8_t { lost, kept, held_in_memory };
    void settle_run(JobIndex job, Unsaved unsaved, const StateLoss& loss = {});
    void book_run(JobIndex job, Unsaved unsaved, const StateLoss& loss = {});
    void book_run_until(JobIndex job, Instant end, Unsaved unsaved, const StateLoss& loss = {});
    // Time of these GPUs, for a job.
    WorldWork::Parts parts_by_group(JobIndex job, const Allocation& gpus) const;
    void corrupt(JobIndex job, std::size_t corruption);
    void meet_corruption(JobIndex job);
    void go_back(JobIndex job, NodeIndex node, std::size_t cause);
    void book_phase(JobIndex job);
    void stop(JobIndex job, Unsaved unsaved);
    void leave(JobIndex job, const Next& next);
    void after_epilog(JobIndex job);
    void lose_suspended(NodeIndex node);
    void open_window(std::uint32_t reservation, bool begins);
    void count_jobs();
    void record(const char* kind, JobIndex job, std::string cause, NodeIndex node,
                std::int64_t steps);

    CampaignEngine& engine_;
    const WorldRun& run_;
    WorldLedger& ledger_;
    CampaignEngine::ComponentId id_;
    WorldCluster cluster_;
    PowerRoom power_;
    WorldRepair repair_;
    WorldBooks books_;
    std::optional<WorldJobStrikes> job_strikes_;
    std::unique_ptr<WorldScheduler> scheduler_;
    LiveJobs jobs_;
    std::vector<JobIndex> suspended_;
    JobIndex submitted_ = 0;
    JobIndex over_ = 0;
    bool deciding_ = false;
    std::optional<WorldParts> parts_;
    bool goes_back_far_ = false;  // numbers may be wrong: what is saved can be lost as well
    std::optional<NetworkParts> network_;
    SharedLinks links_;
    bool links_changing_ = false;
    WorldBooks::Needs needs_;
    Instant booked_until_{};
    WorldOutcome outcome_;
};

}  // namespace railyard
