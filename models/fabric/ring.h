#pragma once
// A queue in an array, first in, first out, that doubles when it is full.

#include <cstdint>
#include <utility>
#include <vector>

namespace railyard {

// `least`: how many places it begins with, a power of two.
template <class T, std::size_t least>
class Ring {
  public:
    bool empty() const { return count_ == 0; }
    std::size_t size() const { return count_; }
    // Not when it is empty.
    const T& first() const { return places_[first_]; }
    // By age: the oldest is 0.
    T& operator[](std::uint32_t age) { return places_[(first_ + age) & (places_.size() - 1)]; }
    void push(const T& value) {
        if (count_ == places_.size()) widen();
        places_[(first_ + count_) & (places_.size() - 1)] = value;
        ++count_;
    }
    void pop() {
        first_ = (first_ + 1) & static_cast<std::uint32_t>(places_.size() - 1);
        --count_;
    }

  private:
    void widen() {
        std::vector<T> wider(places_.empty() ? least : 2 * places_.size());
        for (std::uint32_t i = 0; i < count_; ++i) wider[i] = (*this)[i];
        places_ = std::move(wider);
        first_ = 0;
    }

    std::vector<T> places_;  // a power of two of them
    std::uint32_t first_ = 0;
    std::uint32_t count_ = 0;
};

}  // namespace railyard
