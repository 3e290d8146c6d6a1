#pragma once
// What a budget cut off before it had settled, while a scenario was read or its network measured. Results
// that hang on it are partial: they are printed, marked, and the program exits with 4.

#include <algorithm>
#include <mutex>
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
    // Once for each text, in their order: threads come in any.
    void add(std::string what, std::string help) {
        const std::lock_guard lock(mutex_);
        const auto at = std::ranges::lower_bound(all_, what, {}, &LimitReached::what);
        if (at != all_.end() && at->what == what) return;
        all_.insert(at, {std::move(what), std::move(help)});
    }
    const std::vector<LimitReached>& all() const { return all_; }

  private:
    std::mutex mutex_;
    std::vector<LimitReached> all_;
};

}  // namespace railyard
