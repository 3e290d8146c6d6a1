#pragma once
// What is asked of lists, and made of them.

#include <algorithm>
#include <functional>
#include <type_traits>
#include <vector>

namespace railyard {

template <class Range, class Value>
bool contains(const Range& range, const Value& value) {
    return std::ranges::find(range, value) != std::ranges::end(range);
}

// What `of` makes of each: a function, or one of its members.
template <class Range, class Function>
auto mapped(const Range& range, Function of) {
    std::vector<std::decay_t<std::invoke_result_t<Function&, decltype(*std::ranges::begin(range))>>>
        out;
    for (const auto& each : range) out.push_back(std::invoke(of, each));
    return out;
}

}  // namespace railyard
