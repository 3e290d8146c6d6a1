#pragma once
// The front of several figures, all of which want to be low: what nothing else is at least as good as in all
// of them and better in one.

#include <cstddef>
#include <vector>

namespace railyard {

// Numbers of the rows on the front, in order. Rows with a figure that is not a number are on none; of rows
// that are equal in all figures the first is.
std::vector<std::size_t> front_of(const std::vector<std::vector<double>>& rows);

}  // namespace railyard
