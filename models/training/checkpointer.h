#pragma once
// Moves the bytes of checkpoints, from the stall that the job sees to the tiers behind it, and back.

#include "models/training/part_clock.h"
#include "models/training/saved_states.h"
#include "models/training/store_reads.h"

namespace railyard {

using ByteTime = __int128;  // bytes x ns

struct CheckpointOutcome {
    std::int64_t begun = 0;         // each with a stall
    std::int64_t stalls_ended = 0;  // the others a failure or the campaign's end cut off
    Duration to_stall_end{};        // sum over these, with the waiting for a free buffer before
    std::int64_t made_safe = 0;
    std::int64_t lost = 0;         // begun and never safe
    std::int64_t passed_over = 0;  // copies that a tier never took
    WallTimes stall;               // of the stalls, by what they waited for
    WallTimes upload;              // of transfers behind the job's back
    WallTimes restore;
    Duration to_safe{};                       // sum over those made safe, from the stall's begin
    std::vector<std::int64_t> restored_from;  // by tier
    std::vector<Bytes> bytes_read;            // likewise, by restores that ended
    std::vector<TierBytes> tiers;
    std::vector<ByteTime> kept;  // by tier: complete copies, for as long as they were there
};

// What checkpoints in one place have moved and hold.
struct PlaceUse {
    TierBytes bytes;
    Bytes read;         // by restores that ended
    ByteTime kept = 0;  // complete copies, for as long as they were there

    void operator+=(const PlaceUse& other) {
        for (Bytes TierBytes::*part : {&TierBytes::written, &TierBytes::safe, &TierBytes::expired,
                                       &TierBytes::lost, &TierBytes::in_flight}) {
            bytes.*part = bytes.*part + other.bytes.*part;
        }
        read = read + other.read;
        kept += other.kept;
    }
};
using UseByStore = std::array<PlaceUse, 2>;  // by index into Scenario::stores

// Complete copies over time, by tier.
class KeptBytes {
  public:
    explicit KeptBytes(std::size_t tiers) : kept_(tiers) {}
    // Whenever copies have come or gone: adds what there was until now.
    void count(Instant now, const SavedStates& states, std::vector<ByteTime>& sum) {
        const Duration time = now - std::exchange(since_, now);
        for (std::size_t tier = 0; tier < kept_.size(); ++tier) {
            sum[tier] += ByteTime{kept_[tier].count()} * time.count();
            kept_[tier] = states.bytes(tier).safe;
        }
    }

  private:
    std::vector<Bytes> kept_;
    Instant since_{};
};

// Moves the bytes.
class Checkpointer : public CampaignEngine::Component, public StoreService::Client {
  public:
    class Job {
      public:
        virtual ~Job() = default;
        virtual void safe(const SavedStates::State& state) = 0;  // for the record
        virtual void stall_over() = 0;                           // the job may go on
        virtual void pace_changed() = 0;                         // uploading() has changed
        virtual void moved_on() = 0;  // can_begin() or idle() may have come true
        virtual void restored() = 0;  // the state of newest() is in GPU memory
    };

    // `client`: the job's nodes among the store's clients. All references must outlive it.
    Checkpointer(CampaignEngine& engine, StoreService& stores, std::size_t client,
                 const CheckpointSpec& spec, std::int64_t nodes, Job& job);
    // For a job among many: it is made while the clock runs, and its owner passes its events on.
    Checkpointer(const PartClock& clock, StoreService& stores, std::size_t client,
                 const CheckpointSpec& spec, std::int64_t nodes, Job& job);

