#include "models/storage/store_failures.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard {

namespace {

// Rounded down: what is not whole yet is not rebuilt.
Bytes moved(Bandwidth rate, Duration time) {
    const __int128 bits = static_cast<__int128>(rate.bits_per_second()) * time.count();
    return Bytes::of(static_cast<std::int64_t>(bits / (__int128{8} * 1'000'000'000)));
}

}  // namespace

void StoreFailureCounts::add(const StoreFailureCounts& other) {
    for (std::int64_t StoreFailureCounts::*each :
         {&StoreFailureCounts::drives, &StoreFailureCounts::servers, &StoreFailureCounts::boxes,
          &StoreFailureCounts::rebuilds, &StoreFailureCounts::data_losses,
          &StoreFailureCounts::outages}) {
        this->*each += other.*each;
    }
    data_lost += other.data_lost;
    outage_time += other.outage_time;
}

StoreFailures::StoreFailures(CampaignEngine& engine, const StoreFailureSpec& spec,
                             const Protection& protection, StoreListener& listener,
                             std::uint64_t seed, std::uint64_t replica)
    : engine_(engine),
      spec_(spec),
      protection_(protection),
      listener_(listener),
      id_(engine.add(*this, spec.store + "/failures")),
      servers_(static_cast<std::size_t>(protection.servers)),
      box_down_(static_cast<std::size_t>(protection.boxes)) {
    if (protection.drive_capacity > Bytes{} && protection.group_drives > 0) {
        RY_CHECK(!protection.servers_hold_data ||
                 (protection.groups == 1 && protection.group_drives % protection.servers == 0));
        for (std::int64_t g = 0; g < protection.groups; ++g)
            groups_.push_back({DriveGroup(protection_), {}, {}, {}});
    }
    const auto source = [&](StorePart part, const char* name, Rate rate, std::int64_t count) {
        FailureCause cause;
        cause.name = spec.store + "/" + name;
        cause.rate_per_node = rate;
        sources_.push_back(std::make_unique<FailureSource>(
            engine, *this, static_cast<std::size_t>(part), cause, count, 1.0, seed, replica));
    };
    source(StorePart::drive, "drive", spec.drive.rate, drives());
    source(StorePart::server, "server", spec.server.rate, protection.servers);
    source(StorePart::box, "box", spec.box.rate, protection.boxes);
}

void StoreFailures::start() {
    for (const auto& source : sources_) source->start();
    for (std::size_t i = 0; i < spec_.strikes.size(); ++i)
        schedule(spec_.strikes[i].at, injected, static_cast<std::int64_t>(i));
}

void StoreFailures::end() {
    if (unserved_ <= 0) return;
    counts_.outage_time += engine_.now() - outage_since_;
    outage_since_ = engine_.now();
}

RebuildTraffic StoreFailures::rebuild_traffic() const {
    RebuildTraffic out;
    for (const Group& group : groups_) {
        out.write =
            Bandwidth::bits_per_second(out.write.bits_per_second() + group.rate.bits_per_second());
    }
    out.read = out.write * protection_.rebuild_reads;
    return out;
}

// ---- what happens when ----

EventId StoreFailures::schedule(Duration after, Kind kind, std::int64_t index) {
    if (after > Instant::max() - engine_.now()) return {};  // after the end of the clock
    return engine_.schedule_cancellable(engine_.now() + after, id_,
                                        static_cast<std::uint32_t>(index) * kinds + kind);
}

Duration StoreFailures::repair_time(const StoreFailureSpec::Part& part,
                                    const Strike& strike) const {
    constexpr double repair_seconds_max = 3e8;  // ten years: the log-normal's tail ends there
    return from_seconds(
        std::min(lognormal(seconds(part.repair), spec_.repair_sigma, strike.repair_spread),
                 repair_seconds_max));
}

bool StoreFailures::strike(const Strike& strike) {
    switch (static_cast<StorePart>(strike.cause)) {
        case StorePart::drive:
            lose_drive(strike.slot, repair_time(spec_.drive, strike));
            break;
        case StorePart::server:
            lose_server(strike.slot, repair_time(spec_.server, strike),
                        strike.replacement < spec_.server_takes_data);
            break;
        case StorePart::box:
            lose_box(strike.slot, repair_time(spec_.box, strike));
            break;
    }
    return true;
}

void StoreFailures::handle(std::uint32_t event) {
    const std::int64_t index = event / kinds;
    const auto at = static_cast<std::size_t>(index);
    switch (static_cast<Kind>(event % kinds)) {
        case injected: {
            const StoreStrike& s = spec_.strikes[at];
            if (s.part == StorePart::drive) lose_drive(s.index, s.down_for);
            if (s.part == StorePart::server) lose_server(s.index, s.down_for, s.takes_data);
            if (s.part == StorePart::box) lose_box(s.index, s.down_for);
            return;
        }
        case drive_replaced: {
            Group& group = group_of_drive(index);
            catch_up(group);
            group.drives.come_back(StorePart::drive, index);
            go_on(group, StorePart::drive);
            break;
        }
        case server_back:
            return_server(index);
            break;
        case box_back:
            box_down_[at] = false;
            --state_.boxes_down;
            break;
        case failover_over:
            servers_[at].failing_over = false;
            break;
        case release_server:
            catch_up(groups_.front());
            groups_.front().drives.release(StorePart::server, index);
            go_on(groups_.front(), StorePart::server);
            break;
        case loss_rebuilt:
            catch_up(groups_[at]);
            go_on(groups_[at], StorePart::drive);
            break;
        case kinds:
            RY_UNREACHABLE("no event has this kind");
    }
    tell();
}

// ---- parts ----

std::int64_t StoreFailures::drives() const {
    return static_cast<std::int64_t>(groups_.size()) * protection_.group_drives;
}

std::int64_t StoreFailures::server_drives() const {
    return drives() / protection_.servers;
}

StoreFailures::Group& StoreFailures::group_of_drive(std::int64_t drive) {
    return groups_[drive / protection_.group_drives];
}

void StoreFailures::lose_drive(std::int64_t drive, Duration down_for) {
    Group& group = group_of_drive(drive);
    if (group.drives.lost(StorePart::drive, drive)) return;
    if (protection_.servers_hold_data &&
        group.drives.lost(StorePart::server, drive / server_drives())) {
        return;
    }
    catch_up(group);
    group.drives.lose({.part = StorePart::drive, .index = drive});
    schedule(down_for, drive_replaced, drive);
    ++counts_.drives;
    go_on(group, StorePart::drive);
    tell();
}

void StoreFailures::lose_server(std::int64_t index, Duration down_for, bool takes_data) {
    Server& server = servers_[index];
    if (server.down) return;
    server.down = true;
    ++state_.servers_down;
    ++counts_.servers;
    schedule(down_for, server_back, index);
    if (protection_.failover > Duration{} && !protection_.waits_for_server) {
        server.failing_over = true;
        server.failover = schedule(protection_.failover, failover_over, index);
    }
    if (protection_.servers_hold_data && !groups_.empty()) take_drives_along(index, !takes_data);
    tell();
}

void StoreFailures::take_drives_along(std::int64_t server, bool returns_whole) {
    Group& group = groups_.front();
    if (group.drives.lost(StorePart::server, server)) return;  // still empty from the last time
    catch_up(group);
    DriveLoss loss{.part = StorePart::server,
                   .index = server,
                   .drives = 0,
                   .returns_whole = returns_whole,
                   .held = protection_.rebuild_after > Duration{}};
    for (std::int64_t d = server * server_drives(); d < (server + 1) * server_drives(); ++d)
        loss.drives += group.drives.lost(StorePart::drive, d) ? 0 : 1;
    if (loss.drives > 0) group.drives.lose(loss);
    if (loss.held) {
        servers_[server].release = schedule(protection_.rebuild_after, release_server, server);
    }
    go_on(group, StorePart::server);
}

void StoreFailures::lose_box(std::int64_t index, Duration down_for) {
    const auto box = static_cast<std::size_t>(index);
    if (box_down_[box]) return;
    box_down_[box] = true;
    ++state_.boxes_down;
    ++counts_.boxes;
    schedule(down_for, box_back, index);
    tell();
}

void StoreFailures::return_server(std::int64_t index) {
    Server& server = servers_[index];
    engine_.cancel(server.failover);
    engine_.cancel(server.release);
    server = {};
    --state_.servers_down;
    if (!protection_.servers_hold_data || groups_.empty()) return;
    catch_up(groups_.front());
    groups_.front().drives.release(StorePart::server, index);
    groups_.front().drives.come_back(StorePart::server, index);
    go_on(groups_.front(), StorePart::server);
}

// ---- rebuilds ----

void StoreFailures::catch_up(Group& group) {
    state_.drives_down -= group.drives.unrebuilt(StorePart::drive);
    if (group.rate > Bandwidth{}) {
        --state_.rebuilds;
        const Bytes ahead = group.drives.ahead();
        const Bytes done = std::min(ahead, moved(group.rate, engine_.now() - group.since));
        group.drives.rebuild(done);
        counts_.rebuilds += done == ahead ? 1 : 0;
        engine_.cancel(group.rebuilt);
    }
    group.since = engine_.now();
    group.rate = {};
}

void StoreFailures::go_on(Group& group, StorePart last) {
    if (group.drives.unreadable_for_good()) {
        const double fraction = group.drives.write_off() * protection_.lost_with_group;
        ++counts_.data_losses;
        counts_.data_lost += fraction;
        listener_.data_lost(fraction, last);
    }
    state_.drives_down += group.drives.unrebuilt(StorePart::drive);
    const Bytes ahead = group.drives.ahead();
    if (ahead == Bytes{}) return;
    ++state_.rebuilds;
    group.rate = group.drives.rate();
    group.rebuilt =
        schedule(transfer_time(ahead, group.rate), loss_rebuilt, &group - groups_.data());
}

// ---- what clients feel ----

double StoreFailures::unserved_by_servers() const {
    const auto all = real(protection_.servers);
    if (protection_.waits_for_server) return real(state_.servers_down) / all;
    const std::int64_t set =
        protection_.failover_servers > 0 ? protection_.failover_servers : protection_.servers;
    double unserved = 0;
    for (std::int64_t first = 0; first < protection_.servers; first += set) {
        const std::int64_t end = std::min(first + set, protection_.servers);
        std::int64_t down = 0;
        std::int64_t failing_over = 0;
        for (std::int64_t s = first; s < end; ++s) {
            down += servers_[s].down ? 1 : 0;
            failing_over += servers_[s].failing_over ? 1 : 0;
        }
        // Servers that hold data are gone for good only as far as their drives have not been rebuilt.
        const bool too_many = down > protection_.servers_lost_max &&
                              (!protection_.servers_hold_data || groups_.empty());
        unserved += real(too_many ? end - first : failing_over);
    }
    return unserved / all;
}

void StoreFailures::tell() {
    double unserved = state_.servers_down > 0 ? unserved_by_servers() : 0;
    for (const Group& group : groups_)
        unserved += group.drives.unreadable() * protection_.lost_with_group;
    if (state_.boxes_down > protection_.boxes_lost_max) {
        unserved += real(state_.boxes_down) / real(protection_.boxes);
    }
    const bool was_out = unserved_ > 0;
    unserved_ = listener_.stands_still(state_) ? 1 : std::min(1.0, unserved);
    const bool is_out = unserved_ > 0;
    if (is_out && !was_out) {
        ++counts_.outages;
        outage_since_ = engine_.now();
        listener_.outage_begins();
    }
    if (was_out && !is_out) {
        counts_.outage_time += engine_.now() - outage_since_;
        listener_.outage_ends();
    }
    listener_.store_changed();
}

}  // namespace railyard
