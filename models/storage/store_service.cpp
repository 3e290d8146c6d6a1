#include "models/storage/store_service.h"

#include <algorithm>
#include <cmath>

#include "sim/check.h"

namespace railyard {

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr double file_parts = 1e6;  // rates of files are whole millionths of a file per second

std::size_t slot_of(Direction direction) {
    return static_cast<std::size_t>(direction);
}

// Rounded up: nothing ends early.
Duration time_for(__int128 amount, std::int64_t rate) {
    const __int128 ns = (amount + rate - 1) / rate;
    return Duration(static_cast<std::int64_t>(std::min(ns, __int128{time_max.count()})));
}

std::int64_t parts_per_second(double files_per_s) {
    constexpr double most = 4e18;
    if (files_per_s <= 0) return std::llround(most);
    return std::max<std::int64_t>(1, std::llround(std::min(files_per_s * file_parts, most)));
}

}  // namespace

StoreService::StoreService(CampaignEngine& engine)
    : engine_(engine), id_(engine.add(*this, "stores")) {}

std::size_t StoreService::add_store(std::string name, const StoreSupply& supply) {
    stores_.push_back({std::move(name), supply});
    return stores_.size() - 1;
}

std::size_t StoreService::add_client(Bandwidth read, Bandwidth write) {
    clients_.push_back({{read, write}});
    return clients_.size() - 1;
}

void StoreService::limit_path(std::size_t client, std::size_t store, Bandwidth read,
                              Bandwidth write) {
    clients_[client].path_to(store).sound = {read, write};
}

void StoreService::limit_way(std::size_t client, std::size_t store, Bandwidth read,
                             Bandwidth write) {
    ClientPath& path = clients_[client].path_to(store);
    if (path.way[0] == read && path.way[1] == write) return;
    advance();
    path.way = {read, write};
    changed();
}

StoreService::PathRate StoreService::path_rate(const Transfer& t) const {
    const ClientState& client = clients_[t.client];
    const std::size_t d = slot_of(t.spec.direction);
    Bandwidth rate = client.network[d];
    Wall wall = Wall::client;
    if (t.spec.store < client.paths.size()) {
        const ClientPath& path = client.paths[t.spec.store];
        rate = std::min(rate, path.sound[d].value_or(rate));
        if (path.way[d] < rate) wall = Wall::network;
        rate = std::min(rate, path.way[d]);
    }
    return {rate.bits_per_second(), wall};
}

// ---- what clients ask ----

StoreService::TransferId StoreService::start(std::size_t client, const TransferSpec& spec,
                                             Client& told) {
    return add(client, spec, told, false);
}

StoreService::TransferId StoreService::open_stream(std::size_t client, const TransferSpec& spec,
                                                   Client& told) {
    return add(client, spec, told, true);
}

StoreService::TransferId StoreService::add(std::size_t client, const TransferSpec& spec,
                                           Client& told, bool stream) {
    RY_CHECK(client < clients_.size() && spec.store < stores_.size() && spec.weight > 0);
    advance();
    TransferId id = 0;
    while (id < transfers_.size() && transfers_[id].active) ++id;
    if (id == transfers_.size()) transfers_.emplace_back();
    Transfer& t = transfers_[id] = transfer_of(client, spec);
    t.active = true;
    t.stream = stream;
    if (stream) ++streams_;
    t.told = &told;
    active_.insert(std::lower_bound(active_.begin(), active_.end(), id), id);
    changed();
    return id;
}

StoreService::Transfer StoreService::transfer_of(std::size_t client, const TransferSpec& spec) {
    Transfer t;
    t.client = client;
    t.spec = spec;
    t.told_rate = -1;  // nothing yet
    t.bytes.left = Amount{spec.bytes.count()} * 8 * second_ns;
    t.bytes.cap = spec.cap.bits_per_second();
    t.files.left = Amount{spec.files} * static_cast<std::int64_t>(file_parts) * second_ns;
    t.files.cap = parts_per_second(spec.files_per_s);
    return t;
}

