#pragma once
// Arrays that begin at a cache line, so that neighbours of half a line never share two; and lines fetched
// before they are needed.

#include <cstddef>
#include <new>
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
struct CacheLineAllocator {
    using value_type = T;
    CacheLineAllocator() = default;
    template <class U>
    explicit CacheLineAllocator(const CacheLineAllocator<U>&) {}
    T* allocate(std::size_t n) {
        return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{cache_line}));
    }
    void deallocate(T* p, std::size_t) { ::operator delete (p, std::align_val_t{cache_line}); }
    bool operator==(const CacheLineAllocator&) const { return true; }
};

template <class T>
using CacheLines = std::vector<T, CacheLineAllocator<T>>;

}  // namespace railyard
