#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/campaign/save_walls.h"
#include "models/campaign/sections.h"
#include "models/campaign/store_traffic.h"
#include "models/campaign/world_steps.h"
#include "sim/integers.h"
#include "sim/text.h"

namespace railyard {

namespace {

// What one node moves to and from one of the places on it, or on its neighbour.
struct NodePlace {
    Bandwidth write;
    Bandwidth read;
    Duration create_latency;  // of a file
    Bytes capacity;           // of one node; 0: not known
};

class CheckpointJoin {
  public:
    CheckpointJoin(Section& job, Catalogue& catalogue, Scenario& s)
        : job_(job),
          sections_(job),
          checkpoint_(sections_.checkpoint),
          keys_(read_checkpoint_keys(sections_)),
          catalogue_(catalogue),
          s_(s) {}

    void join(const BurstPenalty& burst_penalty);

  private:
    bool good() const { return checkpoint_.ok() && !checkpoint_.describing(); }
    bool async() const { return c().mode == CheckpointMode::async; }
    CheckpointSpec& c() const { return s_.job.checkpoint; }
    void join_tiers();
    void join_tier(Section& section, const TierKeys& keys);
    bool check_tier(Section& section, const TierKeys& keys, Place place) const;
    void settle_size();
    void settle_interval();
    void warn_of_late_copies(Duration interval);
    void settle_snapshot(const BurstPenalty& burst_penalty);
    void settle_tier(Section& section, TierSpec& tier, std::optional<Duration> keep_for);
    void settle_stall();
    void share_network_with_steps();
    Place where(Place place) const;
    void put_at(TierSpec& tier, Place place) const;
    void settle_on_nodes(TierSpec& tier, const TierKeys& keys);
    NodePlace node_place(Place place);
    void check_room(Section& section, const TierSpec& tier, Bytes copy, Bytes capacity,
                    const std::string& of) const;
    double load_share() const;
    void cap_read(TransferSpec& read, const StoreLimits& limits) const;
    void cap_by_network(TierSpec& tier);
    Duration time_per_checkpoint() const;

    Section& job_;
    CheckpointSections sections_;
    Section& checkpoint_;
    const CheckpointKeys keys_;
    Catalogue& catalogue_;
    Scenario& s_;

