#pragma once
// What this build's results come from.

namespace railyard {

// "sources-" and twelve hexadecimal digits: a digest of the sources of the simulator and its catalogue
// (build_identity.cmake). Whoever changes one of them, a comment even, gets another.
const char* build_identity();

}  // namespace railyard
