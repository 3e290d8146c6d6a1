// A study's file with any bytes: its axes, its points and its stopping rule are read, or it is refused with a
// ScenarioError.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/scratch_file.h"
#include "tools/study/study.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace railyard;
    static const ScratchFile file("study.toml");
    const std::string& path = file.holding({reinterpret_cast<const char*>(data), size});
    try {
        const Study study = read_study(path, {});
        // A study may have ten million points: a few say what all do.
        for (std::size_t point = 0; point < std::min<std::size_t>(study.points.size(), 10);
             ++point) {
            study.settings(point);
            study.label(point);
        }
    } catch (const ScenarioError&) {
        // What a wrong study should come to.
    }
    return 0;
}
