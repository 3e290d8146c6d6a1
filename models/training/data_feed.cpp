#include "models/training/data_feed.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace railyard {

namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;

// Rounded up: the loaders never ask for a bit less than the steps take.
std::int64_t bits_per_second(double bytes_per_second) {
    constexpr double most = 4e18;
    return static_cast<std::int64_t>(std::ceil(std::min(bytes_per_second * 8, most)));
}

// In bits x ns.
__int128 amount(double bytes) {
    constexpr double most = 1e18;
    return __int128{static_cast<std::int64_t>(std::min(bytes, most))} * 8 * ns_per_s;
}

DataSupply with_store(DataSupply supply, double bytes_per_second) {
    supply.store_bandwidth = bytes_per_second;
    return supply;
}

}  // namespace

DataFeed::DataFeed(CampaignEngine& engine, StoreService& stores, std::size_t client,
                   const DataFeedSpec& spec, Job& job)
    : DataFeed(PartClock{engine, engine.add(*this, "data")}, stores, client, spec, job) {}

DataFeed::DataFeed(const PartClock& clock, StoreService& stores, std::size_t client,
                   const DataFeedSpec& spec, Job& job)
    : clock_(clock), stores_(stores), client_(client), spec_(spec), job_(job) {
    base_wait_ =
        from_seconds(std::min(spec.loader->flow(spec.supply).data_wait_s, seconds(longest)));
    cold_ = spec.cold_steps > 0;
    read_by(cold_ ? spec.cold : spec.supply);
}

void DataFeed::read_by(const DataSupply& supply) {
    supply_ = supply;
    const double remote = std::max(0.0, 1 - supply.memory_share - supply.local_share);
    steady_ = pace_by(supply);
    growing_ = pace_by(supply.at_two_reads());
    full_ = amount(spec_.loader->flow(supply).queue_bytes * remote);
    step_ = amount(spec_.loader->bytes_per_step() * remote);
    const double from_store = alone() ? 1 : remote;
    const DataSupply fills = alone() ? supply : with_store(supply, DataSupply::unlimited);
    shuffle_full_ = amount(spec_.loader->shuffle_bytes() * from_store);
    shuffle_initial_ = amount(spec_.loader->shuffle_initial_bytes() * from_store);
    fill_most_ = bits_per_second(spec_.loader->shuffle_fill_bandwidth(fills) * from_store);
    if (!alone()) return;
    growing_.consumed = bits_per_second(spec_.loader->flow(supply.at_two_reads()).samples_per_s *
                                        spec_.loader->demand().sample_bytes);
}

DataFeed::Pace DataFeed::pace_by(const DataSupply& supply) const {
    const DataFlow flow = spec_.loader->flow(supply);
    const DataFlow unbounded = spec_.loader->flow(with_store(supply, DataSupply::unlimited));
    const double remote = std::max(0.0, 1 - supply.memory_share - supply.local_share);
    Pace pace;
    pace.consumed = spec_.alone ? 0 : bits_per_second(flow.read_bandwidth);
    pace.most = pace.consumed;
    if (remote > 0) {  // of nothing there may be any number
        pace.most =
            std::max(pace.most, bits_per_second(unbounded.supply_samples_per_s *
                                                spec_.loader->demand().sample_bytes * remote));
    }
    pace.wait_alone = from_seconds(std::min(flow.data_wait_s, seconds(longest)));
    return pace;
}

void DataFeed::warm_up() {
    advance();
    cold_ = false;
    const bool full = shuffled_ == shuffle_full_;
    read_by(spec_.supply);
    shuffled_ = full ? shuffle_full_ : std::min(shuffled_, shuffle_full_);
    queue_ = std::min(queue_, full_);
    const bool loads = stream_ != StoreService::no_transfer;
    if (alone()) close_stream();  // all is in caches, and nothing is read any more
    if (loads) ask();
    plan();
    update_wait();
}

void DataFeed::begin(Use use) {
    if (shuffle_full_ == 0) queue_ = full_;
    change(use);
}

void DataFeed::change(Use use) {
    if ((alone() && shuffle_full_ == 0) || use == use_) return;
    advance();
    use_ = use;
    if (use == Use::no_loaders) {
        close_stream();
        queue_ = shuffled_ = 0;
        reading_ = true;
        told_ready_ = false;
        extra_wait_ = {};
        clock_.cancel(next_);
        return;
    }
    ask();
    plan();
    update_wait();
}

std::int64_t DataFeed::taken() const {
    if (use_ != Use::steps || filling()) return 0;
    return queue_ > 0 ? pace().consumed : std::min(pace().consumed, given_ / reads());
}

void DataFeed::advance() {
    const std::int64_t elapsed = (clock_.now() - advanced_to_).count();
    advanced_to_ = clock_.now();
    if (starving()) starved_ += Duration(elapsed);
    if (!reading_) return;
    if (filling()) {
        shuffled_ = std::min(shuffled_ + Amount{given_} * elapsed, shuffle_initial_);
        return;
    }
    const std::int64_t leaves = given_ / reads();
    queue_ += Amount{leaves - taken()} * elapsed;
    queue_ = std::clamp(queue_, Amount{0}, full_);
    if (growing()) {
        shuffled_ = std::min(shuffled_ + Amount{given_ - leaves} * elapsed, shuffle_full_);
    }
}

bool DataFeed::starving() const {
    return use_ == Use::steps && reading_ && !filling() && queue_ == 0 &&
           given_ / reads() < pace().consumed;
}

