#pragma once
// Independent tasks over threads. Which thread does what is left to chance; results must not depend
// on it.

#include <atomic>
#include <cstddef>
#include <functional>

namespace railyard {

// Calls task(i) once for each i in [0, count), on up to `threads` threads, in increasing order of
// start. Stops handing out tasks once `cancelled` is set (null: never); those begun are finished. An
// exception stops it likewise and is thrown again here: of several that of the lowest i, whichever came
// first.
void parallel_for(std::size_t count, unsigned threads, const std::atomic<bool>* cancelled,
                  const std::function<void(std::size_t)>& task);

}  // namespace railyard
