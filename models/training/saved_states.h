#pragma once
// The states that a job has saved, where copies of them are, and which a failure leaves.

#include <array>
#include <optional>
#include <vector>

#include "models/failure/failure.h"
#include "models/training/checkpoint.h"

namespace railyard {

// What a failure takes away.
struct StateLoss {
    enum class Scope : std::uint8_t {
        processes,
        node,
        all_memory,
        all_nodes
    } scope = Scope::processes;
    std::int64_t slot = 0;  // of the node
};

// Bytes written to a tier: written = safe + expired + lost + in flight, always.
struct TierBytes {
    Bytes written;
    Bytes safe;     // complete copies that are there
    Bytes expired;  // complete, and made room for newer ones
    Bytes lost;     // complete and gone, or broken off
    Bytes in_flight;
};

// The states that were saved, and what is left of them.
class SavedStates {
  public:
    struct State {
        std::int64_t number = 0;  // 0: what the campaign opened with
        std::int64_t steps = 0;   // done when it was taken
        Bytes bytes;
        std::int64_t base = -1;  // the state that this one holds the changes since; -1: whole
        Instant begun{};
        bool before_stop = false;  // goes to the tier that outlasts it
        bool safe = false;         // has been somewhere that survives the loss of a node
        enum class Copy : std::uint8_t { none, waiting, moving, complete, gone };
        std::array<Copy, places> copies{};     // by tier: no two are in one place
        std::vector<std::int64_t> lost_slots;  // nodes lost since it was taken
    };

    SavedStates(const CheckpointSpec& spec, std::int64_t nodes);

    State& begin(std::int64_t steps, Instant now);
    State* find(std::int64_t number);
    // All states that were saved are whole, and complete in this tier.
    bool all_complete(std::size_t tier) const;
    // begin(), and it is complete in the only tier at once. Where all_complete(0), and all states are whole.
    void add_complete(std::int64_t steps, Instant now);
    void complete(State& state, std::size_t tier);
    void break_off(State& state, std::size_t tier, Bytes moved);
    // What survives; copies on nodes that the loss touches are gone.
    void lose(const StateLoss& loss);
    void lose_store(std::size_t tier);
    // It can be read back from there: the copy is complete, and so is all that it holds the changes since.
    bool restorable(const State& state, std::size_t tier) const {
        return readable(state, tier).has_value();
    }
    // States after this one are given up, and so are those of which nothing is left. Returns how many of
    // them were never safe.
    std::int64_t forget_after(std::int64_t number);
    std::int64_t forget_gone();
    // The newest state with no more steps than these.
    std::int64_t newest_before(std::int64_t steps) const;

    struct Choice {
        std::int64_t number = 0;
        std::size_t tier = 0;
        Bytes bytes;  // to be read: the last whole state and all changes since
        std::int64_t steps = 0;
    };
    // The newest state that is complete somewhere, from the hottest tier that has it.
    Choice newest() const;
    // Steps of the newest state that is complete in that tier or a colder one; 0: there is none.
    std::int64_t newest_steps(std::size_t from) const;
    const TierBytes& bytes(std::size_t tier) const { return bytes_[tier]; }
    TierBytes& bytes(std::size_t tier) { return bytes_[tier]; }

  private:
    const State* find(std::int64_t number) const;
    // What must be read of the tier to have the state; none: it is not all there.
    std::optional<Bytes> readable(const State& state, std::size_t tier) const;
    void drop(State& state, std::size_t tier, Bytes TierBytes::*into);
    void expire(std::size_t tier);

    const CheckpointSpec& spec_;
    std::int64_t nodes_;
    std::int64_t begun_ = 0;
    std::int64_t last_ = 0;      // saved, or gone back to: what is in GPU memory comes from it
    std::vector<State> states_;  // ascending
    std::vector<TierBytes> bytes_;
};

}  // namespace railyard
