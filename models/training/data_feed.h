#pragma once
// The batches of one job on the campaign clock: a prefetch queue between a store, which gives what its
// other clients leave, and steps, which wait when the queue is empty.
//
// The loaders ask for what the steps take, and for all that they can move while the queue is not full. As
// long as they get what the steps take, a step waits as it does with the store to itself. When they get
// less, the queue drains first: for its bytes over the difference. Then a step is as long as its batch
// takes to come.
//
// Shuffle buffers come before the queue: until they hold their initial samples no batch leaves, and no step
// begins; until they are full each sample that leaves them costs the reads of two. They are empty when
// loaders start and when an epoch begins; towards an epoch's end all of it is read and they are used up.
// Ignores: opens (they are not shared with others here); the caches of a node that replaces another.

#include <memory>

#include "models/storage/storage.h"
#include "models/training/data_loader.h"
#include "models/training/part_clock.h"
#include "models/training/step.h"

namespace railyard {

struct DataFeedSpec {
    std::shared_ptr<const DataLoader> loader;
    DataSupply supply;  // with the store to the job alone
    std::size_t store = 0;
    std::int64_t weight = 1;  // against the store's other clients
    // The first epoch finds nothing in the nodes' caches: until so many steps are done.
    DataSupply cold;
    std::int64_t cold_steps = 0;
    std::int64_t epoch_steps = 0;  // after which shuffle buffers start again; 0: never
    // It comes from where no store is modelled: drives of the nodes, or an object store that nobody shares.
    bool alone = false;

    bool reads(std::size_t from) const { return !alone && store == from; }
};

class DataFeed : public CampaignEngine::Component, public StoreService::Client {
  public:
    class Job {
      public:
        virtual ~Job() = default;
        // Both come from an event of their own.
        virtual void pace_changed() = 0;       // extra_wait() has changed
        virtual void first_batch_there() = 0;  // ready() is true again
    };

    // `client`: the job's nodes among the stores' clients. All references must outlive it.
    DataFeed(CampaignEngine& engine, StoreService& stores, std::size_t client,
             const DataFeedSpec& spec, Job& job);
    // For a job among many: it is made while the clock runs, and its owner passes its events on.
    DataFeed(const PartClock& clock, StoreService& stores, std::size_t client,
             const DataFeedSpec& spec, Job& job);

    // begin: with full queues, but with empty shuffle buffers where there are any. Without loaders nothing is
    // read and the queue is gone.
    enum class Use : std::uint8_t { no_loaders, loaders_only, steps };
    void begin(Use use);
    void change(Use use);
    bool ready() const { return !filling(); }  // no shuffle buffer holds batches back

    // The job goes on after so many steps, from the beginning or from a state that it has read.
    void resume_at(std::int64_t steps) { epoch_ends_ = epoch_ends_after(steps); }
    // Between two steps, when so many are done. Towards an epoch's end all of it is read; at its end the next
    // one begins with empty buffers.
    void look_at_epoch(std::int64_t steps);
    // Likewise, before more steps: after the first epoch the caches have what they can hold.
    void look_at_caches(std::int64_t steps);
    // How many steps may follow before somebody has to look again.
    std::int64_t steps_ahead(std::int64_t steps) const;

    // What a step waits longer for data than with the store to the job alone and warm caches, as things are
    // now; longest where nothing comes.
    static constexpr Duration longest = std::chrono::hours(24 * 365);
    Duration extra_wait() const { return extra_wait_; }
    // The same, for a step whose batch is otherwise so late (batch_late).
    Duration extra_wait(Duration late) const {
        return wait_for_batch(late + extra_wait_) - wait_for_batch(late);
    }
    Duration starved() const;  // so long, up to now, the queue was empty and the store too slow

    void handle(std::uint32_t kind) override;
    void transfer_done(StoreService::TransferId, const WallTimes&) override {}
    void supply_changed(StoreService::TransferId stream, Bandwidth rate) override;

  private:
    using Amount = __int128;  // bits x ns
    enum Kind : std::uint32_t { queue_ends };

    // How the loaders run, in bits/s of samples that leave them.
    struct Pace {
        std::int64_t consumed = 0;  // that steps take when they don't wait for this store
        std::int64_t most = 0;      // that the loaders can move
        Duration wait_alone{};      // of each step, with the store to the job alone
    };
    Pace pace_by(const DataSupply& supply) const;
    const Pace& pace() const { return growing() ? growing_ : steady_; }
    std::int64_t reads() const { return growing() ? 2 : 1; }  // for each sample that leaves
    bool alone() const { return steady_.consumed == 0; }      // no store behind the loaders

    // How many of an epoch's last `left` steps pass until all that they need is read; at least one.
    std::int64_t steps_to_read(std::int64_t left) const;
    std::int64_t steps_at_hand() const;  // that buffers and queue last for
    std::int64_t epoch_ends_after(std::int64_t steps) const;
    void begin_epoch();
    void end_reading();
    void warm_up();

    void advance();  // to the present
    std::int64_t taken() const;
    std::int64_t wanted() const;
    bool filling() const { return reading_ && shuffled_ < shuffle_initial_; }
    bool growing() const { return reading_ && !filling() && shuffled_ < shuffle_full_; }
    bool starving() const;
    void supplied();  // after a change from outside, or a queue's end
    void read_by(const DataSupply& supply);
    void ask();
    void close_stream();
    void plan();         // when the queue is full or empty next
    bool update_wait();  // whether it differs

    PartClock clock_;
    StoreService& stores_;
    std::size_t client_;
    const DataFeedSpec& spec_;
    Job& job_;

    DataSupply supply_;  // that counts now
    bool cold_ = false;
    Duration base_wait_{};  // that the job's steps count already
    Pace steady_;
    Pace growing_;                // while shuffle buffers grow
    std::int64_t fill_most_ = 0;  // bits/s, as shuffle buffers get their initial samples
    Amount full_ = 0;
    Amount shuffle_initial_ = 0;
    Amount shuffle_full_ = 0;
    Amount step_ = 0;  // what a step takes

    Use use_ = Use::no_loaders;
    StoreService::TransferId stream_ = StoreService::no_transfer;
    std::int64_t asked_ = 0;
    std::int64_t given_ = 0;
    Amount queue_ = 0;
    Amount shuffled_ = 0;          // in the shuffle buffers
    bool reading_ = true;          // not all of the epoch is read
    std::int64_t epoch_ends_ = 0;  // at so many steps; 0: there are no epochs
    bool told_ready_ = false;
    Instant advanced_to_{};
    EventId next_;
    Duration extra_wait_{};
    Duration starved_{};
};

}  // namespace railyard
