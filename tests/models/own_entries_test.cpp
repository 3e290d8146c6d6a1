// Entries of the catalogue that a scenario brings along.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "models/campaign/campaign.h"

using namespace railyard;

namespace {

const std::string rest = R"(
[run]
duration = "2 day"
replicas = 2
[cluster]
nodes = 9
node = "@node"
[job]
nodes = 8
model = "@model"
[job.parallel]
tensor = 4
global_batch = 64
[storage]
system = "@store"
[fabric.compute]
leaf = "@switch"
[failures]
profile = "meta_rsc1"
[cost]
)";

std::string with_names(std::string text, const std::string& node, const std::string& model,
                       const std::string& store, const std::string& leaf) {
    for (const auto& [mark, name] : {std::pair("@node", node), std::pair("@model", model),
                                     std::pair("@store", store), std::pair("@switch", leaf)}) {
        text.replace(text.find(mark), std::string(mark).size(), name);
    }
    return text;
}

std::string digest(const std::string& text) {
    return run_campaign(load_scenario(text, "test"), {}).digest;
}

}  // namespace

TEST_CASE("an entry that is like another and says nothing more is that other") {
    const std::string own = R"(
[gpu.mine]
like = "h100_sxm"
[nic.mine]
like = "cx7_ndr400"
[node.mine]
like = "also_mine"
[node.also_mine]
like = "dgx_h100"
gpu = "mine"
compute_nic = "mine"
[model.mine]
like = "llama2_13b"
[storage_system.mine]
like = "weka"
[switch.mine]
like = "qm9700_ndr"
)";
    const std::string ours =
        digest(with_names(rest, "dgx_h100", "llama2_13b", "weka", "qm9700_ndr"));
    CHECK(digest(own + with_names(rest, "mine", "mine", "mine", "mine")) == ours);
    CHECK(digest(own + "[override.gpu.mine]\nbf16_achievable = \"500 TFLOP/s\"\n" +
                 with_names(rest, "mine", "mine", "mine", "mine")) != ours);
}

TEST_CASE("no published run tells how far a stack of one's own is off, whatever it is like") {
    const auto error = [](const std::string& stack) {
        const std::string text = R"(
[run]
duration = "1 h"
[software.mine]
like = "nemo_25.09"
[cluster]
nodes = 1
node = "dgx_h100"
[job]
model = "llama3_8b"
parallel = { tensor = 2, global_batch = 64 }
)" + stack;
        return load_scenario(text, "test").step_error;
    };
    const StepError own = error("software = \"mine\"\n");
    CHECK(error("software = \"nemo_25.09\"\n").named);
    CHECK_FALSE(own.named);
    CHECK(own.nine_tenths == error("").nine_tenths);
}

TEST_CASE("every built-in entry of an open kind can be copied key by key") {
    for (const OpenKind& open : open_kinds()) {
        for (const std::string& name : Catalogue::names(open.kind)) {
            CAPTURE(open.kind);
            CAPTURE(name);
            Value root;
            Value section;
            section.members.push_back({"copy", *Catalogue::entry(open.kind, name)});
            std::erase_if(section.members[0].value.members,
                          [](const Member& m) { return m.key == "published_in"; });
            if (std::string_view(open.kind) == "storage") {
                Value like;
                like.kind = Value::Kind::string;
                like.text = name;
                section.members[0].value.members.push_back({"like", like});
            }
            root.members.push_back({open.section, section});
            Diagnostics diagnostics;
            ValueReader reader(diagnostics, "copy");
            const OwnEntries own(reader, root);
            for (const Diagnostic& d : diagnostics.errors()) {
                CHECK_MESSAGE(false, (d.path + ": " + d.message));
            }
            CHECK(own.names(open.kind) == std::vector<std::string>{"copy"});
        }
    }
}

TEST_CASE("a value of one's own is an estimate when it says so, and only where it is read") {
    const auto estimates = [](const std::string& node) {
        const std::string text = R"(
[gpu.mine]
like = "h100_sxm"
hbm_efficiency = { value = 0.8, class = "estimate", source = "a guess", low = 0.7, high = 0.9 }
[node.mine]
like = "dgx_h100"
gpu = "mine"
)" + with_names(rest, node, "llama2_13b", "weka", "qm9700_ndr");
        std::int64_t found = 0;
        for (const Estimate& e : load_scenario(text, "test").estimates) {
            if (e.path == "gpu.mine.hbm_efficiency" && e.source == "a guess") ++found;
        }
        return found;
    };
    CHECK(estimates("mine") == 1);
    CHECK(estimates("dgx_h100") == 0);
}
