#include "models/training/data_feed.h"

#include <algorithm>
#include <cmath>

#include "sim/check.h"

namespace railyard {

namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;

// Rounded up: the loaders never ask for a bit less than the steps take.
std::int64_t bits_per_second(double bytes_per_second) {
    constexpr double most = 4e18;
    return static_cast<std::int64_t>(std::ceil(std::min(bytes_per_second * 8, most)));
}

DataSupply with_store(DataSupply supply, double bytes_per_second) {
    supply.store_bandwidth = bytes_per_second;
    return supply;
}

}  // namespace

DataFeed::DataFeed(CampaignEngine& engine, StoreService& stores, std::size_t client,
                   const DataFeedSpec& spec, Job& job)
    : engine_(engine),
      stores_(stores),
      client_(client),
      spec_(spec),
      job_(job),
      id_(engine.add(*this, "data")) {
    base_wait_ =
        from_seconds(std::min(spec.loader->flow(spec.supply).data_wait_s, seconds(longest)));
    cold_ = spec.cold_steps > 0;
    read_by(cold_ ? spec.cold : spec.supply);
}

void DataFeed::read_by(const DataSupply& supply) {
    supply_ = supply;
    const DataFlow alone = spec_.loader->flow(supply);
    const DataFlow unbounded = spec_.loader->flow(with_store(supply, DataSupply::unlimited));
    const double remote = std::max(0.0, 1 - supply.memory_share - supply.local_share);
    consumed_ = bits_per_second(alone.read_bandwidth);
    most_ = std::max(consumed_, bits_per_second(unbounded.supply_samples_per_s *
                                                spec_.loader->demand().sample_bytes * remote));
    full_ = Amount{static_cast<std::int64_t>(alone.queue_bytes * remote)} * 8 * ns_per_s;
    wait_alone_ = from_seconds(std::min(alone.data_wait_s, seconds(longest)));
}

void DataFeed::warm_up() {
    advance();
    cold_ = false;
    read_by(spec_.supply);
    queue_ = std::min(queue_, full_);
    if (stream_ != StoreService::no_transfer) ask();
    plan();
    update_wait();
}

void DataFeed::begin(Use use) {
    queue_ = full_;
    change(use);
}

void DataFeed::change(Use use) {
    if (consumed_ == 0 || use == use_) return;
    advance();
    use_ = use;
    if (use == Use::no_loaders) {
        stores_.cancel(stream_);
        stream_ = StoreService::no_transfer;
        queue_ = 0;
        asked_ = given_ = 0;
        extra_wait_ = {};
        engine_.cancel(next_);
        return;
    }
    ask();
    plan();
    update_wait();
}

std::int64_t DataFeed::taken() const {
    if (use_ != Use::steps) return 0;
    return queue_ > 0 ? consumed_ : std::min(consumed_, given_);
}

void DataFeed::advance() {
    const std::int64_t elapsed = (engine_.now() - advanced_to_).count();
    advanced_to_ = engine_.now();
    if (starving()) starved_ += Duration(elapsed);
    queue_ += Amount{given_ - taken()} * elapsed;
    queue_ = std::clamp(queue_, Amount{0}, full_);
}

bool DataFeed::starving() const {
    return use_ == Use::steps && queue_ == 0 && given_ < consumed_;
}

Duration DataFeed::starved() const {
    return starved_ + (starving() ? engine_.now() - advanced_to_ : Duration{});
}

void DataFeed::ask() {
    const std::int64_t wanted = queue_ < full_ ? most_ : use_ == Use::steps ? consumed_ : 0;
    if (stream_ == StoreService::no_transfer) {
        TransferSpec spec;
        spec.store = spec_.store;
        spec.direction = Direction::read;
        spec.weight = spec_.weight;
        spec.cap = Bandwidth::bits_per_second(wanted);
        stream_ = stores_.open_stream(client_, spec, *this);
    } else if (wanted != asked_) {
        stores_.change_demand(stream_, Bandwidth::bits_per_second(wanted));
    }
    asked_ = wanted;
}

void DataFeed::plan() {
    engine_.cancel(next_);
    const std::int64_t net = given_ - taken();
    const Amount way = net > 0 ? full_ - queue_ : queue_;
    if (net == 0 || way == 0) return;
    const std::int64_t speed = std::abs(net);
    const Amount after = std::min((way + speed - 1) / speed, Amount{time_max.count()});
    next_ = engine_.schedule_cancellable(engine_.now() + Duration(static_cast<std::int64_t>(after)),
                                         id_, queue_ends);
}

bool DataFeed::update_wait() {
    Duration wait = wait_alone_;
    if (starving()) {
        const double given = static_cast<double>(given_) / 8;
        const double slow = given_ == 0
                                ? seconds(longest)
                                : spec_.loader->flow(with_store(supply_, given)).data_wait_s;
        wait = from_seconds(std::min(slow, seconds(longest)));
    }
    const Duration extra =
        use_ == Use::steps ? std::max(Duration{}, wait - base_wait_) : Duration{};
    if (extra == extra_wait_) return false;
    extra_wait_ = extra;
    return true;
}

void DataFeed::supply_changed(StoreService::TransferId, Bandwidth rate) {
    advance();
    given_ = rate.bits_per_second();
    ask();
    plan();
    if (update_wait()) job_.data_wait_changed();
}

void DataFeed::handle(std::uint32_t) {
    advance();
    ask();
    plan();
    if (update_wait()) job_.data_wait_changed();
}

}  // namespace railyard
