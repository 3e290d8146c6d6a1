#pragma once
// One switch's packet buffer: who may take how much of it, and when the sender must stop.
//
// A packet is booked on the (port, priority) that it came in by, from its arrival until its transmission
// begins. What one of them holds is a little reserve of its own, then a share of the common pool up to
//
//     T = alpha * (pool - sum of all shares)
//
// while the pool lasts (with alpha > 1, T may be more than is left of it). Beyond that comes its headroom:
// room for what is under way while the pause frame travels. So N equally hot ones settle at
// T = alpha * pool / (1 + alpha * N). A priority without PFC has no headroom: beyond T its packets are lost.
//
// The headrooms of a switch are one pool, in which each may hold up to its size: as large as their sum, or,
// when it is oversubscribed, so many times smaller. Then there is room as long as few are hot at once
// (SONiC's shared headroom pool).
//
// The rules are those of the HPCC authors' ns-3 switch (and of a Broadcom chip, on which it is modelled).

#include <algorithm>
#include <cstdint>

namespace railyard {

// How a switch shares its buffer; how large it is, the network says.
struct BufferSpec {
    double alpha = 0.125;                     // of the dynamic threshold; kept in 1/1024
    std::int64_t reserve_bytes = 4096;        // of each (port, priority)
    std::int64_t resume_offset_bytes = 3072;  // XON is sent so far below T
    // The sum of the headrooms / what is set apart for them.
    std::int64_t headroom_oversubscription = 1;
};

// What one (port, priority) holds.
struct alignas(32) IngressShare {
    std::int64_t bytes = 0;           // in reserve and pool
    std::int64_t headroom_bytes = 0;  // in headroom
    std::int64_t headroom_size = 0;   // 0: no PFC
    bool xoff = false;                // the sender has been told to stop
};

class alignas(64) SwitchBuffer {
  public:
    // `pool_bytes`: what is left of the buffer without headroom and reserves.
    SwitchBuffer(const BufferSpec& spec, std::int64_t pool_bytes, std::int64_t headroom_bytes)
        : free_(pool_bytes),
          pool_(pool_bytes),
          headroom_free_(headroom_bytes),
          headroom_(headroom_bytes),
          alpha_1024_(static_cast<std::int64_t>(spec.alpha * 1024 + 0.5)),
          reserve_(spec.reserve_bytes),
          resume_offset_(spec.resume_offset_bytes) {}

    std::int64_t threshold() const { return (free_ * alpha_1024_) >> 10; }
    std::int64_t pool_used() const { return pool_ - free_; }
    std::int64_t headroom_used() const { return headroom_ - headroom_free_; }
    bool headroom_overdrawn() const { return headroom_free_ < 0; }

    // Books a packet that has arrived; false: there is no room, it is lost.
    bool admit(IngressShare& share, std::int64_t size) {
        const std::int64_t in_pool = share.bytes + size - reserve_;
        if (in_pool <= 0) {
            share.bytes += size;
        } else if (const std::int64_t more = std::min(size, in_pool);
                   in_pool <= threshold() && more <= free_) {
            share.bytes += size;
            free_ -= more;
        } else if (share.headroom_bytes + size <= share.headroom_size && size <= headroom_free_) {
            share.headroom_bytes += size;
            headroom_free_ -= size;
        } else {
            return false;
        }
        return true;
    }
    void release(IngressShare& share, std::int64_t size) {
        const std::int64_t from_headroom = std::min(share.headroom_bytes, size);
        const std::int64_t rest = size - from_headroom;
        share.headroom_bytes -= from_headroom;
        headroom_free_ += from_headroom;
        free_ += std::min(rest, std::max<std::int64_t>(0, share.bytes - reserve_));
        share.bytes -= rest;
    }

    bool must_pause(const IngressShare& share) const {
        return !share.xoff && share.headroom_size > 0 &&
               (share.headroom_bytes > 0 || in_pool(share) >= threshold());
    }
    bool may_resume(const IngressShare& share) const {
        if (!share.xoff || share.headroom_bytes > 0) return false;
        const std::int64_t used = in_pool(share);
        return used == 0 || used + resume_offset_ <= threshold();
    }
    std::int64_t in_pool(const IngressShare& share) const {
        return std::max<std::int64_t>(0, share.bytes - reserve_);
    }

  private:
    std::int64_t free_;  // of the pool
    std::int64_t pool_;
    std::int64_t headroom_free_;
    std::int64_t headroom_;
    std::int64_t alpha_1024_;
    std::int64_t reserve_;
    std::int64_t resume_offset_;
};

}  // namespace railyard
