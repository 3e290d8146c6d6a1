#pragma once
// Arrays that begin at a cache line, so that neighbours of half a line never share two; and lines fetched
// before they are needed.

#include <boost/align/aligned_allocator.hpp>
#include <cstddef>
#include <vector>

namespace railyard {

constexpr std::size_t cache_line = 64;

// gcc takes a function that only fetches for one without effect, and drops the calls to it: the empty
// statement is an effect.
inline void fetch_line(const void* place) {
    __builtin_prefetch(place);
    asm volatile("");
}

template <class T>
using CacheLines = std::vector<T, boost::alignment::aligned_allocator<T, cache_line>>;

}  // namespace railyard
