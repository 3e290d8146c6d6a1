#pragma once
// Where a packet can go next: at each switch, for each destination, the equal-cost outputs and whose turn
// it is.
//
// A Router finds one way through a large network; this has every answer ready, for packets that choose at
// each switch. NICs on the same leaves are one destination until the last hop. So the table takes
// 8 bytes x switches x leaves: 5 MB, 640 bytes per host, for 8,192 hosts on 1,280 switches.

#include <cstdint>
#include <span>
#include <vector>

#include "models/fabric/cache_lines.h"
#include "models/fabric/topology.h"

namespace railyard {

class NextHops {
  public:
    NextHops() = default;  // of no network
    // Takes the links that work. `seed` sets where the turns begin. Cables that are `withdrawn` are left out
    // where the switch itself has others: those further away do not know.
    explicit NextHops(const Topology& topology, std::uint64_t seed = 0,
                      std::span<const LinkId> withdrawn = {});

    bool empty() const { return table_.empty(); }
    std::uint32_t hops_max() const { return hops_max_; }  // from NIC to NIC, whatever is down

    struct Choice {
        std::span<const LinkId> links;  // all on shortest working paths; none: no way is left
        std::uint32_t turn = 0;         // index of the one whose turn it is
    };
    // The next hop of a packet for NIC `to` that has come to a switch by link `in`; the turn passes on.
    Choice next(LinkId in, VertexId to) {
        Entry& entry = table_[row_[in] + destination_[to]];
        if (entry.block == last_hop) return {links_to(in, to), 0};
        const std::uint32_t count = blocks_[entry.block];
        const std::uint32_t turn = entry.turn;
        entry.turn = turn + 1 == count ? 0 : turn + 1;
        return {{&blocks_[entry.block + 1], count}, turn};
    }
    // Likewise, and the turn stays.
    Choice peek(LinkId in, VertexId to) const {
        const Entry& entry = table_[row_[in] + destination_[to]];
        if (entry.block == last_hop) return {links_to(in, to), 0};
        return {{&blocks_[entry.block + 1], blocks_[entry.block]}, entry.turn};
    }
    // Whether one that goes by `in` has a next hop there.
    bool leads(LinkId in, VertexId to) const {
        return table_[row_[in] + destination_[to]].block != 0;
    }
    void fetch(LinkId in, VertexId to) const { fetch_line(&table_[row_[in] + destination_[to]]); }

  private:
    static constexpr std::uint32_t last_hop = UINT32_MAX;  // the leaf is one of the NIC's own
    struct Entry {
        std::uint32_t block = 0;  // index into blocks_
        std::uint32_t turn = 0;
    };

    void find_destinations(const Topology& topology);
    std::vector<std::uint8_t> heights_to(const Topology& topology, std::uint32_t destination) const;
    void fill_rows(const Topology& topology, std::uint64_t seed, std::span<const LinkId> withdrawn);
    std::uint32_t block_of(const std::vector<LinkId>& links, std::vector<std::uint32_t>& known);
    std::span<const LinkId> links_to(LinkId in, VertexId to) const;

    std::size_t nics_ = 0;
    std::uint32_t hops_max_ = 0;
    std::vector<VertexId> end_;                  // of each link
    std::vector<std::size_t> row_;               // in the table, of the switch at each link's end
    std::vector<std::uint32_t> destination_;     // of each NIC
    std::vector<std::vector<VertexId>> leaves_;  // of each destination
    std::vector<Entry> table_;                   // by switch and destination
    std::vector<std::uint32_t> blocks_;          // a number of links, then those; again and again
    std::vector<LinkId> to_nic_;                 // links to each NIC
    std::vector<std::uint32_t> to_nic_first_;    // of each NIC
};

}  // namespace railyard