    CheckpointWriters writers_;
    Bandwidth d2h_;           // of one GPU
    std::int64_t taken_ = 1;  // every so-many-th checkpoint reaches the tier that is looked at
};

void CheckpointJoin::join(const BurstPenalty& burst_penalty) {
    c().mode = keys_.mode;
    if (!good()) return;
    c().buffers = keys_.buffers;
    c().full_every = keys_.full_every;
    c().changed_fraction = keys_.changed_fraction;
    if (c().mode == CheckpointMode::none) {
        s_.checkpoint_description = "no checkpoints";
        return;
    }
    settle_size();
    if (checkpoint_.ok()) settle_snapshot(burst_penalty);
    if (checkpoint_.ok()) join_tiers();
    settle_stall();
    if (checkpoint_.ok()) share_network_with_steps();
    settle_interval();
}

void CheckpointJoin::join_tiers() {
    for (std::size_t i = 0; i < keys_.tiers.size(); ++i) {
        join_tier(sections_.tiers[i], keys_.tiers[i]);
    }
    if (c().tiers.empty()) {
        TierSpec store;
        put_at(store, Place::storage);
        if (on_nodes(store.place)) settle_on_nodes(store, {});
        settle_tier(checkpoint_, store, std::nullopt);
        c().tiers.push_back(store);
    }
    const bool lost_with_node = std::ranges::all_of(c().tiers, [](const TierSpec& tier) {
        return on_nodes(tier.place) && tier.place != Place::peer_memory;
    });
    if (lost_with_node) {
        checkpoint_.warning("tier",
                            "no tier survives the loss of a node: the job then starts again",
                            "add a tier in peer_memory, storage or object_store");
    }
}

void CheckpointJoin::settle_size() {
    if (keys_.size && (keys_.bytes_per_param || keys_.gradients)) {
        checkpoint_.error(keys_.bytes_per_param ? "bytes_per_param" : "gradients",
                          "size is given too: one of the two decides", "leave out one of them");
    }
    if (keys_.size) {
        c().size = *keys_.size;
    } else if (s_.model.name.empty()) {
        checkpoint_.error(
            "size",
            fmt::format("is missing: without {} the size of a checkpoint is not known",
                        job_.path("model")),
            fmt::format("give {} or {}, or {} = \"none\"", checkpoint_.path("size"),
                        job_.path("model"), checkpoint_.path("mode")));
        return;
    } else {
        const double per_param =
            keys_.bytes_per_param
                ? *keys_.bytes_per_param
                : catalogue_.number("checkpoint", "", "persisted_bytes_per_param");
        const double each = per_param + (keys_.gradients ? s_.parameter_bytes.weight : 0);
        const double still = s_.plan.freeze_vision && s_.plan.adapter_rank == 0
                                 ? vision_parameters(s_.model.vision, s_.model.hidden).layers
                                 : 0;  // weights alone
        const double bytes = (parameter_count(s_.model) - still) * each +
                             still * std::min(each, s_.parameter_bytes.weight);
        if (bytes > 9e18) {
            checkpoint_.error("bytes_per_param", "overflow: the checkpoint is larger than 9 EB");
            return;
        }
        c().size = Bytes::of(std::llround(bytes));
    }
    s_.checkpoint_size = c().size;

    const bool sharded = keys_.layout == CheckpointLayout::sharded;
    writers_.ranks = sharded ? s_.job.gpus() : 1;
    writers_.nodes = sharded ? s_.job.nodes : 1;
    writers_.files =
        writers_.ranks * (keys_.files_per_rank
                              ? *keys_.files_per_rank
                              : catalogue_.integer("checkpoint", "", "creates_per_rank"));
    writers_.serialization =
        keys_.serialization
            ? *keys_.serialization
            : catalogue_.bandwidth("checkpoint", "", "serialization_bandwidth_per_rank");
    s_.checkpoint_writers = writers_;
}

namespace {

// How much of an upload ranks send in that serialise more slowly than the network and the store take it.
double sending_share(const Scenario& s) {
    StoreTraffic traffic = checkpoint_traffic(s);
    const Bandwidth own = reach(s, traffic).write;
    traffic.rank_write = unlimited;
    const Bandwidth most = reach(s, traffic).write;
    return own < most ? own.bytes_per_second() / most.bytes_per_second() : 1;
}

}  // namespace

void CheckpointJoin::settle_snapshot(const BurstPenalty& burst_penalty) {
    const double sustained = keys_.snapshot_fraction
                                 ? *keys_.snapshot_fraction
                                 : catalogue_.number("checkpoint", "", "d2h_sustained_fraction");
    d2h_ = s_.node.gpu.host_bandwidth * sustained;
    if (d2h_.bits_per_second() <= 0) {
        checkpoint_.error("snapshot_fraction",
                          "a snapshot needs some of the bandwidth to the host, found 0");
        return;
    }
    const Bytes per_gpu = Bytes::of(c().size.count() / writers_.ranks + 1);
    c().snapshot = transfer_time(per_gpu, d2h_);
    if (!async()) return;
    // On a network that both share, packets tell what an upload costs a step.
    if (!keys_.upload_slowdown && burst_penalty) {
        c().upload_step_penalty = from_seconds(seconds(burst_penalty()) * sending_share(s_));
        return;
    }
    const double slowdown = keys_.upload_slowdown
                                ? *keys_.upload_slowdown
                                : catalogue_.number("checkpoint", "", "async_background_slowdown");
    c().upload_step_penalty =
        from_seconds(std::min(seconds(s_.job.step.duration()) * slowdown, step_seconds_max));
}

void CheckpointJoin::join_tier(Section& section, const TierKeys& keys) {
    TierSpec tier;
    put_at(tier, keys.place);
    tier.every = keys.every;
    tier.keep = keys.keep;
    const bool fits = check_tier(section, keys, tier.place);
    taken_ *= tier.every;
    if (fits && on_nodes(tier.place)) settle_on_nodes(tier, keys);
    if (fits) settle_tier(section, tier, keys.keep_for);
    c().tiers.push_back(tier);
}

// Whether it can be, after those before it.
bool CheckpointJoin::check_tier(Section& section, const TierKeys& tier, Place place) const {
    bool wrong = false;
    const auto refuse = [&](const char* key, std::string text, std::string help = {}) {
        wrong = true;
        section.error(key, std::move(text), std::move(help));
    };
    const bool first = c().tiers.empty();
    if (first && tier.every > 1) refuse("every", "the first tier takes every checkpoint");
    if (c().full_every > 1 && tier.every > 1) {
        refuse("every", fmt::format("with {} above 1 a tier needs all of them: each holds what has "
                                    "changed since the one before",
                                    checkpoint_.path("full_every")));
    }
    if (tier.keep_for && section.has("keep")) {
        refuse("keep_for", "keep is given too: one of the two decides");
    }
    for (const TierSpec& hotter : c().tiers) {
        if (hotter.place == place) {
            refuse("place", "is the place of a hotter tier already");
        } else if (!on_nodes(hotter.place) && on_nodes(place)) {
            refuse("place", "a place on the nodes comes before the stores");
        }
    }
    if (place == Place::peer_memory && s_.job.nodes < 2) {
        refuse("place", "one node has no neighbour to keep its copy");
    }
    if (place == Place::host_memory && !first) {
        refuse("place", "host memory comes first: what is there came from the GPUs");
    }
    if (place == Place::object_store && s_.stores.size() <= object_store_index) {
        refuse("place", "there is no object store", "add a section [object_store]");
    }
    if (!on_nodes(place) && (tier.write || tier.read)) {
        refuse(section.has("write_bandwidth") ? "write_bandwidth" : "read_bandwidth",
               "is of places on the nodes; a store has its own", "[storage]");
    }
    return !wrong;
}

// [storage] itself may be in the nodes, and is then lost with them.
Place CheckpointJoin::where(Place place) const {
    if (place != Place::storage || !good()) return place;
    const StoreSetup& store = s_.stores[shared_store];
    if (store.limits.over_network) return place;
    return store.kind == "host_memory" ? Place::host_memory : Place::local_nvme;
}

void CheckpointJoin::put_at(TierSpec& tier, Place place) const {
    tier.place = where(place);
    tier.files = place == Place::storage || tier.place == Place::local_nvme;
}

void CheckpointJoin::settle_on_nodes(TierSpec& tier, const TierKeys& keys) {
    const NodePlace node = node_place(tier.place);
    const Bytes share = Bytes::of(ceil_div(c().size.count(), writers_.nodes));
    const Bandwidth in = keys.write.value_or(node.write);
    const Bandwidth out = keys.read.value_or(node.read);
    if (std::min(in, out).bits_per_second() == 0) {
        checkpoint_.error("tier", "a place on the nodes moves nothing: one of its bandwidths is 0");
        return;
    }
    if (!tier.files) {
        tier.write_time = transfer_time(share, in);
        tier.read_time = transfer_time(share, out);
        return;
    }
    const std::vector<SaveWall> walls = node_save_walls(s_, in, node.create_latency);
    tier.write_time = longest(walls).time;
    tier.write_wall = longest(walls).wall;
    tier.read_time = transfer_time(share, out * load_share());
}

// Loading is slower than reading: tensors are made, and moved to the GPUs.
double CheckpointJoin::load_share() const {
    return catalogue_.number("checkpoint", "", "load_fraction_of_read_bandwidth");
}

NodePlace CheckpointJoin::node_place(Place place) {
    if (where(Place::storage) == place) {
        const StoreLimits& limits = s_.stores[shared_store].limits;
        return {limits.client_write, limits.client_read, limits.create_latency,
                Bytes::of(s_.stores[shared_store].capacity.count() / s_.nodes.nodes)};
    }
    const auto room = [&](const char* part) {
        const bool known = catalogue_.has("node", s_.node.name, part);
        return known ? catalogue_.data("node", s_.node.name, part) : Bytes{};
    };
    const Bandwidth gpus = d2h_ * s_.node.gpus;
    switch (place) {
        case Place::host_memory:
            return {gpus, gpus, {}, room("host_memory")};
        case Place::peer_memory: {
            const Bandwidth nics = s_.node.nic_bandwidth * s_.node.nics;
            return {std::min(gpus, nics), std::min(gpus, nics), {}, room("host_memory")};
        }
        default:
            return {catalogue_.bandwidth("storage", "local_nvme_raid0", "write_bandwidth"),
                    catalogue_.bandwidth("storage", "local_nvme_raid0", "read_bandwidth"),
                    from_seconds(1 / catalogue_
                                         .rate("storage", "local_nvme_raid0",
                                               "small_file_create_rate_single_thread")
                                         .per_second),
                    room("local_nvme")};
    }
}

void CheckpointJoin::settle_tier(Section& section, TierSpec& tier,
                                 std::optional<Duration> keep_for) {
    if (keep_for) {
        const Duration apart = time_per_checkpoint() * taken_;
        tier.keep = std::max<std::int64_t>(1, ceil_div(keep_for->count(), apart.count()));
    }
    if (on_nodes(tier.place)) {
        const bool twice = tier.place == Place::peer_memory;
        const Bytes share = Bytes::of(ceil_div(c().size.count(), writers_.nodes));
        check_room(section, tier, share * (twice ? 2 : 1), node_place(tier.place).capacity,
                   "each node");
        if (std::max(tier.write_time, tier.read_time) > time_max) {
            section.error(
                "size",
                fmt::format("moving {} to or from the nodes' own {} takes more than 100 years",
                            to_text(c().size), word_of(place_names, tier.place)));
        }
        return;
    }
    const std::size_t number = tier.place == Place::storage ? shared_store : object_store_index;
    const StoreSetup& store = s_.stores[number];
    tier.write.store = tier.read.store = number;
    tier.write.direction = Direction::write;
    tier.read.direction = Direction::read;
    tier.write.files = tier.read.files = writers_.files;
    tier.write.weight = s_.fair_by_job ? 1 : writers_.nodes;
    tier.read.weight = s_.fair_by_job ? 1 : s_.job.nodes;
    tier.write.cap = unlimited;
    for (const auto& [rate, wall] : write_caps(s_, store.limits, c().tiers.empty() && !async())) {
        lower(tier.write, rate, wall);
    }
    tier.write.files_per_s = files_per_second(writers_.ranks, store.limits.create_latency);
    cap_read(tier.read, store.limits);
    if (number == shared_store) cap_by_network(tier);
    check_room(section, tier, c().size, store.capacity, store.name);
    const Bandwidth client = s_.job.store_paths[number].write;
    const Bandwidth rate = std::min({store.supply.write, client, tier.write.cap});
    if (rate.bits_per_second() == 0 || transfer_time(c().size, rate) > time_max) {
        section.error("size",
                      fmt::format("writing {} takes more than 100 years", to_text(c().size)),
                      "the store or its clients are too slow, or the checkpoint too large");
    } else if (tier.read.cap.bits_per_second() <= 0) {
        job_.error("recovery", "the store gives nothing back: its read bandwidth is 0");
    }
}

// `capacity` 0: not known.
void CheckpointJoin::check_room(Section& section, const TierSpec& tier, Bytes copy, Bytes capacity,
                                const std::string& of) const {
    if (capacity == Bytes{}) return;
    const double fits =
        std::floor(real(capacity.count()) / real(std::max<std::int64_t>(1, copy.count())));
    if (real(tier.keep) <= fits) return;
    constexpr double day = 86400;
    const double full = fits * seconds(time_per_checkpoint()) * real(taken_) / day;
    const char* key = section.has("keep_for")    ? "keep_for"
                      : &section == &checkpoint_ ? "size"
                                                 : "keep";
    if (fits < 1) {
        section.error(key, fmt::format("a checkpoint of {} does not fit into the {} of {}",
                                       to_text(copy), to_text(capacity), of));
        return;
    }
    section.error(
        key,
        fmt::format("{} checkpoints of {} do not fit into the {} of {}: full on day {:.1f}",
                    tier.keep, to_text(copy), to_text(capacity), of, full),
        fmt::format("at most {:.0f} fit", fits));
}

void CheckpointJoin::cap_read(TransferSpec& read, const StoreLimits& limits) const {
    const Bandwidth clients = limits.client_read * s_.job.nodes;
    read.cap = std::min(least(limits.read).bandwidth, clients) * load_share();
    read.cap_wall = clients < least(limits.read).bandwidth ? Wall::client : Wall::store;
    lower(read, limits.file_read * writers_.files, Wall::files);
    if (s_.gpu_path) lower(read, *s_.gpu_path * s_.job.nodes, Wall::client);
    read.files_per_s = files_per_second(s_.job.gpus(), limits.open_latency);
}

// What all ranks reach at once over the links between, where those are modelled.
void CheckpointJoin::cap_by_network(TierSpec& tier) {
    const bool all_ranks = writers_.ranks == s_.job.gpus();
    const bool over_network = s_.stores[shared_store].limits.over_network;
    if (!all_ranks || !over_network || storage_network(s_) == nullptr) return;
    const StoreReach reached = reach(s_, checkpoint_traffic(s_));
    if (!reached.no_path.empty()) {
        s_.no_path = reached.no_path;
        return;
    }
    lower(tier.write, reached.write, reached.write_wall);
    lower(tier.read, reached.read, reached.read_wall);
}

Duration CheckpointJoin::time_per_checkpoint() const {
    return keys_.interval_steps > 0 ? s_.job.step.duration() * keys_.interval_steps
                                    : keys_.interval;
}

namespace {

// With the stores to itself.
Duration time_alone(const TierSpec& tier, const Scenario& s) {
    if (on_nodes(tier.place)) return tier.write_time;
    return longest(save_walls(s, tier.write.store, {{tier.write.cap, tier.write.cap_wall}})).time;
}

}  // namespace

void CheckpointJoin::settle_stall() {
    if (!checkpoint_.ok()) return;
    const bool memory_first = c().snapshot_is_a_copy();
    c().stall_alone = async() || memory_first ? c().snapshot : time_alone(c().tiers[0], s_);
    // What moves behind the job's back until the state is safe.
    const std::size_t stalls = async() && !memory_first ? 0 : 1;
    for (std::size_t tier = stalls; tier <= c().safe_tier(); ++tier) {
        s_.checkpoint_upload += time_alone(c().tiers[tier], s_);
    }
}

// Uploads over the compute network and the steps beside them slow each other down, by flow. What they do to
// each other where packets are asked for, packets have told.
void CheckpointJoin::share_network_with_steps() {
    const bool steps_known = step_is_computed(s_) && s_.no_path.empty();
    if (s_.fidelity != Fidelity::flow || !steps_known || keys_.upload_slowdown) return;
    if (!shares_network_with_store(s_)) return;
    for (std::size_t i = 0; i < c().tiers.size(); ++i) {
        TierSpec& tier = c().tiers[i];
        const bool stalls = i == 0 && !async();
        if (tier.place != Place::storage || stalls) continue;
        const PlacedSteps placed = steps_by_placement(std::make_shared<Scenario>(s_), {}, {});
        std::vector<NodeIndex> nodes(static_cast<std::size_t>(s_.job.nodes));
        std::iota(nodes.begin(), nodes.end(), NodeIndex{0});
        const auto step = placed.traffic(nodes, {});
        const auto upload = placed.transfer(nodes, {}, tier.write);
        if (!upload || step->parts.empty()) return;
        SharedLinks links;
        links.join(0, step, 0);
        links.join(1, upload, 0);
        links.settle();
        c().upload_on_links = from_seconds(std::min(links.longer_s(0), step_seconds_max));
        c().upload_step_penalty += c().upload_on_links;
        const Bandwidth alone = std::min(tier.write.cap, s_.stores[shared_store].supply.write);
        if (links.longer_s(1) > 0) tier.beside_steps = beside_others(alone, links.longer_s(1));
        return;
    }
}

// Behind the first tier nothing waits: of the checkpoints that do the newest goes next.
void CheckpointJoin::warn_of_late_copies(Duration interval) {
    for (std::size_t i = 1; i < c().tiers.size(); ++i) {
        const TierSpec& tier = c().tiers[i];
        interval = from_seconds(seconds(interval) * real(tier.every));
        const Duration copy = time_alone(tier, s_);
        if (copy <= interval) continue;
        const std::string place = word_of(place_names, tier.place);
        checkpoint_.warning("tier",
                            fmt::format("{} takes {} for a copy, and one is due every {}", place,
                                        to_text(copy), to_text(interval)),
                            "it will be behind, and some checkpoints are left out there");
    }
}

void CheckpointJoin::settle_interval() {
    if (!checkpoint_.ok()) return;
    const Duration step = s_.job.step.duration();
    if (keys_.interval_steps == 0) s_.checkpoint_clock = word_of(interval_clocks, keys_.clock);
    if (keys_.interval_steps > 0) {
        if (keys_.clock == IntervalClock::wall) {
            checkpoint_.error("clock",
                              "an interval in steps is counted in training, not on the wall clock");
        }
        c().interval_steps = keys_.interval_steps;
    } else if (keys_.clock == IntervalClock::training) {
        c().interval_training = keys_.interval;
        c().interval_steps = ceil_div(keys_.interval.count(), step.count());
    } else {
        c().interval_wall = keys_.interval;
    }
    const Duration interval = time_per_checkpoint();
    const Duration write = std::max(c().stall_alone, time_alone(c().tiers[0], s_));
    if (std::max(interval, step) <= write) {
        checkpoint_.warning("interval",
                            fmt::format("the interval of {} is shorter than its own write of {}",
                                        to_text(interval), to_text(write)),
                            async() ? "each checkpoint will wait for the one before it"
                                    : "the job will do little else than save");
    }
    warn_of_late_copies(std::max(interval, step));
    s_.checkpoint_description =
        fmt::format("{} {} every {}", async() ? "asynchronous" : "synchronous", to_text(c().size),
                    keys_.interval_steps > 0
                        ? fmt::format("{} steps", keys_.interval_steps)
                        : fmt::format("{} {}", to_text(keys_.interval),
                                      keys_.clock == IntervalClock::training ? "of training"
                                                                             : "start to start"));
}

}  // namespace

void join_stores(Scenario& s) {
    for (const StoreSetup& store : s.stores) {
        const JobSpec::StorePath path{store.limits.client_read * s.job.nodes,
                                      store.limits.client_write * s.job.nodes};
        s.job.network.read = std::max(s.job.network.read, path.read);
        s.job.network.write = std::max(s.job.network.write, path.write);
        s.job.store_paths.push_back(path);
    }
}

bool uses_object_store(const Scenario& s) {
    const bool saves = s.job.checkpoint.mode != CheckpointMode::none &&
                       std::ranges::any_of(s.job.checkpoint.tiers, [](const TierSpec& tier) {
                           return tier.place == Place::object_store;
                       });
    return saves || (s.data && s.data->source == DataSource::object_store);
}

void read_checkpoint(Section& job, Catalogue& catalogue, Scenario& s,
                     const BurstPenalty& burst_penalty) {
    CheckpointJoin(job, catalogue, s).join(burst_penalty);
}

}  // namespace railyard
