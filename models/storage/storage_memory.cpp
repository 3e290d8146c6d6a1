// Memory as a store: a node's own (tmpfs), which is lost with the node, or copies in other nodes' memory.

#include <fmt/format.h>

#include <algorithm>

#include "models/storage/storage_kinds.h"

namespace railyard {

namespace {

class MemoryStore : public StorageSystem {
  public:
    struct Spec {
        Bytes node_memory;        // of one node, for this
        std::int64_t copies = 0;  // on other nodes; 0: on the node itself
        Bandwidth read;           // one node's memory
        Bandwidth write;
    };
    // design.servers are the nodes.
    MemoryStore(const StoreDesign& design, const Spec& spec) : d_(design), s_(spec) {}

    StoreLimits limits(const StoreState& state) const override {
        const auto n = real(d_.servers);
        const double up = std::max(0.0, n - real(state.servers_down));
        StoreLimits out;
        static_cast<StoreCalls&>(out) = d_.calls;
        out.read = {{"memory", s_.read * up}};
        out.write = {{"memory", s_.write * (up / real(written()))}};
        out.client_read = s_.read;
        out.client_write = s_.write;
        if (peers()) {
            const Bandwidth nics = d_.site.node_nics;
            out.read.push_back({"node NICs", nics * up});
            out.write.push_back({"node NICs", nics * (up / real(written()))});
            out.client_read = std::min(s_.read, d_.client_read);
            out.client_write = std::min(s_.write, d_.client_write * (1.0 / real(written())));
        }
        out.file_read = out.client_read;
        out.file_write = out.client_write;
        out.over_network = peers();
        out.unreachable =
            stripes_hit(written(), d_.servers, std::min(state.servers_down, written()));
        if (state.servers_down < written()) out.unreachable = 0;
        if (!peers()) out.unreachable = 1 - up / n;
        return out;
    }

    StoreCapacity capacity() const override {
        const Bytes raw = s_.node_memory * d_.servers;
        return {raw, Bytes::of(raw.count() / written()),
                peers() ? fmt::format("{} x {} nodes / {} copies", to_text(s_.node_memory),
                                      d_.servers, s_.copies)
                        : fmt::format("{} x {} nodes", to_text(s_.node_memory), d_.servers)};
    }

    // What memory held is gone once the node is.
    Protection protection() const override {
        Protection p;
        p.servers = d_.servers;
        p.failover_servers = peers() ? 0 : 1;
        p.servers_lost_max = peers() ? s_.copies - 1 : 0;
        p.servers_hold_data = true;
        p.waits_for_server = !peers();
        p.lost_with_group = 1 / real(d_.servers);
        return p;
    }

  private:
    bool peers() const { return s_.copies > 0; }
    std::int64_t written() const { return std::max<std::int64_t>(1, s_.copies); }

    StoreDesign d_;
    Spec s_;
};

std::unique_ptr<StorageSystem> build_memory(Section& own, Catalogue& c, StoreDesign design,
                                            bool peers) {
    const auto& name = design.name;
    const auto& node = design.site.node;
    MemoryStore::Spec spec;
    double share = c.number("storage", name, "share");
    own.read("share", share, "Share of a node's memory that is for this",
             {Bound::fraction, "from the catalogue"});
    std::optional<Bytes> memory;
    own.read("host_memory", memory, "Memory of one node",
             {Bound::positive, "the node's, from the catalogue"});
    if (!memory && c.has("node", node, "host_memory")) memory = c.data("node", node, "host_memory");
    if (!memory && !own.describing()) {
        own.error("host_memory", fmt::format("the catalogue does not say what {} has", node),
                  fmt::format("give {}", own.path("host_memory")));
    }
    spec.node_memory = share_of(memory.value_or(Bytes()), share);
    if (spec.node_memory.count() <= 0 && !own.describing()) {
        own.error("share", "capacity 0: nothing can be stored");
    }
    if (peers) {
        spec.copies = c.integer("storage", name, "copies");
        own.read("copies", spec.copies,
                 "Other nodes that hold a copy of a node's part (peer_memory)",
                 {Bound::count, "from the catalogue"});
        if (spec.copies >= design.servers && !own.describing()) {
            own.error("copies", fmt::format("{} copies on other nodes need {} nodes, found {}",
                                            spec.copies, spec.copies + 1, design.servers));
        }
    }
    spec.read = c.bandwidth("storage", name, "read_bandwidth");
    spec.write = c.bandwidth("storage", name, "write_bandwidth");
    own.read("bandwidth", spec.write, "What one node's memory takes and gives",
             {Bound::positive, "from the catalogue"});
    if (own.has("bandwidth")) spec.read = spec.write;
    read_latencies(c, design);
    return std::make_unique<MemoryStore>(design, spec);
}

}  // namespace

std::unique_ptr<StorageSystem> build_host_memory(Section&, Section& own, Catalogue& c,
                                                 StoreDesign design) {
    return build_memory(own, c, design, false);
}

std::unique_ptr<StorageSystem> build_peer_memory(Section&, Section& own, Catalogue& c,
                                                 StoreDesign design) {
    return build_memory(own, c, design, true);
}

}  // namespace railyard