std::optional<StoreService::Undisturbed> StoreService::foresee(std::size_t client,
                                                               const TransferSpec& spec) const {
    if (!active_.empty() || settling_ || log_ != nullptr) return std::nullopt;
    for (const Store& store : stores_) {
        if (store.supply.write_buffer > Bytes{}) return std::nullopt;
    }
    Transfer t = transfer_of(client, spec);
    Undisturbed out;
    for (Duration at{}; !over(t) && out.count < out.events.size();) {
        serve_alone(t);
        const Duration next = until_change(t);
        if (next == time_max) return std::nullopt;
        move(t, next);
        out.events[out.count++] = at += next;
    }
    out.walls = t.walls;
    return over(t) && out.count > 0 ? std::optional(out) : std::nullopt;
}

void StoreService::pass(std::size_t client, const TransferSpec& spec, const Undisturbed& foreseen) {
    const Instant start = engine_.now();
    for (std::size_t i = 0; i < foreseen.count; ++i) {
        engine_.pass(start + foreseen.events[i], id_, finish);
    }
    advanced_to_ = engine_.now();
    if (spec.direction == Direction::write) count_written(client, spec.store, spec.bytes);
}

void StoreService::change_cap(TransferId transfer, Bandwidth cap, Wall wall) {
    advance();
    Transfer& t = transfers_[transfer];
    RY_CHECK(t.active);
    t.spec.cap = cap;
    t.spec.cap_wall = wall;
    t.bytes.cap = cap.bits_per_second();
    changed();
}

StoreService::Progress StoreService::progress(TransferId transfer) {
    advance();
    const Transfer& t = transfers_[transfer];
    RY_CHECK(t.active);
    const Amount whole = Amount{t.spec.bytes.count()} * 8 * second_ns;
    const Amount moved = (whole - t.bytes.left) / (Amount{8} * second_ns);
    return {Bytes::of(static_cast<std::int64_t>(moved)), t.walls};
}

StoreService::Progress StoreService::cancel(TransferId transfer) {
    const Progress reached = progress(transfer);
    remove(transfer);
    changed();
    return reached;
}

void StoreService::remove(TransferId transfer) {
    Transfer& t = transfers_[transfer];
    if (t.spec.direction == Direction::write) {
        count_written(t.client, t.spec.store,
                      t.bytes.left == 0 ? t.spec.bytes : progress(transfer).moved);
    }
    if (t.stream) --streams_;
    t.active = false;
    active_.erase(std::lower_bound(active_.begin(), active_.end(), transfer));
}

void StoreService::count_written(std::size_t client, std::size_t store, Bytes moved) {
    std::vector<Bytes>& written = clients_[client].written;
    written.resize(stores_.size());
    written[store] = written[store] + moved;
}

Bytes StoreService::written(std::size_t client, std::size_t store) {
    const std::vector<Bytes>& ended = clients_[client].written;
    Bytes sum = store < ended.size() ? ended[store] : Bytes{};
    for (const TransferId id : active_) {
        const Transfer& t = transfers_[id];
        if (t.client != client || t.spec.store != store) continue;
        if (t.spec.direction == Direction::write) sum = sum + progress(id).moved;
    }
    return sum;
}

void StoreService::change_supply(std::size_t store, const StoreSupply& supply) {
    advance();
    stores_[store].supply = supply;
    changed();
}

void StoreService::set_outage(std::size_t store, bool outage) {
    advance();
    stores_[store].outage = outage;
    changed();
}

void StoreService::set_held(std::size_t client, bool held) {
    if (clients_[client].held == held) return;
    advance();
    clients_[client].held = held;
    changed();
}

// ---- the clock ----

void StoreService::changed() {
    if (settling_) return;
    fill_buffers();
    if (active_.empty()) {
        schedule_next();
    } else if (active_.size() == 1 && !transfers_[active_[0]].stream) {
        serve_alone(transfers_[active_[0]]);
        schedule_next();
    } else {
        settling_ = true;
        engine_.schedule(engine_.now(), id_, settle);
    }
}

