#include "models/storage/rebuild.h"

#include <algorithm>
#include <cmath>

#include "sim/check.h"

namespace railyard {

namespace {

constexpr double rounding = 1e-12;  // a share of stripes that is less than one of them

}  // namespace

DriveGroup::DriveGroup(const Protection& protection)
    : protection_(protection),
      width_(protection.stripe_drives > 0 ? protection.stripe_drives : protection.group_drives) {
    RY_CHECK(width_ > protection.drives_lost_max && width_ <= protection.group_drives);
    stripes_.assign(static_cast<std::size_t>(width_) + 1, 0);
    stripes_[0] = 1;
}

// A rebuilt drive of plain RAID is a spare in its place; a declustered group has one drive fewer until the
// lost one is replaced.
bool DriveGroup::absent(const DriveLoss& loss) const {
    return loss.missing > Bytes{} || (protection_.rebuild_over_all && !loss.replaced);
}

std::int64_t DriveGroup::drives_present() const {
    std::int64_t present = protection_.group_drives;
    for (const DriveLoss& loss : losses_) present -= absent(loss) ? loss.drives : 0;
    return present;
}

double DriveGroup::bytes_per_block() const {
    return real(protection_.group_drives) * real(protection_.drive_capacity.count()) / real(width_);
}

double DriveGroup::total_missing() const {
    double sum = 0;
    for (const DriveLoss& loss : losses_) sum += real(loss.missing.count());
    return sum;
}

void DriveGroup::lose(DriveLoss loss) {
    const std::int64_t present = drives_present();
    RY_CHECK(loss.drives > 0 && loss.drives <= present);
    const double share = real(loss.drives) / real(present);
    double blocks = 0;
    for (std::size_t j = stripes_.size() - 1; j-- > 0;) {
        const double blocks_left = real(stripes_.size() - 1 - j);
        const double hit = stripes_[j] * std::min(1.0, blocks_left * share);
        stripes_[j] -= hit;
        stripes_[j + 1] += hit;
        blocks += hit;
    }
    loss.missing = Bytes::of(std::llround(blocks * bytes_per_block()));
    losses_.push_back(loss);
}

void DriveGroup::come_back(StorePart part, std::int64_t index) {
    const auto found = std::ranges::find_if(losses_, [&](const DriveLoss& l) {
        return l.part == part && l.index == index && !l.replaced;
    });
    if (found == losses_.end()) return;
    if (found->returns_whole) {
        heal(found->missing);
        found->missing = Bytes{};
        match_stripes();
    }
    found->replaced = true;
    forget_what_is_whole();
}

// A stripe has at most one block of what came back, and one for sure if it lacks a block of every loss.
void DriveGroup::heal(Bytes there_again) {
    if (there_again == Bytes{}) return;
    const double share = real(there_again.count()) / total_missing();
    const auto open = static_cast<std::size_t>(
        std::ranges::count_if(losses_, [](const DriveLoss& l) { return l.missing > Bytes{}; }));
    for (std::size_t j = 1; j < stripes_.size(); ++j) {
        const double chance = j >= open ? 1 : std::min(1.0, real(j) * share);
        const double healed = stripes_[j] * chance;
        stripes_[j] -= healed;
        stripes_[j - 1] += healed;
    }
}

// The losses share what the stripes lack.
void DriveGroup::match_stripes() {
    double blocks = 0;
    for (std::size_t j = 1; j < stripes_.size(); ++j) blocks += real(j) * stripes_[j];
    const double before = total_missing();
    if (before <= 0) return;
    const double factor = blocks * bytes_per_block() / before;
    for (DriveLoss& loss : losses_) {
        loss.missing = Bytes::of(std::llround(real(loss.missing.count()) * factor));
    }
}

void DriveGroup::release(StorePart part, std::int64_t index) {
    for (DriveLoss& loss : losses_) {
        if (loss.part == part && loss.index == index) loss.held = false;
    }
}

// The oldest that has somewhere to go: drives in its place, or spare space that no other has taken. While
// something is unreadable nothing is rebuilt: it may come back.
const DriveLoss* DriveGroup::under_rebuild() const {
    if (unreadable() > 0) return nullptr;
    std::int64_t spare = protection_.spare_drives.value_or(protection_.group_drives);
    for (const DriveLoss& loss : losses_) {
        const bool fits = loss.replaced || loss.drives <= spare;
        if (fits && !loss.held && loss.missing > Bytes{}) return &loss;
        if (fits && !loss.held && !loss.replaced) spare -= loss.drives;
    }
    return nullptr;
}

Bytes DriveGroup::ahead() const {
    const DriveLoss* loss = under_rebuild();
    return loss != nullptr && rate() > Bandwidth{} ? loss->missing : Bytes{};
}

Bandwidth DriveGroup::rate() const {
    if (!protection_.rebuild_over_all) return protection_.rebuild;
    std::int64_t in_place = protection_.group_drives;  // empty ones take what is rebuilt
    for (const DriveLoss& loss : losses_) in_place -= loss.replaced ? 0 : loss.drives;
    return protection_.rebuild * (real(in_place) / real(protection_.group_drives));
}

void DriveGroup::rebuild(Bytes bytes) {
    if (bytes == Bytes{}) return;
    RY_CHECK(bytes <= ahead());
    const auto at = static_cast<std::size_t>(under_rebuild() - losses_.data());
    losses_[at].missing = losses_[at].missing - bytes;
    double left = real(bytes.count()) / bytes_per_block();
    for (auto j = static_cast<std::size_t>(protection_.drives_lost_max); j > 0; --j) {
        const double rebuilt = stripes_[j] - left < rounding ? stripes_[j] : left;
        stripes_[j] -= rebuilt;
        stripes_[j - 1] += rebuilt;
        left = std::max(0.0, left - rebuilt);
    }
    forget_what_is_whole();
}

void DriveGroup::forget_what_is_whole() {
    std::erase_if(losses_, [](const DriveLoss& l) { return l.replaced && l.missing == Bytes{}; });
    if (total_missing() > 0) return;
    stripes_.assign(stripes_.size(), 0);
    stripes_[0] = 1;
}

double DriveGroup::unreadable() const {
    double sum = 0;
    for (auto j = static_cast<std::size_t>(protection_.drives_lost_max) + 1; j < stripes_.size();
         ++j)
        sum += stripes_[j];
    return std::min(1.0, sum);  // rounding
}

bool DriveGroup::unreadable_for_good() const {
    return unreadable() > 0 && std::ranges::none_of(losses_, [](const DriveLoss& l) {
               return l.returns_whole && l.missing > Bytes{};
           });
}

double DriveGroup::write_off() {
    const double lost = unreadable();
    const auto survived = static_cast<std::size_t>(protection_.drives_lost_max);
    std::fill(stripes_.begin() + survived + 1, stripes_.end(), 0.0);
    stripes_[0] += lost;
    match_stripes();
    forget_what_is_whole();
    return lost;
}

bool DriveGroup::lost(StorePart part, std::int64_t index) const {
    return std::ranges::any_of(losses_, [&](const DriveLoss& l) {
        return l.part == part && l.index == index && absent(l);
    });
}

std::int64_t DriveGroup::unrebuilt(StorePart part) const {
    return std::ranges::count_if(
        losses_, [&](const DriveLoss& l) { return l.part == part && l.missing > Bytes{}; });
}

}  // namespace railyard
