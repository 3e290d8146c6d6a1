#pragma once
// A store whose parts fail, as they see it who move bytes to and from it: it gets slower and faster, is out
// and back, and loses data.

#include "models/storage/store_failures.h"
#include "models/storage/store_service.h"

namespace railyard {

// What a store in this state gives: the least ceilings.
StoreSupply supply_of(const StoreLimits& limits);

class FailingStore : private StoreListener {
  public:
    class DataOwner {
      public:
        virtual ~DataOwner() = default;
        // This share of what is on the store is gone for good.
        virtual void data_lost(std::size_t store, double fraction, StorePart last) = 0;
    };

    // Fails the service's store of that number, and tells `owner` what that destroys. All references must
    // outlive this.
    FailingStore(CampaignEngine& engine, StoreService& service, std::size_t store,
                 const StorageSystem& system, const StoreFailureSpec& spec, DataOwner& owner,
                 std::uint64_t seed, std::uint64_t replica);
    void start() { failures_.start(); }
    void end() { failures_.end(); }
    const StoreFailureCounts& counts() const { return failures_.counts(); }

  private:
    void store_changed() override;
    bool stands_still(const StoreState& state) const override;
    // A file lies on many servers: while some data is not served, all who use the store wait.
    void outage_begins() override { service_.set_outage(store_, true); }
    void outage_ends() override { service_.set_outage(store_, false); }
    void data_lost(double fraction, StorePart last) override {
        owner_.data_lost(store_, fraction, last);
    }

    StoreService& service_;
    std::size_t store_;
    const StorageSystem& system_;
    DataOwner& owner_;
    Protection protection_;
    StoreFailures failures_;
    StoreState known_;  // to the service
};

}  // namespace railyard
