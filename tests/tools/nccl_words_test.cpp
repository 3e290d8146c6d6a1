// Runs of nccl-tests in the words of tables: which NICs they name, and which rows are refused.

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "tools/program/csv_table.h"
#include "tools/verify/nccl.h"

using namespace railyard;

namespace {

using Words = std::map<std::string, std::string>;

// GB/s of a large ring all-reduce, unless the words ask for something else.
double ring_busbw(const Words& words) {
    NcclTests tests(nullptr);
    const Words usual = {
        {"device", "H100"},           {"network", ""}, {"racks", ""},  {"collective", "all_reduce"},
        {"algorithm", "Ring Simple"}, {"nodes", "4"},  {"gpus", "32"}, {"bytes", "17179869184"}};
    const auto text = [&](const char* name) {
        return words.contains(name) ? words.at(name) : usual.at(name);
    };
    return 1e-9 *
           tests.figures(text, [](const char* name) { return std::string(name); }).at("busbw");
}

double on_network(const std::string& network, const std::string& device = "H100") {
    return ring_busbw({{"network", network}, {"device", device}});
}

// Why a row is refused; "" if it is not.
std::string refusal(const Words& words) {
    try {
        ring_busbw(words);
    } catch (const RowError& error) {
        return error.message;
    }
    return "";
}

}  // namespace

TEST_CASE("nccl words: NICs that are counted are those of a node with as many GPUs as the row's") {
    const Words four = {
        {"device", "A100"}, {"nodes", "16"}, {"gpus", "64"}, {"network", "4x HDR200 IB"}};
    CHECK(ring_busbw(four) == doctest::Approx(4 * 25 * 0.97).epsilon(0.02));
    // Half of a node of eight, and four NICs for eight GPUs.
    Words other = four;
    other["network"] = "8x HDR200 IB";
    CHECK(ring_busbw(other) == doctest::Approx(4 * 25 * 0.97).epsilon(0.02));
    other["network"] = "DGX A100 8x200G";
    CHECK(ring_busbw(other) == doctest::Approx(4 * 25 * 0.97).epsilon(0.02));
    other = four;
    other["gpus"] = "128";
    CHECK(ring_busbw(other) == doctest::Approx(4 * 25 * 0.97).epsilon(0.02));
}

TEST_CASE("nccl words: no more ranks on a node than it has GPUs") {
    CHECK(refusal({{"nodes", "1"}, {"gpus", "16"}}) ==
          "16 GPUs on 1 node: dgx_h100 of the catalogue has 8");
    CHECK(refusal({{"nodes", "2"}, {"gpus", "32"}, {"network", "8x NDR400 IB"}}) ==
          "32 GPUs on 2 nodes: dgx_h100 of the catalogue has 8");
    CHECK(refusal({{"nodes", "8"}, {"gpus", "4"}}) == "4 GPUs don't spread over 8 nodes");
    CHECK(refusal({{"device", "GB200"}, {"nodes", "18"}, {"gpus", "72"}}).empty());
}
