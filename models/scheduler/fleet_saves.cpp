#include "models/scheduler/fleet_saves.h"

#include "sim/check.h"

namespace railyard {

FleetSaves::FleetSaves(CampaignEngine& engine, const FleetSpec& spec, Owner& owner)
    : stores_(engine), owner_(owner) {
    for (const FleetStore& store : spec.stores) stores_.add_store(store.name, store.supply);
}

void FleetSaves::start(JobIndex job, const TransferSpec& transfer) {
    RY_CHECK(!moving_.contains(job));
    if (free_clients_.empty()) free_clients_.push_back(stores_.add_client(unlimited, unlimited));
    Moving& moving = moving_[job];
    moving.client = free_clients_.back();
    free_clients_.pop_back();
    moving.transfer = stores_.start(moving.client, transfer, *this);
    if (job_of_.size() <= moving.transfer) job_of_.resize(moving.transfer + 1);
    job_of_[moving.transfer] = job;
}

void FleetSaves::stop(JobIndex job) {
    const auto found = moving_.find(job);
    if (found == moving_.end()) return;
    stores_.cancel(found->second.transfer);
    release(job);
}

void FleetSaves::change_cap(JobIndex job, Bandwidth cap, Wall wall) {
    stores_.change_cap(moving_.at(job).transfer, cap, wall);
}

void FleetSaves::release(JobIndex job) {
    const auto found = moving_.find(job);
    free_clients_.push_back(found->second.client);
    moving_.erase(found);
}

void FleetSaves::transfer_done(StoreService::TransferId transfer, const WallTimes&) {
    const JobIndex job = job_of_[transfer];
    release(job);
    owner_.transfer_over(job);
}

}  // namespace railyard
