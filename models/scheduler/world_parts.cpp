#include "models/scheduler/world_parts.h"

#include <algorithm>
#include <set>

#include "models/scheduler/world.h"

namespace railyard {

WorldParts::Parts::Parts(WorldParts& all, JobIndex job, std::size_t client, std::uint32_t first,
                         const WorldJobKind& kind, std::int64_t gpus, std::int64_t nodes)
    : owner_(all.owner_),
      job_(job),
      spec_(kind.saving->checkpoint(gpus, nodes)),
      data_(kind.data),
      way(all.stores_, client),
      checkpointer(PartClock{all.engine_, all.id_, first}, all.stores_, client, *spec_, nodes,
                   *this) {
    if (!data_) return;
    const PartClock clock{all.engine_, all.id_, first + first_of_data};
    DataFeed::Job& job_of_feed = *this;
    feed.emplace(clock, all.stores_, client, *data_, job_of_feed);
    feed->begin(DataFeed::Use::no_loaders);
}

void WorldParts::Parts::place(const Allocation& held) {
    if (std::ranges::none_of(spec_->tiers, [](const TierSpec& t) { return on_nodes(t.place); })) {
        return;
    }
    slots_.resize(std::max(slots_.size(), held.size()), no_node);
    const std::set<NodeIndex> before(slots_.begin(), slots_.end());
    std::set<NodeIndex> now;
    std::vector<NodeIndex> come;
    for (const NodeShare& share : held) {
        now.insert(share.node);
        if (!before.contains(share.node)) come.push_back(share.node);
    }
    auto next = come.begin();
    for (NodeIndex& slot : slots_) {
        if (!now.contains(slot) && next != come.end()) slot = *next++;
    }
}

const TransferSpec* WorldParts::Parts::waits_for(bool saving) const {
    const auto stored = [](const TierSpec& tier) { return tier.place == Place::storage; };
    if (saving) {
        const bool waits = spec_->mode != CheckpointMode::async && stored(spec_->tiers[0]);
        return waits ? &spec_->tiers[0].write : nullptr;
    }
    const SavedStates::Choice state = checkpointer.newest();
    const TierSpec& tier = spec_->tiers[state.tier];
    if (state.number != 0 && stored(tier)) return &tier.read;
    return spec_->read_at_start.bytes > Bytes{} ? &spec_->read_at_start : nullptr;
}

void WorldParts::Parts::run(bool steps, bool processes) {
    checkpointer.steps_run(steps);
    if (!feed) return;
    feed->change(!processes ? DataFeed::Use::no_loaders
                 : steps    ? DataFeed::Use::steps
                            : DataFeed::Use::loaders_only);
}

void WorldParts::Parts::stop() {
    checkpointer.wait_for(Saver::Waits::nothing);
    run(false, false);
}

void WorldParts::Parts::suspend(bool has_state) {
    checkpointer.fail({});  // who stands still sends nothing
    suspended = has_state;
    checkpointer.went_back_to(checkpointer.newest().steps);
}

std::int64_t WorldParts::Parts::slot_of(NodeIndex node) const {
    return std::ranges::find(slots_, node) - slots_.begin();
}

WorldParts::WorldParts(CampaignEngine& engine, const WorldRun& run, Owner& owner)
    : engine_(engine),
      spec_(run.spec),
      owner_(owner),
      stores_(engine),
      id_(engine.add(*this, "parts of jobs")),
      free_(spec_.kinds.size()) {
    for (const WorldStore& store : spec_.stores) stores_.add_store(store.name, store.supply);
    if (run.store == nullptr) return;
    FailingStore::DataOwner& loser = *this;
    failing_.emplace(engine, stores_, shared_store, *run.store->system, *run.store->failures, loser,
                     run.seed, run.replica);
}

WorldParts::Parts& WorldParts::of(JobIndex job, std::uint32_t kind, std::int64_t gpus,
                                  const Allocation& held) {
    const auto [known, starts_first] = slot_of_.try_emplace(job);
    if (starts_first) {
        const WorldSaving& saving = *spec_.kinds[kind].saving;
        const auto nodes = static_cast<std::int64_t>(held.size());
        if (free_[kind].empty()) {
            free_[kind].push_back(static_cast<std::uint32_t>(slots_.size()));
            slots_.push_back({kind, stores_.add_client(saving.network.read, saving.network.write)});
            for (std::size_t store = 0; store < saving.store_paths.size(); ++store) {
                const JobSpec::StorePath& path = saving.store_paths[store];
                stores_.limit_path(slots_.back().client, store, path.read, path.write);
            }
        }
        known->second = free_[kind].back();
        free_[kind].pop_back();
        Slot& slot = slots_[known->second];
        slot.parts = std::make_unique<Parts>(*this, job, slot.client, known->second * kinds,
                                             spec_.kinds[kind], gpus, nodes);
    }
    Parts& parts = *slots_[known->second].parts;
    parts.place(held);
    return parts;
}

// Whoever takes the slot next drops them: they may be what calls.
void WorldParts::forget(JobIndex job) {
    const auto found = slot_of_.find(job);
    if (found == slot_of_.end()) return;
    const std::uint32_t slot = found->second;
    slot_of_.erase(found);
    count(*slots_[slot].parts, true);
    slots_[slot].parts->checkpointer.fail({StateLoss::Scope::all_nodes});
    slots_[slot].parts->checkpointer.give_up_after(0);
    if (slots_[slot].parts->feed) slots_[slot].parts->feed->change(DataFeed::Use::no_loaders);
    free_[slots_[slot].kind].push_back(slot);
}

void WorldParts::count(Parts& parts, bool over) {
    parts.checkpointer.end();
    const CheckpointOutcome& outcome = parts.checkpointer.outcome();
    for (std::size_t tier = 0; tier < outcome.tiers.size(); ++tier) {
        const TierSpec& spec = parts.spec().tiers[tier];
        if (on_nodes(spec.place)) continue;
        PlaceUse use{outcome.tiers[tier], outcome.bytes_read[tier], outcome.kept[tier]};
        if (over) use.bytes.safe = {};
        in_stores_[spec.write.store] += use;
    }
}

void WorldParts::start() {
    if (failing_) failing_->start();
}

void WorldParts::end(WorldOutcome& outcome) {
    for (const auto& [job, slot] : slot_of_) count(*slots_[slot].parts, false);
    outcome.in_stores = in_stores_;
    if (!failing_) return;
    failing_->end();
    outcome.store = failing_->counts();
}

// Files lie on all of a store, so any share of it that is gone takes something of every checkpoint there.
void WorldParts::data_lost(std::size_t store, double /*fraction*/, StorePart /*last*/) {
    for (const auto& [job, slot] : slot_of_) {
        Saver& saver = slots_[slot].parts->checkpointer;
        if (!saver.saves()) continue;
        saver.lose_store(store);
        owner_.copies_lost(job);
    }
}

void WorldParts::handle(std::uint32_t event) {
    Parts& parts = *slots_[event / kinds].parts;
    const std::uint32_t kind = event % kinds;
    kind < first_of_data ? parts.checkpointer.handle(kind)
                         : parts.feed->handle(kind - first_of_data);
}

}  // namespace railyard
