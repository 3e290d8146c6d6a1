#include "models/storage/neighbour.h"

#include "sim/rng.h"

namespace railyard {

Neighbour::Neighbour(CampaignEngine& engine, StoreService& stores, const NeighbourSpec& spec,
                     std::uint64_t seed, std::uint64_t replica)
    : engine_(engine),
      stores_(stores),
      spec_(spec),
      id_(engine.add(*this, "neighbour")),
      client_(stores.add_client(spec.network_read, spec.network_write)) {
    if (spec.start) {
        first_ = *spec.start;
    } else if (spec.every > Duration{}) {
        RandomStream random(seed, replica, "neighbour/" + spec.name);
        first_ = Duration(static_cast<std::int64_t>(
            random.below(static_cast<std::uint64_t>(spec.every.count()))));
    }
}

void Neighbour::start() {
    read_since_ = engine_.now();
    if (spec_.checkpoint > Bytes{}) engine_.schedule(engine_.now() + first_, id_, checkpoint_due);
    if (spec_.reads.bits_per_second() > 0) {
        TransferSpec reads;
        reads.store = spec_.store;
        reads.direction = Direction::read;
        reads.weight = spec_.weight;
        reads.cap = spec_.reads;
        stores_.open_stream(client_, reads, *this);
    }
}

void Neighbour::handle(std::uint32_t) {
    engine_.schedule(engine_.now() + spec_.every, id_, checkpoint_due);
    if (write_ != StoreService::no_transfer) {
        ++outcome_.left_out;
        return;
    }
    TransferSpec write;
    write.store = spec_.store;
    write.bytes = spec_.checkpoint;
    write.files = spec_.files;
    write.weight = spec_.weight;
    write.cap = spec_.network_write;
    write.cap_wall = Wall::client;
    write_ = stores_.start(client_, write, *this);
    write_began_ = engine_.now();
}

void Neighbour::transfer_done(StoreService::TransferId, const WallTimes&) {
    write_ = StoreService::no_transfer;
    ++outcome_.written;
    outcome_.writing += engine_.now() - write_began_;
}

void Neighbour::supply_changed(StoreService::TransferId, Bandwidth rate) {
    outcome_ = outcome();
    read_since_ = engine_.now();
    rate_ = rate;
}

NeighbourOutcome Neighbour::outcome() const {
    NeighbourOutcome out = outcome_;
    const double elapsed = seconds(engine_.now() - read_since_);
    out.asked += elapsed * spec_.reads.bytes_per_second();
    out.read += elapsed * rate_.bytes_per_second();
    return out;
}

}  // namespace railyard
