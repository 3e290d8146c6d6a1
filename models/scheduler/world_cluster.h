#pragma once
// The nodes that many jobs share: whether they take jobs, which of their GPUs are free, and where they stand.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "models/scheduler/allocation.h"
#include "models/scheduler/world_spec.h"

namespace railyard {

constexpr NodeIndex no_node = std::numeric_limits<NodeIndex>::max();

// As the scheduler knows it: a broken node is up until somebody finds out.
enum class NodeState : std::uint8_t { up, drained, repair };

struct WorldNode {
    NodeState state = NodeState::up;
    bool broken = false;  // whether anybody knows or not: not for kinds to look at
    std::uint32_t group = 0;
    NodePlace place;
    std::int64_t gpus = 0;  // whole ones: a node whose GPUs are cut into slices has none
};

// A set of nodes: a bit for each.
class NodeSet {
  public:
    explicit NodeSet(std::size_t nodes = 0) : words_((nodes + 63) / 64) {}
    void add(NodeIndex node) { words_[node / 64] |= bit(node); }
    void remove(NodeIndex node) { words_[node / 64] &= ~bit(node); }
    // Both sets must be over the same nodes.
    void add(const NodeSet& others) {
        for (std::size_t w = 0; w < words_.size(); ++w) words_[w] |= others.words_[w];
    }
    void remove(const NodeSet& others) {
        for (std::size_t w = 0; w < words_.size(); ++w) words_[w] &= ~others.words_[w];
    }
    bool has(NodeIndex node) const { return (words_[node / 64] & bit(node)) != 0; }
    std::size_t words() const { return words_.size(); }
    std::uint64_t word(std::size_t index) const { return words_[index]; }
    std::uint64_t& word(std::size_t index) { return words_[index]; }
    const std::uint64_t* data() const { return words_.data(); }

  private:
    static std::uint64_t bit(NodeIndex node) { return std::uint64_t{1} << (node % 64); }
    std::vector<std::uint64_t> words_;
};

// Calls visit(word, bits) for each word of a NodeSet that a run reaches into.
template <class Visit>
void each_word(const NodeRun& run, const Visit& visit) {
    constexpr std::uint64_t all = ~std::uint64_t{0};
    const std::size_t last = (run.end() - 1) / 64;
    for (std::size_t w = run.first / 64; w <= last; ++w) {
        const std::uint64_t from = w == run.first / 64 ? all << (run.first % 64) : all;
        visit(w, w == last ? from & (all >> (63 - (run.end() - 1) % 64)) : from);
    }
}

class WorldCluster {
  public:
    explicit WorldCluster(const WorldSpec& spec);

    const std::vector<WorldNode>& nodes() const { return nodes_; }
    const WorldNode& node(NodeIndex index) const { return nodes_[index]; }
    // What the jobs of a pool get: GPUs (0), or instances of a profile.
    std::size_t device_of(std::uint32_t pool) const { return device_of_pool_[pool]; }
    // Nodes that are up and have exactly so many of a device free, at most device_max().
    const NodeSet& with_free(std::int64_t count, std::size_t device = 0) const {
        return devices_[device].by_free[count];
    }
    std::int64_t device_max(std::size_t device) const {
        return static_cast<std::int64_t>(devices_[device].by_free.size()) - 1;
    }
    std::size_t devices() const { return devices_.size(); }
    const std::string& slice_of(std::size_t device) const { return devices_[device].slice; }
    // How many a node has when it is empty. GPUs that are cut as jobs come could be cut into many devices;
    // each is counted as if there were no other.
    std::int64_t capacity(NodeIndex node, std::size_t device) const {
        return devices_[device].capacity[node];
    }
    std::int64_t free(NodeIndex node, std::size_t device) const {
        return devices_[device].free[node];
    }
    // That hold GPUs of it.
    std::vector<JobIndex> jobs_on(NodeIndex node) const;
    bool in_use(NodeIndex node) const {
        return alone_[node] != no_world_job || !jobs_[node].empty();
    }
    // GPUs of an allocation, each of them so many parts, by group of nodes.
    std::vector<std::int64_t> parts_by_group(const Allocation& gpus, std::int64_t parts_each) const;
    // Nodes that are not both up and sound.
    const NodeSet& ailing() const { return ailing_; }
    // Those of an allocation, in its order.
    std::vector<NodeIndex> ailing(const Allocation& gpus) const;
    // By pool (WorldSpec::pool).
    const NodeSet& members(std::uint32_t pool) const { return members_[pool]; }
    // Devices in a pool's nodes that are up.
    std::int64_t free_gpus(std::uint32_t pool) const { return parts_[pool].free_gpus; }
    // In sevenths where slices are.
    std::int64_t free_parts(std::uint32_t pool) const { return parts_[pool].free_parts; }
    std::int64_t free_parts_of(NodeIndex node) const {
        return mig_[node] ? mig_[node]->free() : free(node, 0) * parts_per_gpu_;
    }
    std::int64_t stranded_parts_of(NodeIndex node) const {
        return mig_[node] ? mig_[node]->stranded() : 0;
    }
    // How many of them have at least so many free.
    std::int64_t nodes_with(std::uint32_t pool, std::int64_t gpus) const;

