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
    const char* gpus = device == "GH200" ? "16" : "32";
    return ring_busbw({{"network", network}, {"device", device}, {"gpus", gpus}});
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

TEST_CASE("nccl words: a product's number is no rate, and products say how fast they are") {
    const double slingshot = on_network("4 x Slingshot 11 200 Gb/s", "GH200");
    CHECK(slingshot == doctest::Approx(4 * 25 * 0.97).epsilon(0.02));
    CHECK(on_network("4x Slingshot-11", "GH200") == slingshot);
    CHECK(on_network("4x200G Slingshot-11", "GH200") == slingshot);
    CHECK(on_network("4x Omni-Path 100", "A100") == on_network("4x OPA100", "A100"));
    CHECK(on_network("8x BlueField-3") == on_network("8x NDR400 IB"));
    CHECK(on_network("8 NDR400 NICs") == on_network("8x NDR400 IB"));
    CHECK(on_network("two 200G NICs") == on_network("2x200G"));
    CHECK(on_network("IB HDR100") == on_network("8x HDR100 IB"));
    CHECK(on_network("Slingshot") == on_network("8x Slingshot-11"));
    CHECK(on_network("4 400G NICs, IB") == on_network("4x NDR400 IB"));
}

TEST_CASE("nccl words: one rate is that of the node's NICs, or of the one that there is") {
    CHECK(on_network("100GbE") == on_network("1x100GbE"));
    CHECK(on_network("200G") == on_network("1x200G"));
    CHECK(on_network("400G") == on_network("8x400G"));
    CHECK(on_network("200G", "A100") == on_network("8x200G", "A100"));
}

TEST_CASE("nccl words: clouds' nodes have their own NICs") {
    CHECK(on_network("GPUDirect-TCPX") == on_network("4x200G TCPX"));
    CHECK(on_network("TCPXO") == on_network("8x200G TCPXO"));
    CHECK(on_network("GCP a3-megagpu-8g") == on_network("8x200G TCPXO"));
    CHECK(on_network("", "a3-highgpu-8g") == on_network("4x200G TCPX"));
    CHECK(on_network("p5.48xlarge") == on_network("32x100G EFA v2"));
    CHECK(on_network("", "AWS p5en.48xlarge") == on_network("16x200G EFA v3", "H200"));
    CHECK(on_network("ND H100 v5") == on_network("8x NDR400 IB"));
    CHECK(on_network("", "Standard_ND96isr_H100_v5") == on_network("8x NDR400 IB"));
    CHECK(on_network("3.2 Tbps EFAv3") == on_network("16x200G EFA v3"));
    CHECK(on_network("EFA v2") == on_network("32x100G EFA v2"));
    CHECK(on_network("EFA", "p5.48xlarge") == on_network("32x100G EFA v2"));
    CHECK(on_network("TCP", "p5.48xlarge") == on_network("TCP"));
    const std::string none =
        "no node of the catalogue has h100_sxm and the NICs efa_v3_200: count "
        "them, as in '16x200G EFA v3'";
    CHECK(refusal({{"network", "EFAv3"}}) == none);
    CHECK(refusal({{"network", "p5en.48xlarge"}}) ==
          "such nodes of that cloud have h200, not h100_sxm");
}

TEST_CASE("nccl words: ways that are not as usual are modelled") {
    const double usual = on_network("8x NDR400 IB");
    // A core of the host moves each of a few streams.
    const double sockets = on_network("8x400G TCP");
    CHECK(sockets < 0.2 * usual);
    CHECK(on_network("8x NDR400 IB, NCCL_IB_DISABLE=1") == sockets);
    CHECK(on_network("8x NDR400 IB, NCCL_IB_DISABLE=0") == usual);
    CHECK(on_network("1x100GbE TCP") == doctest::Approx(10).epsilon(0.01));
    // All that a NIC sends goes by way of the host's memory, or up to the root complex and down.
    for (const char* off : {"no GPUDirect", "without GDR", "GPUDirect RDMA off", "GDR disabled"}) {
        const double bounced = on_network("8x NDR400 IB, " + std::string(off));
        CHECK(bounced < 0.6 * usual);
        CHECK(bounced > 0.3 * usual);
    }
    CHECK(on_network("8x NDR400 IB, ACS on") < 0.6 * usual);
    CHECK(on_network("8x NDR400 IB, ACS off") == usual);
    CHECK(on_network("8x NDR400 IB, no NVLink") < 0.6 * usual);
}

TEST_CASE("nccl words: what may decide and is not understood is refused by its name") {
    const auto of = [](const std::string& network) { return refusal({{"network", network}}); };
    CHECK(of("8x Myrinet 100G") == "no NIC here is called 'myrinet'");
    CHECK(of("8x NDR400 IB, 2:1 oversubscribed").starts_with("'2:1 oversubscribed': "));
    CHECK(of("8x NDR400 IB, non-blocking").empty());
    CHECK(of("8x NDR400 IB, 1:1").empty());
    CHECK(of("8x NDR400 IB, NCCL_P2P_DISABLE=1") == "nothing here reads 'nccl_p2p_disable=1'");
    CHECK(of("8x NDR400 IB, ACS") == "'ACS': is it on or off?");
    CHECK(of("8x dual-port 200G").starts_with("nothing here reads '8x'"));
    CHECK(of("NDR400 x4") == "nothing here reads 'x4' of 'NDR400 x4'");
    CHECK(of("400 GB/s IB").starts_with("expected NICs in Gbit/s"));
    // Where the transport is known a word is only warned of.
    CHECK(of("8x NDR400 IB, repainted").empty());
}

TEST_CASE("nccl words: bcast is a broadcast") {
    const auto of = [](const char* collective) { return ring_busbw({{"collective", collective}}); };
    CHECK(of("bcast") == of("broadcast"));
    CHECK(of("bcast_perf") == of("broadcast"));
}
