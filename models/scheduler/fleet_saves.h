#pragma once
// Jobs that write to and read from stores which they share: one transfer at a time each.

#include <map>
#include <vector>

#include "models/scheduler/fleet_spec.h"
#include "models/storage/storage.h"

namespace railyard {

class FleetSaves : public StoreService::Client {
  public:
    class Owner {
      public:
        virtual ~Owner() = default;
        virtual void transfer_over(JobIndex job) = 0;  // as an event of its own
    };

    FleetSaves(CampaignEngine& engine, const FleetSpec& spec, Owner& owner);

    void start(JobIndex job, const TransferSpec& transfer);
    // Whatever the job moves, if anything.
    void stop(JobIndex job);
    // What it moves gets no more of the network.
    void change_cap(JobIndex job, Bandwidth cap, Wall wall);

    void transfer_done(StoreService::TransferId transfer, const WallTimes& walls) override;
    void supply_changed(StoreService::TransferId, Bandwidth) override {}

  private:
    struct Moving {
        StoreService::TransferId transfer = StoreService::no_transfer;
        std::size_t client = 0;
    };
    void release(JobIndex job);

    StoreService stores_;
    Owner& owner_;
    std::map<JobIndex, Moving> moving_;
    std::vector<JobIndex> job_of_;           // by transfer
    std::vector<std::size_t> free_clients_;  // what a job's nodes carry is in its transfer's cap
};

}  // namespace railyard
