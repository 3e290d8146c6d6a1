#pragma once
// How a network treats packets, as a scenario asks for it: [fabric.compute.pfc], .ecn, .watchdog and so on.

#include <optional>
#include <string>
#include <vector>

#include "models/fabric/packet_profile.h"
#include "models/fabric/routing.h"
#include "sim/config.h"

namespace railyard {

// The traffic class that storage has to itself on the compute network.
struct StorageClass {
    std::int64_t weight = 0;  // against the job's; 0: there is none, it is in the job's
    std::int64_t priority = 4;
};

// What the scenario says of it, as written.
class PacketKeys {
  public:
    // Reads the keys of a network's section. No routing: there is no choice, by hash.
    PacketKeys(Section& network, NetworkKind kind, std::optional<Routing> routing);

    // Whether the scenario has any of them.
    bool given() const { return given_; }

  protected:
    struct SwitchKeys {
        Section section;
        std::string name;
        DeviatingSwitch settings;
    };

    Section network_;
    std::optional<Section> buffer_, pfc_, ecn_, congestion_, watchdog_, transport_, credits_,
        trimming_;
    NetworkKind kind_;
    FlowControl flow_control_;
    bool routing_given_;
    Routing routing_;
    bool given_ = false;
    bool pfc_enabled_ = true;
    std::int64_t priority_ = 3;
    bool cut_through_ = false;
    bool link_level_retry_ = false;
    std::optional<Bytes> mtu_, buffer_size_, reserve_, headroom_, resume_offset_, kmin_, kmax_,
        queue_, trimmed_size_;
    bool trims_ = true;
    bool loss_by_order_ = false;
    std::optional<bool> oversubscribed_cc_;
    std::string entropy_;
    std::optional<std::int64_t> entropy_values_;
    std::int64_t headroom_oversubscription_ = 1;
    std::optional<double> alpha_, pmax_;
    std::string ecn_profile_, control_, parameters_, watchdog_profile_;
    Duration cnp_delay_{};
    bool polls_together_ = false;
    bool drops_arrivals_ = false;
    std::optional<Duration> cnp_interval_, poll_, detection_, restoration_;
    int action_ = -1;
    int recovery_ = -1;
    std::optional<std::int64_t> reordering_, cct_limit_;
    std::optional<Duration> cct_timer_;
    std::optional<Bytes> queue_step_;
    std::optional<Duration> flowlet_gap_;
    std::optional<Bytes> vl_buffer_;
    std::optional<Duration> lifetime_, leaf_lifetime_;
    std::optional<std::int64_t> stall_count_, leaf_stall_count_;
    std::optional<std::int64_t> timeout_, retries_, ack_every_;
    std::vector<SwitchKeys> switches_;

  private:
    void read_buffer(Section& buffer);
    void read_pfc(Section& pfc);
    void read_ecn_keys(Section& ecn);
    void read_congestion(Section& congestion);
    void read_watchdog_keys(Section& watchdog);
    void read_transport(Section& transport);
    void read_credit_keys(Section& credits);
    void read_trimming(Section& trimming);
    void read_entropy(Section& transport);
    void read_cct(Section& congestion);
    void read_switches(Section& network);
};

// What follows from it.
class PacketReader : public PacketKeys {
  public:
    using PacketKeys::PacketKeys;
    // With defaults from the catalogue, for the network that was built; reports what can't be, and warns of
    // what will lose packets or pause where it should mark. Beside the class of acknowledgements there is one
    // for data and, if its weight is not 0, one for storage. `nic`: the catalogue's name of the nodes' NICs.
    PacketProfile profile(Catalogue& catalogue, const Topology& topology,
                          const StorageClass& storage, const std::string& nic);

  private:
    void warn_of_idle_tables();
    void resolve_priorities(PacketProfile& profile, const StorageClass& storage);
    void resolve_buffer(Catalogue& catalogue, PacketProfile& profile);
    void resolve_transport(Catalogue& catalogue, PacketProfile& profile);
    void resolve_flowlets(Catalogue& catalogue, PacketProfile& p);
    void resolve_credits(Catalogue& catalogue, PacketProfile& profile);
    void resolve_ecn(Catalogue& catalogue, PacketProfile& profile);
    void resolve_congestion(Catalogue& catalogue, PacketProfile& profile);
    void require_control();
    void resolve_cct(Catalogue& catalogue, PacketProfile& profile);
    void resolve_any_order(Catalogue& catalogue, Bandwidth line, Picoseconds round_trip,
                           PacketProfile& profile);
    void resolve_efa(Catalogue& catalogue, const Topology& topology, PacketProfile& profile);
    void require_trimming(const Topology& topology);
    void require_link_retry(Catalogue& catalogue, const Topology& topology, const std::string& nic);
    void resolve_queue_step(Catalogue& catalogue, PacketProfile& profile);
    void resolve_ultra_ethernet(Catalogue& catalogue, const Topology& topology,
                                PacketProfile& profile);
    void resolve_watchdog(Catalogue& catalogue, const Topology& topology, PacketProfile& profile);
    void resolve_switches(const Topology& topology, PacketProfile& profile);
    Section& headroom_section(const PacketProfile& profile, VertexId at);
    void warn_of_wrong_priorities(const PacketProfile& profile);
    void check_rates(Catalogue& catalogue, const Topology& topology, const PacketProfile& p);
    void require_buffers(Catalogue& catalogue, const Topology& topology);
    void check_buffers(Catalogue& catalogue, const Topology& topology,
                       const PacketProfile& profile);
};

}  // namespace railyard
