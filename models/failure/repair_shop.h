#pragma once
// Where broken things wait for a crew and a part, are repaired, and are tried before they go out again.
//
//     admitted --> queue --> at work --> burn-in --> out, sound or not
//                    ^                      |
//                    +---- found not sound -+
//
// First come, first served; one that waits for a part lets those pass that need none.

#include <deque>
#include <optional>
#include <vector>

#include "models/failure/clock.h"
#include "sim/rng.h"

namespace railyard {

struct RepairShopSpec {
    std::int64_t crews = 0;               // 0: there is always one
    std::optional<std::int64_t> parts{};  // in stock at the start; none: there is always one
    Duration lead_time{};                 // who asks for a part has another ordered, that comes
                                          // so much later
    double fails_again = 0;               // of repairs, how many leave the fault in
    Duration burn_in{};
    double burn_in_finds = 1;  // of the faults left in, how many it finds

    bool limited() const { return crews > 0 || parts || fails_again > 0 || burn_in > Duration{}; }
};

struct RepairOrder {
    Duration work{};  // of one crew
    bool takes_part = false;
};

struct RepairShopOutcome {
    std::int64_t repairs = 0;      // done by a crew
    std::int64_t came_back = 0;    // of these, found unsound in burn-in
    std::int64_t let_out = 0;      // of these, gone out with the fault
    double waited_s = 0;           // sum over repairs that began, for a crew or a part
    double waited_for_part_s = 0;  // of it, while a crew stood by
    std::size_t queue_max = 0;
};

class RepairShop : public CampaignEngine::Component {
  public:
    class Customer {
      public:
        virtual ~Customer() = default;
        virtual void repaired(std::int64_t item, bool sound) = 0;
    };

    // Items are numbered from 0 by the customer. References must outlive the shop.
    RepairShop(CampaignEngine& engine, const RepairShopSpec& spec, Customer& customer,
               std::uint64_t seed, std::uint64_t replica);

    void admit(std::int64_t item, const RepairOrder& order);
    void handle(std::uint32_t kind) override;

    std::size_t waiting() const { return queue_.size(); }
    const RepairShopOutcome& outcome() const { return outcome_; }

  private:
    enum Kind : std::uint32_t { part_arrives, work_done, burned_in, kinds };
    struct Waiting {
        std::int64_t item = 0;
        Instant since{};
        bool part_short = false;  // a crew was free and a part was not
        Instant short_since{};
    };
    struct Item {
        RepairOrder order;
        std::int64_t visits = 0;
        bool sound = true;
        bool found = false;
    };

    void queue(std::int64_t item);
    void start_what_can();
    void start(const Waiting& waiting);
    void schedule(Duration after, Kind kind, std::int64_t item);
    Item& item(std::int64_t number);
    void judge(std::int64_t number);

    CampaignEngine& engine_;
    const RepairShopSpec& spec_;
    Customer& customer_;
    std::uint64_t seed_;
    std::uint64_t replica_;
    CampaignEngine::ComponentId id_;
    std::vector<Item> items_;
    std::deque<Waiting> queue_;
    std::int64_t at_work_ = 0;
    std::int64_t parts_ = 0;
    RepairShopOutcome outcome_;
};

}  // namespace railyard
