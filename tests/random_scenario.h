#pragma once
// Valid scenarios at random, of all kinds: one job on stores with its step given, one job with a model
// and a plan on a network, many jobs under a scheduler. Some are refused, as they ask for what does not
// fit.

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/rng.h"

namespace railyard {

class RandomScenario {
  public:
    enum class Kind : std::uint8_t { stores, plan, world };

    // Calm: nothing fails, and nobody else is on the store.
    explicit RandomScenario(std::uint64_t seed, bool calm = false);
    static Kind kind_of(std::uint64_t seed);
    std::string text();  // TOML; call once

  private:
    bool chance(double probability) { return random_.chance(probability); }
    std::int64_t between(std::int64_t least, std::int64_t most) {
        return least + static_cast<std::int64_t>(
                           random_.below(static_cast<std::uint64_t>(most - least + 1)));
    }
    const char* one_of(const std::vector<const char*>& words) {
        return words[random_.below(words.size())];
    }
    std::int64_t power_of_two(std::int64_t most) {  // as an exponent
        return std::int64_t{1} << between(0, most);
    }
    // Over several orders of magnitude, short of round.
    double spread(double least, double most);
    template <class... Args>
    void line(fmt::format_string<Args...> format, Args&&... args) {
        text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
    }
    void add_campaign_on_stores();
    void add_stores();
    void add_job();
    void add_checkpoints();
    void add_data();
    void add_neighbours();
    void add_failures();
    void add_storms();
    void add_planned_job();
    void add_parallel();
    void add_network();
    void add_recovery();
    void add_world();
    void add_queues(const std::string& scheduler);
    void add_job_kinds(const std::string& scheduler);
    void add_modelled_kind();

    RandomStream random_;
    Kind kind_;
    bool calm_;
    std::string text_;
    std::int64_t nodes_ = 0;
    std::int64_t job_nodes_ = 0;
    bool object_store_ = false;
    bool storms_ = false;
    bool queues_ = false;
    bool shared_store_ = false;  // of many jobs
};

}  // namespace railyard
