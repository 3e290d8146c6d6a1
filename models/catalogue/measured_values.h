#pragma once
// What was measured of a part, where a scenario gives it another figure of its datasheet.
//
// A GPU that is `like` one of the catalogue's, or one of these overridden, has its measurements: what matrix
// multiplications reach of the peak, and copies of the links. Where the peak or the links are given anew and
// the measurement is not, it stays the same part of them: m' = m d' / d, an estimate from 0.85 to 1.1 times
// that, and never more than d'. (Of the GPUs that were measured, bf16 reaches 0.73 to 0.93 of the peak.)

#include <string>
#include <utility>
#include <vector>

#include "sim/document.h"

namespace railyard {

// Without its source, where it has one.
const Value& inner_value(const Value& value);

// The measurements of `entry`, an entry of the catalogue, that follow what is `given` instead of its values.
std::vector<std::pair<std::string, Value>> measurements_that_follow(const Value& entry,
                                                                    const Value& given);

}  // namespace railyard
