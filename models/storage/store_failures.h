#pragma once
// What breaks in a store, and what that does: drives, servers and boxes are struck, clients wait for a
// failover or for a server, drives are rebuilt, and now and then data is gone.
//
// Each kind of part has a Poisson stream of strikes of its own, named after the store: it depends on nothing
// but the seed, the replica and how many such parts there are. A strike at a part that is down is void.

#include <memory>
#include <vector>

#include "models/failure/failure.h"
#include "models/storage/store_failure_spec.h"

namespace railyard {

struct RebuildTraffic {
    Bandwidth read;
    Bandwidth write;
    bool operator==(const RebuildTraffic&) const = default;
};

struct StoreFailureCounts {
    std::int64_t drives = 0;  // lost
    std::int64_t servers = 0;
    std::int64_t boxes = 0;
    std::int64_t rebuilds = 0;     // drives and servers whose data was whole again
    std::int64_t data_losses = 0;  // events
    double data_lost = 0;          // sum of their fractions
    std::int64_t outages = 0;
    Duration outage_time{};  // something was not served

    void add(const StoreFailureCounts& other);
};

class StoreListener {
  public:
    virtual ~StoreListener() = default;
    // The state, the rebuild traffic or what is unserved differs: limits must be computed again.
    virtual void store_changed() = 0;
    // In that state the store serves nothing at all, whatever has become of its data.
    virtual bool stands_still(const StoreState& state) const = 0;
    // From now on clients wait for some of the data; from now on for none.
    virtual void outage_begins() = 0;
    virtual void outage_ends() = 0;
    // This share of the store's data is gone for good; `last` was lost too many.
    virtual void data_lost(double fraction, StorePart last) = 0;
};

class StoreFailures : public CampaignEngine::Component, public FailureSource::Target {
  public:
    // All references must outlive this. `protection` models drives when it says how many and how large.
    StoreFailures(CampaignEngine& engine, const StoreFailureSpec& spec,
                  const Protection& protection, StoreListener& listener, std::uint64_t seed,
                  std::uint64_t replica);
    void start();
    void end();  // counts up to the engine's present instant

    const StoreState& state() const { return state_; }
    RebuildTraffic rebuild_traffic() const;
    // Share of the store's data that clients wait for now.
    double unserved() const { return unserved_; }
    const StoreFailureCounts& counts() const { return counts_; }

    void handle(std::uint32_t kind) override;
    bool strike(const Strike& strike) override;

  private:
    enum Kind : std::uint32_t {
        injected,
        drive_replaced,
        server_back,
        box_back,
        failover_over,
        release_server,
        loss_rebuilt,
        kinds
    };
    struct Server {
        bool down = false;
        bool failing_over = false;
        EventId failover;
        EventId release;
    };
    struct Group {
        DriveGroup drives;
        Instant since{};  // how far its rebuild is known
        EventId rebuilt;
        Bandwidth rate;  // 0: no rebuild is under way
    };

    EventId schedule(Duration after, Kind kind, std::int64_t index);
    Duration repair_time(const StoreFailureSpec::Part& part, const Strike& strike) const;
    std::int64_t drives() const;
    std::int64_t server_drives() const;
    Group& group_of_drive(std::int64_t drive);

    void lose_drive(std::int64_t drive, Duration down_for);
    void lose_server(std::int64_t server, Duration down_for, bool takes_data);
    void lose_box(std::int64_t box, Duration down_for);
    void take_drives_along(std::int64_t server, bool returns_whole);
    void return_server(std::int64_t server);

    void catch_up(Group& group);               // with the rebuild, before something happens to it
    void go_on(Group& group, StorePart last);  // with the rebuild, after it
    double unserved_by_servers() const;
    void tell();

    CampaignEngine& engine_;
    const StoreFailureSpec& spec_;
    const Protection& protection_;
    StoreListener& listener_;
    CampaignEngine::ComponentId id_;
    std::vector<std::unique_ptr<FailureSource>> sources_;

    std::vector<Server> servers_;
    std::vector<bool> box_down_;
    std::vector<Group> groups_;
    StoreState state_;
    double unserved_ = 0;
    Instant outage_since_{};
    StoreFailureCounts counts_;
};

}  // namespace railyard
