#pragma once
// What moves in a burst, and over what: streams of files, each on a path of links and ceilings.

#include <map>
#include <span>
#include <utility>

#include "models/storage/burst.h"

namespace railyard {

// Files of one node that nothing can tell apart.
struct BurstStream {
    std::uint32_t load = 0;
    std::uint32_t first_rank = 0;
    std::uint32_t ranks = 0;
    std::uint32_t path = 0;
    double files = 0;
    double bytes = 0;  // of one file
    Duration start{};
    double cap = 0;  // of one file, bytes/s
    Wall cap_wall = Wall::client;
};

class BurstTraffic {
  public:
    BurstTraffic(const BurstSpec& spec, const std::vector<BurstLoad>& loads);

    // Those of the neighbours come last: one file each, without end; their load is loads().
    const std::vector<BurstStream>& streams() const { return streams_; }
    std::size_t loads() const { return operations_end_.size(); }
    // What a file uses per byte of its own: links of the topology, then ceilings.
    std::span<const Usage> path(std::uint32_t index) const {
        return {usages_.data() + first_usage_[index], usages_.data() + first_usage_[index + 1]};
    }
    Duration latency(std::uint32_t path) const { return latency_[path]; }  // of its longest way
    const std::vector<double>& capacities() const { return capacities_; }  // bytes/s
    bool ceiling(LinkId link) const { return link >= topology_.links().size(); }
    Wall wall(LinkId link) const;
    std::string where(LinkId link) const;
    Duration operations_end(std::size_t load) const { return operations_end_[load]; }
    // Two that the network does not join; empty when all goes.
    const std::string& no_path() const { return no_path_; }

  private:
    struct Limit {
        Wall wall;
        std::string where;
    };
    struct StoreCeilings {  // of one direction
        LinkId servers = 0;
        LinkId clients = 0;
        bool client_bounded = false;
    };

    LinkId add_ceilings(Bandwidth bandwidth, std::size_t count, const Limit& limit);
    void add_store(Direction direction);
    void add_load(std::uint32_t load, const BurstLoad& spec);
    void expect_paths(const BurstLoad& load);
    void add_node_files(BurstStream stream, const BurstLoad& load, std::uint32_t node);
    std::vector<Duration> ready_times(const BurstLoad& load);
    std::uint32_t striped_path(Direction direction, std::uint32_t node, std::int64_t first_server,
                               std::int64_t stripes);
    void add_connection(Direction direction, std::int64_t node, std::int64_t nic,
                        std::int64_t server, std::int64_t server_nic, float share);
    bool route(VertexId from, VertexId to);
    void add_route(float share);
    void add_part(LinkId link, double share);
    void add_neighbour(const NeighbourFlow& flow);
    LinkId server_ceiling(Direction direction, std::int64_t server) const;
    std::uint32_t end_path();

    const BurstSpec& spec_;
    const Topology& topology_;
    std::int64_t servers_;      // that are up
    bool spread_over_all_;      // every file uses every server alike: one ceiling stands for theirs
    StoreCeilings store_[2]{};  // by direction
    std::vector<Limit> limits_;  // of the ceilings
    std::vector<double> capacities_;
    Router router_;
    Duration queue_free_{};  // when the metadata service has answered all loads so far
    std::vector<Duration> operations_end_;
    std::vector<BurstStream> streams_;
    std::vector<Usage> usages_;
    std::vector<std::size_t> first_usage_{0};
    std::vector<Duration> latency_;
    std::vector<double> part_;    // of the path under way, by link
    std::vector<LinkId> parted_;  // those that are not 0
    std::vector<Usage> route_;    // sorted by link
    struct Sprayed {              // all ways between two leaves
        std::vector<Usage> between;
        float last = 1;  // what the sums of shares leave for the last cable
    };
    std::map<std::pair<VertexId, VertexId>, Sprayed> sprayed_;
    std::size_t way_links_ = 0;  // of the route with the most links
    Picoseconds way_{};
    std::string no_path_;
};

}  // namespace railyard