Duration DataFeed::starved() const {
    return starved_ + (starving() ? clock_.now() - advanced_to_ : Duration{});
}

void DataFeed::begin_epoch() {
    advance();
    queue_ = shuffled_ = 0;
    reading_ = true;
    told_ready_ = false;
    ask();
    plan();
    update_wait();
}

void DataFeed::end_reading() {
    advance();
    reading_ = false;
    ask();
    plan();
    update_wait();
}

std::int64_t DataFeed::steps_at_hand() const {
    const Amount held = queue_ + shuffled_;
    const Amount all = alone() ? amount(spec_.loader->bytes_per_step()) : step_;
    return static_cast<std::int64_t>(held / std::max<Amount>(1, all));
}

std::int64_t DataFeed::epoch_ends_after(std::int64_t steps) const {
    if (spec_.epoch_steps == 0) return 0;
    return (steps / spec_.epoch_steps + 1) * spec_.epoch_steps;
}

void DataFeed::look_at_epoch(std::int64_t steps) {
    if (epoch_ends_ == 0) return;
    if (steps >= epoch_ends_) {
        epoch_ends_ = epoch_ends_after(steps);
        begin_epoch();
    } else if (reading_ && ready() && steps_at_hand() >= epoch_ends_ - steps) {
        end_reading();
    }
}

void DataFeed::look_at_caches(std::int64_t steps) {
    if (cold_ && steps >= spec_.cold_steps) warm_up();
}

std::int64_t DataFeed::steps_ahead(std::int64_t steps) const {
    std::int64_t ahead = std::numeric_limits<std::int64_t>::max();
    if (cold_) ahead = spec_.cold_steps - steps;
    if (epoch_ends_ > 0) {  // until it ends, or until all that is left of it is read
        const std::int64_t left = epoch_ends_ - steps;
        ahead = std::min(ahead, reading_ ? steps_to_read(left) : left);
    }
    return ahead;
}

std::int64_t DataFeed::steps_to_read(std::int64_t left) const {
    const std::int64_t to_read = left - steps_at_hand();
    return std::max<std::int64_t>(1, (to_read + reads() - 1) / reads());
}

std::int64_t DataFeed::wanted() const {
    if (!reading_) return 0;
    if (filling()) return fill_most_;
    if (alone()) return use_ == Use::steps && growing() ? 2 * growing_.consumed : 0;
    if (queue_ < full_) return reads() * pace().most;
    return use_ == Use::steps ? reads() * pace().consumed : 0;
}

void DataFeed::ask() {
    const std::int64_t wanted = this->wanted();
    if (alone()) {
        given_ = wanted;
        return;
    }
    if (stream_ == StoreService::no_transfer) {
        TransferSpec spec;
        spec.store = spec_.store;
        spec.direction = Direction::read;
        spec.weight = spec_.weight;
        spec.cap = Bandwidth::bits_per_second(wanted);
        stream_ = stores_.open_stream(client_, spec, *this);
    } else if (wanted != asked_) {
        stores_.change_cap(stream_, Bandwidth::bits_per_second(wanted), Wall::network);
    }
    asked_ = wanted;
}

void DataFeed::close_stream() {
    if (stream_ != StoreService::no_transfer) stores_.cancel(stream_);
    stream_ = StoreService::no_transfer;
    asked_ = given_ = 0;
}

void DataFeed::plan() {
    clock_.cancel(next_);
    if (!reading_) return;
    Amount after = time_max.count();
    const auto until = [&](Amount way, std::int64_t speed) {
        if (speed > 0 && way > 0) after = std::min(after, (way + speed - 1) / speed);
    };
    if (filling()) {
        until(shuffle_initial_ - shuffled_, given_);
    } else {
        const std::int64_t leaves = given_ / reads();
        const std::int64_t net = leaves - taken();
        until(net > 0 ? full_ - queue_ : queue_, std::abs(net));
        if (growing()) until(shuffle_full_ - shuffled_, given_ - leaves);
    }
    if (after == time_max.count()) return;
    next_ = clock_.schedule(clock_.now() + Duration(static_cast<std::int64_t>(after)), queue_ends);
}

bool DataFeed::update_wait() {
    Duration wait = pace().wait_alone;
    if (starving()) {
        const double leaves = real(given_ / reads()) / 8;
        const DataSupply supply = growing() ? supply_.at_two_reads() : supply_;
        const double slow = given_ == 0
                                ? seconds(longest)
                                : spec_.loader->flow(with_store(supply, leaves)).data_wait_s;
        wait = from_seconds(std::min(slow, seconds(longest)));
    }
    Duration extra = use_ == Use::steps ? std::max(Duration{}, wait - base_wait_) : Duration{};
    if (use_ == Use::steps && !reading_) {  // all is at hand
        const DataSupply unbounded = with_store(supply_, DataSupply::unlimited);
        extra = from_seconds(spec_.loader->flow(unbounded).data_wait_s) - base_wait_;
    }
    if (extra == extra_wait_) return false;
    extra_wait_ = extra;
    return true;
}

void DataFeed::supply_changed(StoreService::TransferId, Bandwidth rate) {
    advance();
    given_ = rate.bits_per_second();
    supplied();
}

void DataFeed::handle(std::uint32_t) {
    advance();
    supplied();
}

void DataFeed::supplied() {
    ask();
    plan();
    if (update_wait()) job_.pace_changed();
    if (ready() && !std::exchange(told_ready_, true)) job_.first_batch_there();
}

}  // namespace railyard
