#include "sim/parallel.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace railyard {

void parallel_for(std::size_t count, unsigned threads, const std::atomic<bool>* cancelled,
                  const std::function<void(std::size_t)>& task) {
    std::atomic<std::size_t> next{0};
    std::atomic<bool> failed{false};
    std::exception_ptr failure;
    std::size_t failed_at = count;
    std::mutex mutex;
    const auto work = [&] {
        while (!(cancelled != nullptr && *cancelled) && !failed) {
            const std::size_t i = next.fetch_add(1);
            if (i >= count) return;
            try {
                task(i);
            } catch (...) {
                failed = true;
                const std::lock_guard lock(mutex);
                if (i > failed_at) return;
                failed_at = i;
                failure = std::current_exception();
            }
        }
    };
    const std::size_t helpers = std::min<std::size_t>(threads > 0 ? threads - 1 : 0, count);
    std::vector<std::jthread> pool;
    try {
        for (std::size_t i = 0; i < helpers; ++i) pool.emplace_back(work);
    } catch (const std::system_error&) {
        // The system gives no more threads: those that there are do it all.
    }
    work();
    pool.clear();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace railyard
