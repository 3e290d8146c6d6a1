#pragma once
// Jobs like those of a published trace, of which means and medians are known: what to draw them from.

#include <cstdint>
#include <optional>
#include <vector>

namespace railyard {

// What is published of jobs' GPUs, and of their running times in seconds.
struct PublishedStream {
    double gpus_mean = 1;
    std::int64_t gpus_median = 1;
    std::int64_t gpus_max = 1;
    double smallest_share = 0.6;  // of jobs that have the median size; none is smaller
    double time_mean = 0;
    double time_median = 0;
    double time_max = 0;  // jobs are ended then
    double gpu_time_mean =
        0;  // GPUs times time of a job; 0: not known, times do not depend on sizes
};

// Sizes double from the median to at most the largest. Of each, times are log-normal with one sigma, cut off
// at the longest: min(time_max, median e^(sigma z)), z normal.
struct StreamShape {
    struct Size {
        std::int64_t gpus = 1;
        double share = 1;  // all together 1
        double time_median = 0;
    };
    std::vector<Size> sizes;
    double sigma = 0;
    double time_max = 0;
};

// Shares of larger sizes fall by a constant factor, medians grow as a power of the size; factor, power and
// sigma are those with which all that is published holds. Nothing where there are none.
std::optional<StreamShape> shape_of(const PublishedStream& stream);

// A shape's means, in closed form.
double time_mean(const StreamShape& shape);
double gpu_time_mean(const StreamShape& shape);

}  // namespace railyard