void StoreService::advance() {
    const std::int64_t elapsed = (engine_.now() - advanced_to_).count();
    advanced_to_ = engine_.now();
    if (elapsed == 0) return;
    for (Store& store : stores_) {
        const Amount room = Amount{store.supply.write_buffer.count()} * 8 * second_ns;
        store.buffered =
            std::clamp(store.buffered + Amount{store.filling} * elapsed, Amount{0}, room);
    }
    for (const TransferId id : active_) move(transfers_[id], Duration(elapsed));
}

void StoreService::move(Transfer& t, Duration elapsed) const {
    if (t.stream || clients_[t.client].held) return;
    const Wall wall = t.bytes.left > 0 || !served(t) ? t.bytes.wall : Wall::metadata;
    t.walls[wall] += elapsed;
    for (Flow* flow : {&t.bytes, &t.files}) {
        flow->left = std::max(Amount{0}, flow->left - Amount{flow->rate} * elapsed.count());
    }
}

void StoreService::handle(std::uint32_t kind) {
    advance();
    if (kind == finish) settling_ = true;  // what clients change now is seen to below
    retire();
    settling_ = false;
    fill_buffers();
    if (active_.size() == 1 && !transfers_[active_[0]].stream) {
        serve_alone(transfers_[active_[0]]);
    } else if (!active_.empty()) {
        share_bytes();
        share_files();
    }
    schedule_next();
    tell_streams();
}

bool StoreService::over(const Transfer& t) const {
    return !t.stream && t.bytes.left == 0 && t.files.left == 0;
}

void StoreService::retire() {
    before_ = active_;
    for (const TransferId id : before_) {
        if (!transfers_[id].active || !over(transfers_[id])) continue;
        const WallTimes walls = transfers_[id].walls;
        remove(id);
        transfers_[id].told->transfer_done(id, walls);
    }
}

void StoreService::log_changed_rates() {
    logged_.resize(stores_.size());
    for (std::size_t s = 0; s < stores_.size(); ++s) {
        std::array<std::int64_t, 2> rates{};
        for (const TransferId id : active_) {
            const Transfer& t = transfers_[id];
            const bool moving = t.stream || t.bytes.left > 0;
            if (t.spec.store == s && moving && !clients_[t.client].held) {
                rates[slot_of(t.spec.direction)] += t.bytes.rate;
            }
        }
        const StoreRates now{engine_.now(), s, Bandwidth::bits_per_second(rates[0]),
                             Bandwidth::bits_per_second(rates[1])};
        if (now.read == logged_[s].read && now.write == logged_[s].write) continue;
        // What is settled within an instant never was.
        const bool again = !log_->empty() && log_->back().at == now.at && log_->back().store == s;
        if (again) log_->pop_back();
        log_->push_back(now);
        logged_[s] = now;
    }
}

void StoreService::schedule_next() {
    if (log_ != nullptr) log_changed_rates();
    engine_.cancel(next_);
    Duration next = time_max;
    for (std::size_t s = 0; s < stores_.size(); ++s) {
        Store& store = stores_[s];
        if (store.supply.write_buffer == Bytes{}) continue;
        store.filling = -store.supply.drain.bits_per_second();
        for (const TransferId id : active_) {
            const Transfer& t = transfers_[id];
            if (t.spec.store != s || t.spec.direction != Direction::write) continue;
            if (t.bytes.left > 0) store.filling += t.bytes.rate;
        }
        // Rounded rates may add up to a bit more than what drains.
        if (store.full) store.filling = std::min<std::int64_t>(store.filling, 0);
        const Amount room =
            Amount{store.supply.write_buffer.count()} * 8 * second_ns - store.buffered;
        if (store.filling > 0) next = std::min(next, time_for(room, store.filling));
    }
    for (const TransferId id : active_) next = std::min(next, until_change(transfers_[id]));
    if (next < time_max) next_ = engine_.schedule_cancellable(engine_.now() + next, id_, finish);
}

