#pragma once
// The parts of jobs that save to stores and tiers, or read their data from a store: as many as have begun and
// are not over. All share the stores. The parts are those of one job (models/training).

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "models/scheduler/world_cluster.h"
#include "models/scheduler/world_spec.h"
#include "models/storage/storage.h"

namespace railyard {

struct WorldOutcome;
struct WorldRun;

class WorldParts : public CampaignEngine::Component, FailingStore::DataOwner {
  public:
    // All but pace_of_parts_changed() as events of their own.
    class Owner {
      public:
        virtual ~Owner() = default;
        virtual void stall_over(JobIndex job) = 0;
        virtual void restored(JobIndex job) = 0;
        virtual void moved_on(JobIndex job) = 0;               // behind its back
        virtual void pace_of_parts_changed(JobIndex job) = 0;  // what slows its steps has
        virtual void first_batch_there(JobIndex job) = 0;
        virtual void copies_lost(JobIndex job) = 0;  // of its states, with a store's data
    };

    class Parts : Checkpointer::Job, DataFeed::Job {
      public:
        Parts(WorldParts& all, JobIndex job, std::size_t client, std::uint32_t first,
              const WorldJobKind& kind, std::int64_t gpus, std::int64_t nodes);

        const CheckpointSpec& spec() const { return *spec_; }
        // Nodes keep their numbers from run to run, and new ones get those of who has left.
        void place(const Allocation& held);
        std::int64_t slot_of(NodeIndex node) const;
        // To or from the shared store, while it saves or comes back; nullptr: nothing.
        const TransferSpec* waits_for(bool saving) const;
        void run(bool steps, bool processes);  // in which the loaders live
        void stop();                           // the job waits for nothing any more
        void suspend(bool has_state);          // that stays in GPU memory
        // Beside what a step waits for data with the store to itself.
        Duration extra_wait() const { return feed ? feed->extra_wait(late) : Duration{}; }

        bool suspended = false;  // its state is still in GPU memory
        bool slowed = false;     // its steps, by an upload
        Duration late{};         // its steps' batches, with the store to itself (batch_late)
        Duration wait{};         // of each step for data, beside what that comes to

      private:
        friend class WorldParts;
        void safe(const SavedStates::State&) override {}
        void stall_over() override { owner_.stall_over(job_); }
        void pace_changed() override { owner_.pace_of_parts_changed(job_); }
        void first_batch_there() override { owner_.first_batch_there(job_); }
        void moved_on() override { owner_.moved_on(job_); }
        void restored() override { owner_.restored(job_); }

        Owner& owner_;
        JobIndex job_;
        std::shared_ptr<const CheckpointSpec> spec_;
        std::shared_ptr<const DataFeedSpec> data_;
        std::vector<NodeIndex> slots_;

      public:
        WayToStore way;
        Saver checkpointer;
        std::optional<DataFeed> feed;
    };

    WorldParts(CampaignEngine& engine, const WorldRun& run, Owner& owner);

    // The parts of a job that starts; made when it starts for the first time.
    Parts& of(JobIndex job, std::uint32_t kind, std::int64_t gpus, const Allocation& held);
    void forget(JobIndex job);  // it is over
    void start();
    void end(WorldOutcome& outcome);  // counts what the stores hold and have lost; call once

    void handle(std::uint32_t event) override;

  private:
    // Jobs of one kind use it one after another.
    struct Slot {
        std::uint32_t kind = 0;  // of these jobs
        std::size_t client = 0;  // of the stores
        std::unique_ptr<Parts> parts{};
    };
    // Events of each slot: the checkpointer's, then the data feed's.
    static constexpr std::uint32_t kinds = 16;
    static constexpr std::uint32_t first_of_data = 12;

    void data_lost(std::size_t store, double fraction, StorePart last) override;
    void count(Parts& parts, bool over);

    CampaignEngine& engine_;
    const WorldSpec& spec_;
    Owner& owner_;
    StoreService stores_;
    CampaignEngine::ComponentId id_;
    std::vector<Slot> slots_;
    std::vector<std::vector<std::uint32_t>> free_;  // by kind of jobs
    std::map<JobIndex, std::uint32_t> slot_of_;
    UseByStore in_stores_;  // by checkpoints; a job that is over keeps none
    std::optional<FailingStore> failing_;
};

}  // namespace railyard
