#pragma once
// What a budget cut off before it had settled, while a scenario was read or its network measured. Results
// that hang on it are partial: they are printed, marked, and the program exits with 4.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace railyard {

struct LimitReached {
    std::string what;
    std::string help;  // which key to raise
};

class LimitsReached {
  public:
    // Once for each text.
    void add(std::string what, std::string help) {
        const auto same = [&](const LimitReached& other) { return other.what == what; };
        if (std::any_of(all_.begin(), all_.end(), same)) return;
        all_.push_back({std::move(what), std::move(help)});
    }
    const std::vector<LimitReached>& all() const { return all_; }

  private:
    std::vector<LimitReached> all_;
};

}  // namespace railyard
