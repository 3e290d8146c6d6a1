#pragma once
// Another job's traffic on a store: it writes a checkpoint now and then and reads its data all the time. It
// is there for what it takes from the job that is looked at; nothing else of it is modelled.

#include <string>

#include "models/storage/store_service.h"

namespace railyard {

struct NeighbourSpec {
    std::string name;  // names its random stream
    std::size_t store = 0;
    std::int64_t weight = 1;  // against the store's other clients
    Bytes checkpoint;         // 0: it never saves
    std::int64_t files = 0;   // that a checkpoint creates
    Duration
        every{};  // from start to start; one that is due while the last is on its way is left out
    std::optional<Duration> start;  // of the first; otherwise at random within `every`
    Bandwidth reads;                // that it asks for
    Bandwidth network_read;         // of its nodes together
    Bandwidth network_write;
};

struct NeighbourOutcome {
    std::int64_t written = 0;   // checkpoints
    std::int64_t left_out = 0;  // because the one before was not out yet
    Duration writing{};         // sum over those written
    double asked = 0;           // bytes, to be read
    double read = 0;            // bytes that it got
};

class Neighbour : public CampaignEngine::Component, public StoreService::Client {
  public:
    // All references must outlive it.
    Neighbour(CampaignEngine& engine, StoreService& stores, const NeighbourSpec& spec,
              std::uint64_t seed, std::uint64_t replica);
    void start();
    NeighbourOutcome outcome() const;  // up to the engine's present instant

    void handle(std::uint32_t kind) override;
    void transfer_done(StoreService::TransferId transfer, const WallTimes& walls) override;
    void supply_changed(StoreService::TransferId stream, Bandwidth rate) override;

  private:
    enum Kind : std::uint32_t { checkpoint_due };

    CampaignEngine& engine_;
    StoreService& stores_;
    const NeighbourSpec& spec_;
    CampaignEngine::ComponentId id_;
    std::size_t client_;
    Duration first_{};
    StoreService::TransferId write_ = StoreService::no_transfer;
    Instant write_began_{};
    Instant read_since_{};  // at the present rate
    Bandwidth rate_;
    NeighbourOutcome outcome_;
};

}  // namespace railyard
