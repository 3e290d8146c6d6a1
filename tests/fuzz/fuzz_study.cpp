// A study's file with any bytes: its axes, its points and its stopping rule are read, or it is refused with a
// ScenarioError.

#include <algorithm>

#include "tests/fuzz/fuzzer.h"
#include "tools/study/study.h"

void try_bytes(std::string_view bytes) {
    using namespace railyard;
    static const ScratchFile file("study.toml");
    const std::string& path = file.holding(bytes);
    refused_or_read([&] {
        const Study study = read_study(path, {});
        // A study may have ten million points: a few say what all do.
        for (std::size_t point = 0; point < std::min<std::size_t>(study.points.size(), 10);
             ++point) {
            study.settings(point);
            study.label(point);
        }
    });
}
