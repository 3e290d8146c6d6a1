#pragma once
// What strikes a cluster's nodes and how they come back, whoever uses them: parts with an age, domains and
// their waves, injected strikes; which nodes are lemons; repairs, resets and quarantine.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/failure/failure_spec.h"
#include "models/failure/renewals.h"

namespace railyard {

struct NodeFailureCounts {
    RepairShopOutcome repair;
    std::int64_t quarantined = 0;
    std::int64_t domain_failures = 0;
};

// An heir knows who uses a node, and says what a strike does there.
class NodeFaults : public CampaignEngine::Component,
                   public Renewals::Target,
                   public RepairShop::Customer {
  public:
    bool lemon(std::size_t node) const { return !lemon_.empty() && lemon_[node]; }
    NodeFailureCounts counts() const;
    // Nodes that went to repair, by cause.
    const std::vector<std::int64_t>& repairs() const { return repairs_; }

    void failed(const Strike& strike) override;  // a part of a node, or a domain
    void repaired(std::int64_t item, bool sound) override;
    void handle(std::uint32_t event) final;

  protected:
    // What is scheduled, each with the number of a node, an outage or an injected strike. The kinds of
    // events that an heir adds come after these.
    enum Kind : std::uint32_t { node_is_back, outage_is_over, next_wave, injected, first_of_heir };

    // References must outlive it.
    NodeFaults(CampaignEngine& engine, const NodeFailures& spec,
               const std::vector<FailureCause>& causes, std::int64_t nodes, std::uint64_t seed,
               std::uint64_t replica);
    void start_faults();

    virtual void strike_node(const Strike& strike) = 0;
    // All nodes of a domain fail together: first each breaks, or is no use to anybody (false); then whoever
    // uses those that broke is told.
    virtual bool domain_breaks(std::size_t node, const Strike& strike) = 0;
    virtual void domain_is_felt(const Strike& strike, const std::vector<std::size_t>& broken) = 0;
    // The last outage on a node that has not left is over.
    virtual void outages_over(std::size_t node) = 0;
    virtual void come_back(std::size_t node, bool sound) = 0;
    virtual void handle_own(std::uint32_t kind, std::size_t index) = 0;
    // A node waits in the repair shop, as broken as it is.
    virtual void in_shop(std::size_t, const Strike&) {}
    // Nobody is in its way until then.
    virtual void back_at(std::size_t, Instant) {}

    // How likely a strike at the worst node's rate is one at this node's.
    double acceptance_of(std::size_t node) const {
        return lemon(node) ? 1.0 : 1.0 / spec_.lemons.rate_multiplier;
    }
    EventId schedule(Duration after, std::uint32_t kind, std::size_t index);
    // A node that was struck leaves: to quarantine, repair or a reset. `outage`: with nothing but one, and it
    // is back when none is on it.
    void send_away(std::size_t node, const Strike& strike, bool outage);
    // A sound one leaves instead: nothing is found.
    void send_away_sound(std::size_t node, Duration reset_time);
    const FailureCause& cause_of(const Strike& strike) const { return causes_[strike.cause]; }
    // Nodes leave for it.
    bool takes_nodes(const Strike& strike) const {
        return cause_of(strike).remedy != Remedy::restart;
    }

    CampaignEngine& engine_;
    const std::vector<FailureCause>& causes_;

  private:
    static constexpr std::uint32_t kinds = 8;
    // A failure of a domain.
    struct Outage {
        Strike strike;
        std::int64_t waves_left = 0;
    };
    std::span<const std::int64_t> nodes_of(const Outage& outage) const;
    // One that fails too often stays out, for good or until it has been inspected. True if it does.
    bool lock_out(std::size_t node);
    void strike_domain(const Strike& strike, std::int64_t waves_left);
    void end_outage(std::size_t number);
    void mended(std::size_t node, bool sound);
    void mend(std::size_t item, const Strike& strike);  // outages are numbered after the nodes

    const NodeFailures& spec_;
    CampaignEngine::ComponentId id_;
    std::size_t nodes_;
    std::vector<std::unique_ptr<Renewals>> lives_;
    std::vector<Strike> injected_;
    std::optional<RepairShop> shop_;
    FailureHistory history_;
    std::vector<bool> lemon_;
    std::vector<Outage> outages_;
    std::vector<std::int32_t> outages_on_;  // of each node: how many are not over
    // By node: whether it is sound, while it waits for their end.
    std::vector<std::optional<bool>> mended_;
    std::vector<std::int64_t> repairs_;
    NodeFailureCounts counts_;
};

}  // namespace railyard
