#include "tools/study/attribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace railyard {

namespace {

class Attributor {
  public:
    Attributor(const TrialOptions& options, const ScenarioChanges& changes,
               const Scenario& scenario, std::int64_t order_pairs)
        : options_(options), changes_(changes) {
        options_.metrics = {"goodput"};
        const LossCauses there = loss_causes(scenario);
        for (std::size_t i = 0; i < loss_cause_count; ++i) {
            if (there[i]) players_.push_back(static_cast<LossCause>(i));
        }
        if (order_pairs > 0) {
            RandomStream random(scenario.seed, 0, "explain/orders");
            orders_ = sample_orders(players_.size(), static_cast<std::size_t>(order_pairs), random);
        }
    }

    Attribution run() {
        run_arms();
        if (goodput(0) == nullptr) throw Interrupted();
        Attribution out;
        out.goodput = arms_.at(0).summary(0);
        if (goodput(all()) != nullptr) {
            out.ideal = arms_.at(all()).summary(0);
            out.residue = arms_.at(all()).ledger;
        }
        out.causes = shares();
        out.arms = arms_wanted_;
        out.arms_done = arms_.size();
        for (const auto& [coalition, trial] : arms_) {
            if (trial.ending == Ending::complete) continue;
            out.unfinished.emplace_back(without(coalition), trial.ending);
        }
        return out;
    }

  private:
    Coalition all() const { return (Coalition{1} << players_.size()) - 1; }

    LossCauses without(Coalition coalition) const {
        LossCauses out;
        for (std::size_t p = 0; p < players_.size(); ++p) {
            if ((coalition >> p) & 1U) out.set(static_cast<std::size_t>(players_[p]));
        }
        return out;
    }

    // The scenario itself, the ideal, each cause alone and each as the last come first: they say something
    // even when the rest is interrupted.
    std::vector<Coalition> wanted() const {
        std::set<Coalition> rest;
        if (orders_.empty()) {
            for (Coalition c = 0; c <= all(); ++c) rest.insert(c);
        }
        for (const JoiningOrder& order : orders_) {
            Coalition joined = 0;
            for (const std::uint32_t p : order) rest.insert(joined |= Coalition{1} << p);
        }
        std::vector<Coalition> out = {0, all()};
        for (std::size_t p = 0; p < players_.size(); ++p) out.push_back(Coalition{1} << p);
        for (std::size_t p = 0; p < players_.size(); ++p)
            out.push_back(all() ^ (Coalition{1} << p));
        out.insert(out.end(), rest.begin(), rest.end());
        std::set<Coalition> seen;
        std::erase_if(out, [&](Coalition c) { return !seen.insert(c).second; });
        return out;
    }

    void run_arms() {
        const std::vector<Coalition> coalitions = wanted();
        arms_wanted_ = coalitions.size();
        std::vector<ScenarioChanges> variants;
        for (const Coalition c : coalitions) {
            variants.push_back(changes_);
            variants.back().without = without(c);
        }
        std::vector<std::optional<Trial>> trials = run_trials(options_, variants);
        for (std::size_t i = 0; i < trials.size(); ++i) {
            if (!trials[i]) continue;
            if (!trials[i]->possible()) throw ScenarioError(trials[i]->problem);
            arms_.emplace(coalitions[i], std::move(*trials[i]));
        }
    }

    const std::vector<double>* goodput(Coalition coalition) const {
        const auto found = arms_.find(coalition);
        return found == arms_.end() ? nullptr : &found->second.values[0];
    }

    std::optional<Summary> gain(Coalition with, Coalition from) const {
        const auto after = arms_.find(with);
        const auto before = arms_.find(from);
        if (after == arms_.end() || before == arms_.end()) return std::nullopt;
        return summarise_change(after->second, before->second, 0);
    }

    std::vector<CauseOfLoss> shares() const {
        std::vector<std::vector<double>> share(players_.size());
        std::vector<double> error(players_.size(), 0.0);
        const bool complete = arms_.size() == arms_wanted_;
        for (std::size_t r = 0; complete && r < goodput(0)->size(); ++r)
            add_replica(r, share, error);
        std::vector<CauseOfLoss> out;
        for (std::size_t p = 0; p < players_.size(); ++p) {
            const Coalition self = Coalition{1} << p;
            CauseOfLoss cause{players_[p], {}, error[p], gain(self, 0), gain(all(), all() ^ self)};
            if (complete) {
                cause.share = summarise(share[p], dealt_over(share[p].size(), arms_.at(0).draws));
            }
            out.push_back(cause);
        }
        std::ranges::stable_sort(out, [](const CauseOfLoss& a, const CauseOfLoss& b) {
            const auto size = [](const CauseOfLoss& c) {
                const std::optional<Summary>& known = c.share ? c.share : c.alone;
                return known ? known->mean : -1.0;
            };
            return size(a) > size(b);
        });
        return out;
    }

    void add_replica(std::size_t replica, std::vector<std::vector<double>>& share,
                     std::vector<double>& error) const {
        const auto value = [&](Coalition c) { return (*goodput(c))[replica]; };
        std::vector<double> of_replica;
        if (orders_.empty()) {
            std::vector<double> values;
            for (Coalition c = 0; c <= all(); ++c) values.push_back(value(c));
            of_replica = shapley_shares(values);
        } else {
            of_replica = shapley_shares(orders_, value).share;
        }
        for (std::size_t p = 0; p < players_.size(); ++p) share[p].push_back(of_replica[p]);
        if (replica > 0 || orders_.empty()) return;
        // The error of the orders, of the means over replicas.
        const auto mean = [&](Coalition c) { return arms_.at(c).summary(0).mean; };
        error = shapley_shares(orders_, mean).standard_error;
    }

    TrialOptions options_;
    const ScenarioChanges& changes_;
    std::vector<LossCause> players_;
    std::vector<JoiningOrder> orders_;  // none: all subsets
    std::map<Coalition, Trial> arms_;   // those that were finished
    std::size_t arms_wanted_ = 0;
};

}  // namespace

Attribution attribute_loss(const TrialOptions& options, const ScenarioChanges& changes,
                           const Scenario& scenario, std::int64_t order_pairs) {
    return Attributor(options, changes, scenario, order_pairs).run();
}

std::string names_of_causes(const LossCauses& causes) {
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < loss_cause_count; ++i) {
        if (causes[i]) names.push_back(loss_cause_name(static_cast<LossCause>(i)));
    }
    return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "));
}

std::string_view residue_doc(Category category) {
    switch (category) {
        case Category::exposed_communication:
            return "what the plan has to send, on a network with nothing in its way";
        case Category::pipeline_bubble:
            return "what the plan's pipeline costs";
        case Category::data_wait:
            return "loaders that are too slow for their data, wherever it comes from";
        case Category::spare:
            return "nodes that the job does not use";
        default:
            return category_doc(category);
    }
}

}  // namespace railyard
