#pragma once
// One group of drives that protect each other: what is missing of its data, and how that is rebuilt. No clock
// and no chance: its owner says what is lost when, and how much has been rebuilt since.

#include <vector>

#include "models/storage/store.h"

namespace railyard {

enum class StorePart : std::uint8_t { drive, server, box };

// Something that took drives of a group along.
struct DriveLoss {
    StorePart part = StorePart::drive;
    std::int64_t index = 0;      // of that part in the store
    std::int64_t drives = 1;     // of the group, that were still there
    Bytes missing{};             // of their data, not rebuilt so far
    bool returns_whole = false;  // it comes back with its data
    bool held = false;           // its rebuild is not to begin yet
    bool replaced = false;       // there are drives again, empty
};

class DriveGroup {
  public:
    // `protection` must outlive the group.
    explicit DriveGroup(const Protection& protection);

    // Takes loss.drives away; `missing` is filled in.
    void lose(DriveLoss loss);
    // The oldest such loss that is not replaced is back, as a whole or with empty drives; none: nothing.
    void come_back(StorePart part, std::int64_t index);
    // It has been gone long enough for its rebuild to begin.
    void release(StorePart part, std::int64_t index);

    // `bytes` <= ahead() have been rebuilt.
    void rebuild(Bytes bytes);
    Bytes ahead() const;  // until the loss under rebuild is whole again; 0: no rebuild is under way
    Bandwidth rate() const;

    // Share of the group's data that has more blocks missing than it survives.
    double unreadable() const;
    // Nothing that would return whole is missing: what is unreadable stays so.
    bool unreadable_for_good() const;
    // Gives that up, and returns how much it was. The rest is rebuilt as before.
    double write_off();

    // Gone: it holds no data of the group.
    bool lost(StorePart part, std::int64_t index) const;
    std::int64_t unrebuilt(StorePart part) const;  // losses of this kind with something missing
    const std::vector<DriveLoss>& losses() const { return losses_; }

  private:
    const DriveLoss* under_rebuild() const;
    bool absent(const DriveLoss& loss) const;
    std::int64_t drives_present() const;
    double total_missing() const;
    double bytes_per_block() const;
    void heal(Bytes there_again);
    void match_stripes();
    void forget_what_is_whole();

    const Protection& protection_;
    std::int64_t width_;
    std::vector<DriveLoss> losses_;  // oldest first
    // Share of all stripes with so many blocks missing. Stripes are laid out at random over the group's
    // drives, and of a stripe no two blocks go with one loss: each of its b blocks that are left is hit by
    // a loss of d drives out of p with probability d/p, which makes b d/p of the stripe. With as many drives
    // as a stripe has blocks that is 1, and all this is plain RAID: a second loss meets what is not rebuilt
    // of the first, and only that. With more drives few stripes are hit twice, and they are rebuilt first.
    std::vector<double> stripes_;
};

}  // namespace railyard