    bool can_begin() const;  // else buffer_free() will tell
    // The stall starts now. Before a stop, no tier up to the one that outlasts it passes this one over.
    void begin(std::int64_t steps, bool before_stop = false);
    // What each stall from now on comes to as long as nothing else happens: for synchronous checkpoints that
    // are whole, in one tier, with the stores to themselves, and with none under way. Else nothing.
    std::optional<StoreService::Undisturbed> undisturbed() const;
    // begin(), and the stall has come to that: its events have passed, and the job is not told.
    void pass(std::int64_t steps, const StoreService::Undisturbed& stall);
    bool uploading() const { return uploads_ > 0; }
    void steps_run(bool run);  // beside what is uploaded
    // What is uploaded to a store now, of several tiers the first; nullptr: nothing.
    const TransferSpec* upload() const;
    // What is uploaded moves no faster, from now on.
    void limit_uploads(Bandwidth cap);
    // The stall, or the restore, waits for a store.
    bool on_a_store() const {
        return (stall_ == Stall::write && to_store(0)) || reads_.under_way();
    }
    // What the job waits for moves no faster to or from a store.
    void limit(Bandwidth cap, Wall wall);
    std::int64_t stored_steps() const;  // of the newest state in a store
    std::int64_t lasting_steps() const { return states_.newest_steps(lasting_tier_); }
    bool idle() const;  // nothing that a planned stop would have to wait for is on its way

    void fail(const StateLoss& loss);  // stops what the loss breaks; then ask newest()
    void lose_store(std::size_t store);
    SavedStates::Choice newest() const { return states_.newest(); }
    // States newer than newest(): the job goes back there, and can't come back to what ends later.
    void give_up_newer();
    void give_up_after(std::int64_t steps);  // states with more are worth nothing
    // And reads it back, with what else a start reads; or this alone.
    void restore(bool state = true);
    void end();  // counts what is in flight; call once
    const CheckpointOutcome& outcome() const { return outcome_; }

    void handle(std::uint32_t kind) override;
    void transfer_done(StoreService::TransferId transfer, const WallTimes& walls) override;

  protected:
    void waited(Duration time, Wall wall);  // by the job, for what this does
    PartClock clock_;
    const CheckpointSpec& spec_;
    std::vector<std::int64_t> reached_;  // by tier: how many states were offered

  private:
    enum class Stall : std::uint8_t { none, snapshot, write };
    enum Kind : std::uint32_t { snapshot_done, restore_done, tier_done };  // + tier
    struct Move {                                                          // one tier's
        std::int64_t number = 0;                                           // 0: none
        bool stalls = false;
        bool from_nodes = true;
        StoreService::TransferId transfer = StoreService::no_transfer;
        Instant begun{};
        EventId ends;  // of a place on the nodes

        bool uploads() const { return number != 0 && from_nodes && !stalls; }
    };

    bool to_store(std::size_t tier) const { return !on_nodes(spec_.tiers[tier].place); }
    void start_move(std::int64_t number, std::size_t tier, bool stalls);
    void cap(std::size_t tier, TransferSpec& write) const;
    void cap_upload(std::size_t tier);
    void moved(std::size_t tier, const WallTimes& walls);
    void arrived(std::int64_t number, std::size_t tier);
    void break_off(std::size_t tier);
    void stop_without_source(std::size_t tier);
    void end_stall();
    void start_next(std::size_t tier);
    void count_uploads();
    void restore_part_done();
    void forget_after(std::int64_t number);
    StoreService::Progress progress(std::size_t tier);

    StoreService& stores_;
    std::size_t client_;
    Job& job_;
    SavedStates states_;
    std::size_t safe_tier_;
    std::size_t lasting_tier_;

    Stall stall_ = Stall::none;
    std::int64_t stalling_ = 0;  // the state that is being saved
    Instant stall_since_{};
    Duration waited_for_buffer_{};  // before it
    EventId stall_ends_;
    std::vector<Move> moves_;            // by tier
    std::vector<std::int64_t> waiting_;  // by tier: the state that goes next, or 0
    std::vector<std::int64_t> buffers_;  // states in host buffers
    std::int64_t uploads_ = 0;
    Bandwidth uploads_cap_ = unlimited;
    bool steps_run_ = false;

    // Reading back: the state, from a store or from the nodes, and what else is read at the start.
    StoreReads reads_;
    bool reading_locally_ = false;
    std::optional<SavedStates::Choice> restoring_;  // nothing: what is read is no state
    Instant restore_since_{};
    EventId restore_ends_;
    CheckpointOutcome outcome_;
    KeptBytes kept_;
    std::vector<Bytes> written_before_;  // by store: by whoever was this client before
};

}  // namespace railyard