    // Cuts it into runs whose nodes are all of one group and in the same partitions. Calls visit(run, whole);
    // whole: these are all GPUs of the nodes.
    template <class Visit>
    void each_run(const Allocation& gpus, const Visit& visit) const {
        for (NodeRun left : gpus.runs()) {
            while (left.count > 0) {
                NodeRun run = left;
                run.count = std::min(left.end(), alike_until_[left.first]) - left.first;
                left.first += run.count;
                left.count -= run.count;
                visit(run, run.gpus == nodes_[run.first].gpus);
            }
        }
    }
    // A job takes all GPUs of such a run, and gives them back.
    void take_whole(const NodeRun& run, JobIndex job);
    void give_back_whole(const NodeRun& run, JobIndex job);
    // A job of a pool takes GPUs, or one instance.
    void take(NodeIndex node, JobIndex job, std::int64_t gpus, std::uint32_t pool);
    void give_back(NodeIndex node, JobIndex job, std::int64_t gpus);
    // Where a job's slice is on a node; none of whole GPUs.
    std::optional<MigPlace> place_of_slice(NodeIndex node, JobIndex job) const {
        return mig_[node] ? mig_[node]->place_of(job) : std::nullopt;
    }
    // The next slice that the job takes is to be there.
    void keep_place(JobIndex job, const MigPlace& place) { kept_places_[job] = place; }
    void set_state(NodeIndex node, NodeState state);
    void set_broken(NodeIndex node, bool broken);

  private:
    struct Device {
        std::string slice{};  // empty: a GPU
        std::vector<NodeSet> by_free{};
        std::vector<std::int64_t> free{};  // by node
        std::vector<std::int64_t> capacity{};
        std::vector<std::optional<ProfileIndex>> profile{};  // by group
    };
    struct Part {
        std::int64_t free_gpus = 0;
        std::int64_t free_parts = 0;
        std::vector<std::int64_t> count{};  // of nodes that are up, by free GPUs
    };
    void list(NodeIndex node, int sign);  // enters a node into what is counted, or takes it out
    void note_ailing(NodeIndex node);
    void set_free(NodeIndex node, std::int64_t gpus);
    void move_free(NodeIndex node, std::int64_t nodes, std::int64_t before, std::int64_t after);
    void add_device(const WorldSpec& spec, const std::string& slice);
    void count_slices(NodeIndex node);  // after its instances have changed

    std::vector<WorldNode> nodes_;
    std::vector<NodeIndex>
        alike_until_;              // by node: whose group and partitions all up to there have
    std::vector<JobIndex> alone_;  // by node: who has all GPUs of it
    std::vector<std::vector<JobIndex>> jobs_;  // by node: who has some
    NodeSet ailing_;
    std::int64_t gpus_max_ = 0;
    std::int64_t parts_per_gpu_ = 1;
    std::vector<std::optional<MigGpus>> mig_;  // by node
    std::map<JobIndex, MigPlace> kept_places_;
    std::vector<Device> devices_;
    std::vector<std::size_t> device_of_pool_;
    std::vector<NodeSet> members_;                   // by pool
    std::vector<std::vector<std::uint32_t>> pools_;  // by node
    std::vector<Part> parts_;
};

}  // namespace railyard
