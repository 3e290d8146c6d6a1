// The entries that a person may choose from by name, each with its line: what `railyard list kinds` prints.

#include <fmt/format.h>

#include <initializer_list>

#include "models/campaign/power_reader.h"
#include "models/campaign/scenario.h"
#include "models/campaign/sections.h"
#include "sim/check.h"

namespace railyard {

namespace {

class KindList {
  public:
    void add(Kind kind) { kinds_.push_back(std::move(kind)); }
    // Adds the words of a closed list, in its order.
    void words(const char* group, const std::vector<std::string>& list,
               std::initializer_list<const char*> docs) {
        RY_CHECK(list.size() == docs.size());
        std::size_t i = 0;
        for (const char* doc : docs) add({group, list[i++], doc});
    }
    std::vector<Kind> take() { return std::move(kinds_); }

  private:
    std::vector<Kind> kinds_;
};

void add_systems_and_schedulers(KindList& out) {
    for (const StorageKind& kind : storage_kinds()) {
        out.add({"storage.system", kind.name, kind.doc});
    }
    for (const std::string& profile : failure_profiles()) {
        const Value* name = Catalogue::entry("failure_profile", profile)->find("name");
        out.add({"failures.profile", profile, name ? name->text : ""});
    }
    for (const std::string& stream : Catalogue::names("job_stream")) {
        const Value* name = Catalogue::entry("job_stream", stream)->find("name");
        if (name) out.add({"jobs.kind.stream", stream, name->text});
    }
    out.add({"scheduler.kind", dedicated_scheduler,
             "one job has the cluster, its nodes and their spares, as without [scheduler]"});
    for (const WorldSchedulerKind& kind : world_scheduler_kinds()) {
        out.add({"scheduler.kind", kind.name, kind.doc});
    }
}

void add_words_of_job(KindList& out) {
    out.words(
        "job.checkpoint.mode", checkpoint_modes,
        {"nothing is saved", "the job stands still until the store has the checkpoint",
         "the job stands still for a copy to host memory; the upload runs in the background"});
    out.words("job.checkpoint.clock", interval_clocks,
              {"the interval counts training time", "the interval counts from start to start"});
    out.words("job.data.demand", data_demand_names,
              {"samples of a given size", "ResNet-50's images, as MLPerf Storage has them",
               "3D U-Net's volumes, 147 MB each and uneven", "CosmoFlow's small files",
               "tokens: next to nothing, but not nothing"});
    out.words("job.data.source", data_source_names,
              {"the shared store", "an object store: latency, requests, egress in money",
               "the nodes' own drives"});
    out.words("job.data.format", sample_format_names,
              {"large files read from end to end (WebDataset, TFRecord)",
               "large files, each sample a request", "a file for each sample"});
    out.words(
        "job.data.sampler", sampler_names,
        {"each epoch deals all samples out to the nodes anew", "each node reads the same ones"});
    out.words("job.data.cache_policy", cache_policy_names,
              {"what came first stays", "what was used last stays"});
    out.words(
        "job.parallel.precision", precision_names,
        {"16 bits", "8 bits in the layers' matrix multiplications, scaled as the software does it",
         "8 bits, a tensor's scale from the tensor itself", "8 bits, a scale for each row",
         "8 bits, a scale for each 32 elements", "4 bits, a scale for each 16 elements"});
    out.words(
        "job.parallel.schedule", pipeline_schedule_names,
        {"one forward, one backward; interleaved with virtual stages",
         "ZB-H1: gradients of weights wait until a stage would stand idle",
         "ZB-V: the same with two parts of each stage, there and back",
         "DeepSeek's: from both ends of the pipeline at once, two stages' weights on each rank",
         "DualPipe cut in half: two parts of each stage, there and back"});
    out.words(
        "job.parallel.dispatch", expert_dispatch_names,
        {"a copy for each expert, by NCCL", "one copy for each node, there one for each GPU"});
    for (const std::string& software : software_names()) {
        out.add({"job.software", software,
                 Catalogue::entry("software", software_id(software))->find("name")->text});
    }
    out.words(
        "job.parallel.order", rank_order_names,
        {"tensor-parallel ranks share nodes, replicas come next (Megatron's default)",
         "tensor-parallel ranks share nodes, pipeline stages come next",
         "replicas share nodes, then tensor-parallel ranks", "replicas share nodes, then stages",
         "stages share nodes, then tensor-parallel ranks", "stages share nodes, then replicas"});
}

void add_words_of_networks(KindList& out) {
    out.words("storage.traffic_class", storage_traffic_classes,
              {"the class of the collectives", "a class of its own"});
    out.words("window.traffic.kind", window_traffic_names,
              {"each node to the next, a piece goes on when the one before has come in",
               "each NIC to the same NIC of every other node", "each NIC to one other",
               "some NICs to one", "an all-reduce that InfiniBand's switches add up, rail by rail",
               "every node to the storage servers", "and back", "what window.traffic.path lists"});
    out.words("window.fault.kind", window_fault_names,
              {"a NIC takes nothing: it pauses its switch, or grants no credits",
               "a NIC takes no more than a rate", "a cable is cut, for a while or for ever",
               "a broken optic"});
    for (const CongestionKind& kind : congestion_kinds()) {
        out.add({"fabric.compute.congestion.control", kind.name, kind.doc});
    }
    for (const EntropyKind& kind : entropy_kinds()) {
        out.add({"fabric.compute.transport.entropy", kind.name, kind.doc});
    }
    out.words("storage.network", storage_networks,
              {"a network apart from the compute network", "the compute network: converged"});
    out.words("fabric.compute.kind", network_kinds,
              {"credits: lossless by construction; adaptive routing, SHARP",
               "RDMA over Ethernet: paths by hash unless told otherwise",
               "kernel sockets over Ethernet without pauses: what finds no room is lost",
               "packets in any order over all paths, trimmed where they find no room",
               "AWS: packets in any order over many paths, lost where they find no room"});
    for (const TopologyKind& kind : topology_kinds()) {
        out.add({"fabric.compute.topology", kind.name, kind.doc});
    }
    out.add({"fabric.compute.topology", "custom", "the cables that fabric.compute.file lists"});
    out.words(
        "fabric.compute.routing", routing_names,
        {"by the destination's place among the leaves", "by a hash, flow by flow",
         "the output with the least queue, packet by packet",
         "all outputs in turn, packet by packet", "all outputs by chance, packet by packet",
         "as adaptive, but a flow changes its way only after a pause; on the flow scale never",
         "by values that senders choose, packet by packet (Ultra Ethernet)"});
}

void add_words_of_site(KindList& out) {
    out.words("run.fidelity", fidelity_names,
              {"an ideal network between the nodes' NICs",
               "flows that share the links of [fabric.compute]",
               "its packets: queues, pauses, marks, losses"});
    out.words("cluster.fault.part", part_names,
              {"a GPU at low clocks", "NVLink lanes lost", "PCIe lanes lost", "a slow NIC",
               "a GPU whose memory is throttled"});
    for (std::size_t i = 0; i < cooling_names.size(); ++i) {
        out.add({"facility.cooling", cooling_names[i], cooling_docs[i]});
    }
    out.words("power.over_budget", over_budget_names,
              {"all GPUs' clocks stay low enough for all nodes to compute at once",
               "jobs wait until there is power for them"});
    out.words("power.redundancy", power_redundancies,
              {"every supply is needed", "one may be lost", "half of them may be lost"});
}

void add_words_of_failures(KindList& out) {
    out.words(
        "job.parallel.recompute", recompute_names,
        {"every activation is kept", "the attention core is computed again",
         "norms and activation functions too", "and every second multiplication", "whole layers"});
    out.words("failures.cause.domain", domain_kind_names,
              {"one node", "the nodes of one NVLink domain", "nodes with a NIC on the same leaf",
               "all nodes: NIC i of each", "cluster.nodes_per_rack nodes",
               "the racks of one power feed", "the racks of one cooling loop",
               "cluster.nodes_per_wave nodes, that get new firmware at once",
               "facility.breaker.nodes nodes"});
    out.words("job.recovery.policy", recovery_policy_names,
              {"hot spares take the empty places; without one the job waits",
               "it is torn down whatever has failed, and goes through the queue again",
               "processes restart where they are; a spare takes a lost node's place",
               "as spare; without one it goes on with fewer replicas until nodes are back"});
    out.words("failures.cause.remedy", remedy_names,
              {"nothing is broken", "the node is back after a reset", "the node goes to repair"});
    out.words("catalogue.values", value_choice_names,
              {"checked numbers", "the numbers that the seed guides print, where they differ"});
}

void add_ledger(KindList& out) {
    for (std::size_t i = 0; i < category_count; ++i) {
        const auto category = static_cast<Category>(i);
        out.add({"(ledger)", std::string(category_name(category)),
                 fmt::format("{}; {} in Google's goodput library", category_doc(category),
                             category_goodput_name(category))});
    }
}

}  // namespace

std::vector<Kind> kinds() {
    KindList out;
    add_systems_and_schedulers(out);
    add_words_of_job(out);
    add_words_of_networks(out);
    add_words_of_site(out);
    add_words_of_failures(out);
    add_ledger(out);
    return out.take();
}

}  // namespace railyard