Duration StoreService::until_change(const Transfer& t) const {
    if (over(t)) return Duration{};
    Duration next = time_max;
    for (const Flow* flow : {&t.bytes, &t.files}) {
        if (flow->left > 0 && flow->rate > 0) {
            next = std::min(next, time_for(flow->left, flow->rate));
        }
    }
    return next;
}

void StoreService::tell_streams() {
    if (streams_ == 0) return;
    before_ = active_;
    for (const TransferId id : before_) {
        Transfer& t = transfers_[id];
        if (!t.active || !t.stream || t.told_rate == t.bytes.rate) continue;
        t.told_rate = t.bytes.rate;
        t.told->supply_changed(id, Bandwidth::bits_per_second(t.bytes.rate));
    }
}

// ---- sharing ----

bool StoreService::ClientState::cut_off(const TransferSpec& transfer) const {
    return transfer.store < paths.size() &&
           paths[transfer.store].way[slot_of(transfer.direction)] == Bandwidth{};
}

bool StoreService::served(const Transfer& t) const {
    const ClientState& client = clients_[t.client];
    return !client.held && !stores_[t.spec.store].outage && !client.cut_off(t.spec);
}

std::int64_t StoreService::Store::write() const {
    return (full ? std::min(supply.write, supply.drain) : supply.write).bits_per_second();
}

// A buffer that is full stays so while writers take all that drains from it.
void StoreService::fill_buffers() {
    for (Store& store : stores_) {
        const Amount room = Amount{store.supply.write_buffer.count()} * 8 * second_ns;
        store.full = room > 0 && store.buffered >= room;
    }
}

// The most common case, and the same as what follows would find.
void StoreService::serve_alone(Transfer& t) const {
    const StoreSupply& supply = stores_[t.spec.store].supply;
    const bool reads = t.spec.direction == Direction::read;
    const std::int64_t store =
        reads ? supply.read.bits_per_second() : stores_[t.spec.store].write();
    const PathRate network = path_rate(t);
    t.bytes.rate = t.files.rate = 0;
    t.bytes.wall = clients_[t.client].cut_off(t.spec) ? Wall::network : Wall::outage;
    if (!served(t)) return;
    const std::int64_t files = parts_per_second(reads ? supply.opens_per_s : supply.creates_per_s);
    t.files.rate = std::min(t.files.cap, files);
    if (store == 0) return;
    t.bytes.rate = std::min({t.bytes.cap, network.rate, store});
    t.bytes.wall = t.bytes.rate == t.bytes.cap ? t.spec.cap_wall
                   : t.bytes.rate == store     ? Wall::store
                                               : network.wall;
}

// Limits by index: of each store reads, writes and its servers' time; of each client both directions, and
// both again for each store. A client's weight is shared by all that it moves at a store.
void StoreService::share_bytes() {
    ByteShares shares = shares_now();
    std::vector<Transfer*> sharing;
    std::vector<std::size_t> beside(clients_.size() * stores_.size());  // of a client at a store
    const auto place = [this](const Transfer& t) {
        return t.client * stores_.size() + t.spec.store;
    };
    for (const TransferId id : active_) {
        Transfer& t = transfers_[id];
        t.bytes.rate = 0;
        if (!served(t)) {
            t.bytes.wall = clients_[t.client].cut_off(t.spec) ? Wall::network : Wall::outage;
            continue;
        }
        if (!t.stream && t.bytes.left == 0) continue;
        const StoreSupply& supply = stores_[t.spec.store].supply;
        const Bandwidth most = t.spec.direction == Direction::read ? supply.read : supply.write;
        if (most.bits_per_second() == 0) {
            t.bytes.wall = Wall::outage;
            continue;
        }
        sharing.push_back(&t);
        ++beside[place(t)];
    }
    for (Transfer* each : sharing) {
        const TransferSpec& spec = each->spec;
        const std::size_t d = slot_of(spec.direction);
        const Bandwidth most = spec.direction == Direction::read ? stores_[spec.store].supply.read
                                                                 : stores_[spec.store].supply.write;
        shares.add(
            {.client = each->client,
             .limits = {spec.store * 3 + d, spec.store * 3 + 2, client_limit(each->client, d),
                        client_limit(each->client, d) + 2 * (1 + spec.store)},
             .use = {1, 1 / real(most.bits_per_second()), 1, 1},
             .weight = real(spec.weight) / real(beside[place(*each)]),
             .cap = each->bytes.cap,
             .cap_wall = spec.cap_wall});
    }
    // Where a store only reads or only writes, its servers' time says nothing new.
    for (std::size_t s = 0; s < stores_.size(); ++s) {
        if (shares.idle(s * 3) || shares.idle(s * 3 + 1)) shares.lift(s * 3 + 2);
    }
    shares.solve();
    for (std::size_t i = 0; i < sharing.size(); ++i) {
        sharing[i]->bytes.rate = shares.share(i).rate;
        sharing[i]->bytes.wall = shares.share(i).wall;
    }
}

