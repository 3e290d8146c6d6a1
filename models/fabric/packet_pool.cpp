#include "models/fabric/packet_pool.h"

#include <algorithm>

namespace railyard {

std::uint32_t PacketPool::add() {
    if (choose_) {
        choosing_.emplace_back();
        first_ = reinterpret_cast<std::byte*>(choosing_.data());
    } else {
        packets_.emplace_back();
        next_.push_back(none);
        if (memory_.times) sent_at_.emplace_back();
        if (memory_.notes) note_.emplace_back();
        first_ = reinterpret_cast<std::byte*>(packets_.data());
    }
    if (memory_.telemetry) telemetry_.resize(size() * telemetry_hops_);
    if (memory_.wanted) wanted_.emplace_back();
    return static_cast<std::uint32_t>(size() - 1);
}

std::uint32_t PacketPool::copy(std::uint32_t id) {
    const std::uint32_t twin = take();
    if (choose_) {
        choosing_[twin] = choosing_[id];
    } else {
        packets_[twin] = packets_[id];
        if (memory_.times) sent_at_[twin] = sent_at_[id];
    }
    if (memory_.telemetry) std::copy_n(telemetry(id), telemetry_hops_, telemetry(twin));
    return twin;
}

void PacketPool::swap(std::uint32_t a, std::uint32_t b) {
    if (memory_.wanted) std::swap(wanted_[a], wanted_[b]);
    if (!choose_) {
        std::swap(packets_[a], packets_[b]);
        if (memory_.times) std::swap(sent_at_[a], sent_at_[b]);
        return;
    }
    std::swap(choosing_[a], choosing_[b]);
    std::swap(choosing_[a].next, choosing_[b].next);
}

void PacketPool::widen_telemetry(std::size_t hops) {
    std::vector<HopTelemetry> wider(size() * hops);
    for (std::size_t i = 0; i < telemetry_.size(); ++i) {
        wider[i / telemetry_hops_ * hops + i % telemetry_hops_] = telemetry_[i];
    }
    telemetry_ = std::move(wider);
    telemetry_hops_ = hops;
}

std::uint32_t PacketPool::take_report() {
    if (free_reports_.empty()) {
        reports_.emplace_back();
        return static_cast<std::uint32_t>(reports_.size() - 1);
    }
    const std::uint32_t number = free_reports_.back();
    free_reports_.pop_back();
    return number;
}

std::uint32_t PacketPool::add_path(const std::vector<LinkId>& path) {
    const auto first = static_cast<std::uint32_t>(paths_.size());
    paths_.insert(paths_.end(), path.begin(), path.end());
    std::transform(path.rbegin(), path.rend(), std::back_inserter(paths_), reverse_link);
    paths_.push_back(path.front());  // so that one place beyond the last is still inside
    if (memory_.telemetry && path.size() > telemetry_hops_ + 1) widen_telemetry(path.size() - 1);
    return first;
}

}  // namespace railyard
