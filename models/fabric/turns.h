#pragma once
// Queue pairs of a NIC that may send, in turn: first in, first out.

#include <cstdint>
#include <vector>

namespace railyard {

class Turns {
  public:
    bool empty() const { return count_ == 0; }
    std::size_t size() const { return count_; }
    // The one whose turn it is; not when it is empty.
    std::uint32_t first() const { return places_[first_]; }
    void push(std::uint32_t queue_pair) {
        if (count_ == places_.size()) widen();
        places_[(first_ + count_) & (places_.size() - 1)] = queue_pair;
        ++count_;
    }
    void pop() {
        first_ = (first_ + 1) & static_cast<std::uint32_t>(places_.size() - 1);
        --count_;
    }

  private:
    void widen() {
        std::vector<std::uint32_t> wider(places_.empty() ? 4 : 2 * places_.size());
        for (std::uint32_t i = 0; i < count_; ++i) {
            wider[i] = places_[(first_ + i) & (places_.size() - 1)];
        }
        places_ = std::move(wider);
        first_ = 0;
    }

    std::vector<std::uint32_t> places_;  // a power of two of them
    std::uint32_t first_ = 0;
    std::uint32_t count_ = 0;
};

}  // namespace railyard
