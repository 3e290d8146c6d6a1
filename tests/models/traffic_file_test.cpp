// Traffic that a file lists.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/models/windows.h"

using namespace railyard;

namespace {

const std::string text = one_switch + R"(
[[window.traffic]]
bytes = "1 MB"
steps = 3
)";

}  // namespace

TEST_CASE("a ring in a file is the ring, flow by flow, to the picosecond") {
    const std::string path =
        (std::filesystem::temp_directory_path() / fmt::format("railyard_ring_{}.csv", getpid()));
    {
        std::ofstream file(path);
        file << "id,src,dst,bytes,start_ps,dep\r\n";
        for (int rail = 0; rail < 2; ++rail) {
            for (int step = 0; step < 3; ++step) {
                for (int node = 0; node < 4; ++node) {
                    const int id = rail * 12 + step * 4 + node + 1;
                    const int before = rail * 12 + (step - 1) * 4 + (node + 3) % 4 + 1;
                    file << fmt::format("{},{},{},1000000,0,{}\r\n", id, node * 2 + rail,
                                        (node + 1) % 4 * 2 + rail, step > 0 ? before : 0);
                }
            }
        }
    }
    const WindowResult ring = run_first_window(text, {});
    const WindowResult listed = run_first_window(
        text, {fmt::format("window.traffic=[{{kind=\"file\",path=\"{}\"}}]", path)});
    const WindowResult late = run_first_window(
        text, {fmt::format("window.traffic=[{{kind=\"file\",path=\"{}\",start=\"1 us\"}}]", path)});
    std::remove(path.c_str());
    CHECK(ring.ends.size() == 24);
    CHECK(listed.ends == ring.ends);
    CHECK(late.ends[0] == ring.ends[0] + Picoseconds(1'000'000));
}
