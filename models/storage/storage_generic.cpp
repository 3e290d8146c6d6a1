// Servers of which no more is known than what they move: those of a scenario that names no system, and
// those that published tables describe.

#include "models/storage/storage_kinds.h"

namespace railyard {

namespace {

class GenericStore : public StorageSystem {
  public:
    explicit GenericStore(const StoreDesign& design) : d_(design) {}

    StoreLimits limits(const StoreState& state) const override {
        const auto n = real(d_.servers);
        const double up = std::max(0.0, n - real(state.servers_down));
        const double drives = real(d_.drive_count()) * up / n;
        StoreLimits out = sound_limits(d_);
        out.read = read_ceilings(d_, {up, drives, up});
        out.write = write_ceilings(d_, {up, drives, up});
        out.unreachable = 1 - up / n;
        return out;
    }

    StoreCapacity capacity() const override { return {d_.raw(), d_.raw(), "raw"}; }

    Protection protection() const override {
        Protection p;
        p.servers = d_.servers;
        p.failover_servers = 1;
        p.waits_for_server = true;
        p.groups = d_.drive_count();
        p.group_drives = d_.drive_count() > 0 ? 1 : 0;
        p.drive_capacity = d_.drives.capacity;
        if (d_.drive_count() > 0) p.lost_with_group = 1 / real(d_.drive_count());
        return p;
    }

  private:
    StoreDesign d_;
};

}  // namespace

std::unique_ptr<StorageSystem> build_generic(Section&, Section&, Catalogue&, StoreDesign design) {
    return std::make_unique<GenericStore>(design);
}

}  // namespace railyard