std::size_t StoreService::client_limit(std::size_t client, std::size_t direction) const {
    return stores_.size() * 3 + client * 2 * (1 + stores_.size()) + direction;
}

ByteShares StoreService::shares_now() const {
    ByteShares shares(client_limit(clients_.size(), 0));
    for (std::size_t s = 0; s < stores_.size(); ++s) {
        const StoreSupply& supply = stores_[s].supply;
        shares.limit(s * 3, real(supply.read.bits_per_second()), Wall::store);
        shares.limit(s * 3 + 1, real(stores_[s].write()), Wall::store);
        shares.limit(s * 3 + 2, 1, Wall::store);
    }
    for (std::size_t c = 0; c < clients_.size(); ++c) {
        for (std::size_t d = 0; d < 2; ++d) {
            const auto bound = [&](std::size_t limit, Bandwidth most, Wall wall) {
                shares.limit(limit, real(most.bits_per_second()), wall);
            };
            const Bandwidth network = clients_[c].network[d];
            bound(client_limit(c, d), network, Wall::client);
            const std::vector<ClientPath>& paths = clients_[c].paths;
            for (std::size_t s = 0; s < paths.size(); ++s) {
                const std::size_t limit = client_limit(c, d) + 2 * (1 + s);
                const std::optional<Bandwidth> sound = paths[s].sound[d];
                if (paths[s].way[d] < sound.value_or(network)) {
                    bound(limit, paths[s].way[d], Wall::network);
                } else if (sound) {
                    bound(limit, *sound, Wall::client);
                }
            }
        }
    }
    return shares;
}

// Files are shared like bytes, with one limit for each store and direction.
void StoreService::share_files() {
    struct Asking {
        Transfer* transfer;
        double weight;
    };
    for (std::size_t s = 0; s < stores_.size(); ++s) {
        for (const Direction direction : {Direction::read, Direction::write}) {
            std::vector<Asking> asking;
            double weights = 0;
            for (const TransferId id : active_) {
                Transfer& t = transfers_[id];
                if (t.spec.store != s || t.spec.direction != direction) continue;
                t.files.rate = 0;
                if (t.files.left == 0 || !served(t)) continue;
                asking.push_back({&t, real(t.spec.weight)});
                weights += asking.back().weight;
            }
            const StoreSupply& supply = stores_[s].supply;
            double free = real(parts_per_second(
                direction == Direction::read ? supply.opens_per_s : supply.creates_per_s));
            // Those that ask for least per weight first: what they leave is the others'.
            std::ranges::stable_sort(asking, [](const Asking& a, const Asking& b) {
                return real(a.transfer->files.cap) / a.weight <
                       real(b.transfer->files.cap) / b.weight;
            });
            for (const Asking& each : asking) {
                const double fair = free * each.weight / weights;
                Flow& flow = each.transfer->files;
                flow.rate = real(flow.cap) <= fair ? flow.cap : std::llround(fair);
                free -= real(flow.rate);
                weights -= each.weight;
            }
        }
    }
}

}  // namespace railyard
