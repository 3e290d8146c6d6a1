#include "models/training/checkpointer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/check.h"

namespace railyard {

using Copy = SavedStates::State::Copy;

namespace {

// What takes so long for a whole state, for these bytes of one.
Duration part_of(Duration whole, Bytes bytes, Bytes state) {
    const double share = real(bytes.count()) / real(std::max<std::int64_t>(1, state.count()));
    return from_seconds(seconds(whole) * share);
}

}  // namespace

Checkpointer::Checkpointer(CampaignEngine& engine, StoreService& stores, std::size_t client,
                           const CheckpointSpec& spec, std::int64_t nodes, Job& job)
    : Checkpointer(PartClock{engine, engine.add(*this, "checkpoints")}, stores, client, spec, nodes,
                   job) {}

Checkpointer::Checkpointer(const PartClock& clock, StoreService& stores, std::size_t client,
                           const CheckpointSpec& spec, std::int64_t nodes, Job& job)
    : clock_(clock),
      spec_(spec),
      reached_(spec.tiers.size()),
      stores_(stores),
      client_(client),
      job_(job),
      states_(spec, nodes),
      safe_tier_(spec.safe_tier()),
      lasting_tier_(spec.lasting_tier()),
      moves_(spec.tiers.size()),
      waiting_(spec.tiers.size()),
      reads_(stores, client, *this),
      kept_(spec.tiers.size()) {
    outcome_.kept.resize(spec.tiers.size());
    outcome_.restored_from.resize(spec.tiers.size());
    outcome_.bytes_read.resize(spec.tiers.size());
    for (std::size_t store = 0; store < stores.stores(); ++store) {
        written_before_.push_back(stores.written(client, store));
    }
}

// ---- the stall ----

bool Checkpointer::can_begin() const {
    if (spec_.snapshot_is_a_copy()) {
        // The copy that is on its way out may not be written over.
        return spec_.tiers[0].keep > 1 || moves_.size() < 2 || moves_[1].number == 0;
    }
    return spec_.mode == CheckpointMode::sync ||
           static_cast<std::int64_t>(buffers_.size()) < spec_.buffers;
}

void Checkpointer::begin(std::int64_t steps, bool before_stop) {
    RY_CHECK(stall_ == Stall::none && can_begin());
    ++outcome_.begun;
    SavedStates::State& state = states_.begin(steps, clock_.now());
    stalling_ = state.number;
    state.before_stop = before_stop;
    state.copies[0] = Copy::waiting;
    stall_since_ = clock_.now();
    if (spec_.mode == CheckpointMode::sync && !spec_.snapshot_is_a_copy()) {
        stall_ = Stall::write;
        start_move(stalling_, 0, true);
    } else {
        stall_ = Stall::snapshot;
        stall_ends_ = clock_.schedule(clock_.now() + spec_.snapshot, snapshot_done);
    }
}

std::optional<StoreService::Undisturbed> Checkpointer::undisturbed() const {
    const bool simple = spec_.mode == CheckpointMode::sync && moves_.size() == 1 && to_store(0) &&
                        spec_.full_every == 1;
    const bool idle = stall_ == Stall::none && moves_[0].number == 0 && !reads_.under_way() &&
                      !reading_locally_ && waited_for_buffer_ == Duration{};
    if (!simple || !idle || !states_.all_complete(0)) return std::nullopt;
    TransferSpec spec = spec_.tiers[0].write;
    spec.bytes = spec_.size;
    return stores_.foresee(client_, spec);
}

void Checkpointer::pass(std::int64_t steps, const StoreService::Undisturbed& stall) {
    states_.add_complete(steps, clock_.now());
    TransferSpec spec = spec_.tiers[0].write;
    spec.bytes = spec_.size;
    stores_.pass(client_, spec, stall);
    kept_.count(clock_.now(), states_, outcome_.kept);
    ++outcome_.begun;
    ++outcome_.made_safe;
    ++outcome_.stalls_ended;
    outcome_.stall.add(stall.walls);
    outcome_.to_safe += stall.lasts();
    outcome_.to_stall_end += stall.lasts();
}

void Checkpointer::waited(Duration time, Wall wall) {
    outcome_.stall[wall] += time;
    if (wall == Wall::back_pressure) waited_for_buffer_ += time;
}

void Checkpointer::end_stall() {
    stall_ = Stall::none;
    ++outcome_.stalls_ended;
    outcome_.to_stall_end +=
        std::exchange(waited_for_buffer_, Duration{}) + (clock_.now() - stall_since_);
    job_.stall_over();
}

void Checkpointer::handle(std::uint32_t kind) {
    if (kind == snapshot_done) {
        outcome_.stall[Wall::snapshot] += clock_.now() - stall_since_;
        if (spec_.snapshot_is_a_copy()) {
            arrived(stalling_, 0);
        } else {
            buffers_.push_back(stalling_);
            start_next(0);
        }
        end_stall();
    } else if (kind == restore_done) {
        outcome_.restore[Wall::local] += clock_.now() - restore_since_;
        reading_locally_ = false;
        restore_part_done();
    } else {
        WallTimes walls;
        const std::size_t tier = kind - tier_done;
        walls[spec_.tiers[tier].write_wall] = clock_.now() - moves_[tier].begun;
        moved(tier, walls);
    }
}

// ---- from tier to tier ----

void Checkpointer::start_move(std::int64_t number, std::size_t tier, bool stalls) {
    SavedStates::State& state = *states_.find(number);
    state.copies[tier] = Copy::moving;
    Move& move = moves_[tier];
    move = {};
    move.number = number;
    move.stalls = stalls;
    move.from_nodes = tier == 0 || !to_store(tier - 1);
    move.begun = clock_.now();
    if (to_store(tier)) {
        TransferSpec spec = spec_.tiers[tier].write;
        spec.bytes = state.bytes;
        cap(tier, spec);
        move.transfer = stores_.start(client_, spec, *this);
    } else {
        const Duration time = part_of(spec_.tiers[tier].write_time, state.bytes, spec_.size);
        move.ends =
            clock_.schedule(clock_.now() + time, tier_done + static_cast<std::uint32_t>(tier));
    }
    count_uploads();
}

// Steps on the same network leave an upload less.
void Checkpointer::cap(std::size_t tier, TransferSpec& write) const {
    if (!moves_[tier].uploads()) return;
    const Bandwidth steps_leave = steps_run_ ? spec_.tiers[tier].beside_steps : unlimited;
    const Bandwidth beside = std::min(steps_leave, uploads_cap_);
    if (beside >= write.cap) return;
    write.cap = beside;
    write.cap_wall = Wall::network;
}

void Checkpointer::steps_run(bool run) {
    if (std::exchange(steps_run_, run) == run) return;
    for (std::size_t tier = 0; tier < moves_.size(); ++tier) {
        if (spec_.tiers[tier].beside_steps != unlimited) cap_upload(tier);
    }
}

void Checkpointer::limit_uploads(Bandwidth cap) {
    if (std::exchange(uploads_cap_, cap) == cap) return;
    for (std::size_t tier = 0; tier < moves_.size(); ++tier) {
        if (moves_[tier].uploads()) cap_upload(tier);
    }
}

const TransferSpec* Checkpointer::upload() const {
    for (std::size_t tier = 0; tier < moves_.size(); ++tier) {
        if (to_store(tier) && moves_[tier].uploads()) return &spec_.tiers[tier].write;
    }
    return nullptr;
}

void Checkpointer::cap_upload(std::size_t tier) {
    if (moves_[tier].number == 0 || !to_store(tier)) return;
    TransferSpec spec = spec_.tiers[tier].write;
    cap(tier, spec);
    stores_.change_cap(moves_[tier].transfer, spec.cap, spec.cap_wall);
}

// What goes next into a tier that is free: of the host buffers the oldest, of a tier above the newest.
void Checkpointer::start_next(std::size_t tier) {
    if (moves_[tier].number != 0) return;
    std::int64_t next = 0;
    if (tier == 0) {
        if (!buffers_.empty()) next = buffers_.front();
    } else {
        next = std::exchange(waiting_[tier], 0);
    }
    if (next != 0) start_move(next, tier, false);
}

void Checkpointer::transfer_done(StoreService::TransferId transfer, const WallTimes& walls) {
    if (reads_.done(transfer)) {
        outcome_.restore.add(walls);
        restore_part_done();
        return;
    }
    for (std::size_t tier = 0; tier < moves_.size(); ++tier) {
        if (moves_[tier].number != 0 && moves_[tier].transfer == transfer) {
            moved(tier, walls);
            return;
        }
    }
    RY_UNREACHABLE("a transfer that nobody has started");
}

void Checkpointer::moved(std::size_t tier, const WallTimes& walls) {
    const Move move = std::exchange(moves_[tier], {});
    (move.stalls ? outcome_.stall : outcome_.upload).add(walls);
    if (tier == 0) std::erase(buffers_, move.number);
    arrived(move.number, tier);
    start_next(tier);
    count_uploads();
    if (move.stalls) {
        end_stall();
    } else {
        job_.moved_on();
    }
}

void Checkpointer::arrived(std::int64_t number, std::size_t tier) {
    SavedStates::State& state = *states_.find(number);
    states_.complete(state, tier);
    if (tier >= safe_tier_ && !state.safe && states_.restorable(state, tier)) {
        state.safe = true;
        ++outcome_.made_safe;
        outcome_.to_safe += clock_.now() - state.begun;
        job_.safe(state);
    }
    const std::size_t below = tier + 1;
    const bool taken = below < moves_.size() && ++reached_[below] % spec_.tiers[below].every == 0;
    const bool for_stop = state.before_stop && below <= lasting_tier_;
    if (taken || for_stop) {
        if (const std::int64_t older = std::exchange(waiting_[below], number)) {
            states_.find(older)->copies[below] = Copy::none;
            ++outcome_.passed_over;
        }
        state.copies[below] = Copy::waiting;
        start_next(below);
    }
    outcome_.lost += states_.forget_gone();
    kept_.count(clock_.now(), states_, outcome_.kept);
}

void Checkpointer::count_uploads() {
    const auto now =
        std::ranges::count_if(moves_, [&](const Move& move) { return move.uploads(); });
    const bool before = uploading();
    uploads_ = now;
    if (uploading() != before) job_.pace_changed();
}

void Checkpointer::limit(Bandwidth cap, Wall wall) {
    if (stall_ == Stall::write && to_store(0)) stores_.change_cap(moves_[0].transfer, cap, wall);
    reads_.limit(cap, wall);
}

std::int64_t Checkpointer::stored_steps() const {
    std::size_t tier = 0;
    while (tier < moves_.size() && !to_store(tier)) ++tier;
    return states_.newest_steps(tier);
}

bool Checkpointer::idle() const {
    for (std::size_t tier = 0; tier <= lasting_tier_ && tier < moves_.size(); ++tier) {
        if (moves_[tier].number != 0 || waiting_[tier] != 0) return false;
    }
    return buffers_.empty();
}

// ---- failures ----

StoreService::Progress Checkpointer::progress(std::size_t tier) {
    const Move& move = moves_[tier];
    if (to_store(tier)) return stores_.progress(move.transfer);
    const Duration elapsed = clock_.now() - move.begun;
    const Duration whole = spec_.tiers[tier].write_time;
    const double share = whole > Duration{} ? seconds(elapsed) / seconds(whole) : 0;
    const Bytes bytes = states_.find(move.number)->bytes;
    const auto moved = std::llround(share * real(spec_.size.count()));
    StoreService::Progress out{std::min(bytes, Bytes::of(moved)), {}};
    out.walls[spec_.tiers[tier].write_wall] = elapsed;
    return out;
}

void Checkpointer::break_off(std::size_t tier) {
    const auto [reached, walls] = progress(tier);
    const Move move = std::exchange(moves_[tier], {});
    if (to_store(tier)) {
        stores_.cancel(move.transfer);
    } else {
        clock_.cancel(move.ends);
    }
    (move.stalls ? outcome_.stall : outcome_.upload).add(walls);
    states_.break_off(*states_.find(move.number), tier, reached);
}

// What came from the processes' own memory is gone with them.
void Checkpointer::stop_without_source(std::size_t tier) {
    const auto source_left = [&](std::int64_t number) {
        return tier > 0 && states_.find(number)->copies[tier - 1] == Copy::complete;
    };
    if (moves_[tier].number != 0 && !source_left(moves_[tier].number)) break_off(tier);
    if (waiting_[tier] != 0 && !source_left(waiting_[tier])) {
        states_.find(std::exchange(waiting_[tier], 0))->copies[tier] = Copy::gone;
    }
}

void Checkpointer::fail(const StateLoss& loss) {
    if (stall_ == Stall::snapshot) {
        clock_.cancel(stall_ends_);
        outcome_.stall[Wall::snapshot] += clock_.now() - stall_since_;
        states_.find(stalling_)->copies[0] = Copy::gone;
    }
    stall_ = Stall::none;
    waited_for_buffer_ = {};
    reads_.cancel(outcome_.restore);
    if (std::exchange(reading_locally_, false)) {
        clock_.cancel(restore_ends_);
        outcome_.restore[Wall::local] += clock_.now() - restore_since_;
    }
    states_.lose(loss);
    const bool nodes_touched = loss.scope != StateLoss::Scope::processes;
    for (std::size_t tier = 0; tier < moves_.size(); ++tier) {
        if (nodes_touched && !to_store(tier) && moves_[tier].number != 0) break_off(tier);
        stop_without_source(tier);
    }
    for (const std::int64_t number : std::exchange(buffers_, {})) {
        if (SavedStates::State* state = states_.find(number)) state->copies[0] = Copy::gone;
    }
    for (std::size_t tier = 1; tier < moves_.size(); ++tier) start_next(tier);
    outcome_.lost += states_.forget_gone();
    kept_.count(clock_.now(), states_, outcome_.kept);
    count_uploads();
}

void Checkpointer::lose_store(std::size_t store) {
    for (std::size_t tier = 0; tier < moves_.size(); ++tier) {
        if (!to_store(tier) || spec_.tiers[tier].write.store != store) continue;
        states_.lose_store(tier);
        if (tier + 1 < moves_.size()) stop_without_source(tier + 1);
    }
    outcome_.lost += states_.forget_gone();
    kept_.count(clock_.now(), states_, outcome_.kept);
}

// ---- coming back ----

void Checkpointer::give_up_newer() {
    forget_after(states_.newest().number);
}

void Checkpointer::give_up_after(std::int64_t steps) {
    forget_after(states_.newest_before(steps));
}

void Checkpointer::forget_after(std::int64_t number) {
    for (std::size_t tier = 0; tier < moves_.size(); ++tier) {
        if (moves_[tier].number > number) break_off(tier);
        if (waiting_[tier] > number) waiting_[tier] = 0;
    }
    std::erase_if(buffers_, [&](std::int64_t waiting) { return waiting > number; });
    outcome_.lost += states_.forget_after(number);
    kept_.count(clock_.now(), states_, outcome_.kept);
    count_uploads();
}

void Checkpointer::restore(bool state) {
    give_up_newer();
    restore_since_ = clock_.now();
    restoring_.reset();
    if (spec_.read_at_start.bytes > Bytes{}) reads_.begin(spec_.read_at_start);
    if (!state) return;
    const SavedStates::Choice choice = states_.newest();
    restoring_ = choice;
    if (to_store(choice.tier)) {
        TransferSpec spec = spec_.tiers[choice.tier].read;
        spec.bytes = choice.bytes;
        reads_.begin(spec);
    } else {
        const Duration time = part_of(spec_.tiers[choice.tier].read_time, choice.bytes, spec_.size);
        reading_locally_ = true;
        restore_ends_ = clock_.schedule(clock_.now() + time, restore_done);
    }
}

void Checkpointer::restore_part_done() {
    if (reads_.under_way() || reading_locally_) return;
    if (restoring_) {
        ++outcome_.restored_from[restoring_->tier];
        Bytes& read = outcome_.bytes_read[restoring_->tier];
        read = read + restoring_->bytes;
    }
    job_.restored();
}

void Checkpointer::end() {
    kept_.count(clock_.now(), states_, outcome_.kept);
    if (stall_ == Stall::snapshot) outcome_.stall[Wall::snapshot] += clock_.now() - stall_since_;
    for (std::size_t tier = 0; tier < moves_.size(); ++tier) {
        TierBytes bytes = states_.bytes(tier);
        if (moves_[tier].number != 0) {
            const auto [moved, walls] = progress(tier);
            bytes.in_flight = moved;
            bytes.written = bytes.written + moved;
            (moves_[tier].stalls ? outcome_.stall : outcome_.upload).add(walls);
        }
        RY_CHECK(bytes.written == bytes.safe + bytes.expired + bytes.lost + bytes.in_flight);
        outcome_.tiers.push_back(bytes);
    }
    // What the tiers know of is all that has reached the stores.
    for (std::size_t store = 0; store < stores_.stores(); ++store) {
        Bytes known;
        for (std::size_t tier = 0; tier < moves_.size(); ++tier) {
            if (to_store(tier) && spec_.tiers[tier].write.store == store) {
                known = known + outcome_.tiers[tier].written;
            }
        }
        RY_CHECK(written_before_[store] + known == stores_.written(client_, store));
    }
}

}  // namespace railyard
