#include "models/scheduler/published_stream.h"

#include <cmath>

#include "sim/rng.h"

namespace railyard {

namespace {

// The standard normal distribution, by its series about 0.
double normal(double z) {
    constexpr double far = 8;
    if (z < -far) return 0;
    if (z > far) return 1;
    constexpr double density_at_0 = 0.3989422804014327;
    double term = z;
    double sum = z;
    for (int odd = 3; std::abs(term) > 1e-17 * std::abs(sum); odd += 2) {
        term *= z * z / odd;
        sum += term;
    }
    return 0.5 + density_at_0 * portable_exp(-z * z / 2) * sum;
}

// Where a growing f is 0, by regula falsi (Illinois); the nearer end where it is not between them.
template <class Function>
double root(double low, double high, const Function& f) {
    double at_low = f(low);
    double at_high = f(high);
    if (at_low >= 0) return low;
    if (at_high <= 0) return high;
    constexpr int rounds_max = 100;
    for (int round = 0, side = 0; round < rounds_max && high - low > 1e-10; ++round) {
        const double middle = (low * at_high - high * at_low) / (at_high - at_low);
        const double value = f(middle);
        if (value == 0) return middle;
        if (value < 0) {
            low = middle;
            at_low = value;
            if (side < 0) at_high /= 2;
            side = -1;
        } else {
            high = middle;
            at_high = value;
            if (side > 0) at_low /= 2;
            side = 1;
        }
    }
    return (low + high) / 2;
}

// The mean of min(longest, median e^(sigma z)).
double cut_mean(double median, double sigma, double longest) {
    const double reach = portable_log(longest / median) / sigma;
    return median * portable_exp(sigma * sigma / 2) * normal(reach - sigma) +
           longest * (1 - normal(reach));
}

using Sizes = std::vector<StreamShape::Size>;

double gpus_mean(const Sizes& sizes) {
    double sum = 0;
    for (const StreamShape::Size& size : sizes) sum += size.share * real(size.gpus);
    return sum;
}

// Beyond the smallest, each double size has `factor` times the jobs of the one before.
void share_out(Sizes& sizes, double smallest, double factor) {
    double sum = 0;
    double weight = 1;
    for (std::size_t i = 1; i < sizes.size(); ++i, weight *= factor) sum += weight;
    sizes[0].share = sizes.size() > 1 ? smallest : 1;
    weight = 1;
    for (std::size_t i = 1; i < sizes.size(); ++i, weight *= factor) {
        sizes[i].share = (1 - smallest) * weight / sum;
    }
}

bool same(double a, double b) {
    return std::abs(a - b) <= 1e-6 * std::abs(b);
}

std::optional<Sizes> sizes_of(const PublishedStream& stream) {
    Sizes sizes;
    for (std::int64_t gpus = stream.gpus_median; gpus <= stream.gpus_max; gpus *= 2) {
        sizes.push_back({gpus, 1, stream.time_median});
        if (same(stream.gpus_mean, real(stream.gpus_median))) break;  // all are alike
    }
    if (sizes.empty()) return std::nullopt;
    constexpr double log_factor_max = 20;
    const double log_factor = root(-log_factor_max, log_factor_max, [&](double log) {
        share_out(sizes, stream.smallest_share, portable_exp(log));
        return gpus_mean(sizes) - stream.gpus_mean;
    });
    share_out(sizes, stream.smallest_share, portable_exp(log_factor));
    if (!same(gpus_mean(sizes), stream.gpus_mean)) return std::nullopt;
    return sizes;
}

// Finds medians by size, and sigma, for one power of the size.
class Times {
  public:
    Times(const PublishedStream& stream, StreamShape& shape) : stream_(stream), shape_(shape) {}

    // So that half of all jobs take less than the median, and they take the mean on average.
    void fit(double power) {
        constexpr double sigma_max = 6;
        set_medians(power, root(1e-3, sigma_max, [&](double sigma) {
                        set_medians(power, sigma);
                        return time_mean(shape_) - stream_.time_mean;
                    }));
    }

  private:
    void set_medians(double power, double sigma) {
        shape_.sigma = sigma;
        const auto log_median = [&](const StreamShape::Size& size, double shift) {
            return portable_log(stream_.time_median) + shift +
                   power * portable_log(real(size.gpus));
        };
        const double widest = std::abs(power) * portable_log(real(stream_.gpus_max));
        const double shift = root(-widest - 1, widest + 1, [&](double s) {
            double longer = 0;
            for (const StreamShape::Size& size : shape_.sizes) {
                const double z = (log_median(size, s) - portable_log(stream_.time_median)) / sigma;
                longer += size.share * normal(z);
            }
            return longer - 0.5;
        });
        for (StreamShape::Size& size : shape_.sizes) {
            size.time_median = portable_exp(log_median(size, shift));
        }
    }

    const PublishedStream& stream_;
    StreamShape& shape_;
};

}  // namespace

double time_mean(const StreamShape& shape) {
    double sum = 0;
    for (const StreamShape::Size& size : shape.sizes) {
        sum += size.share * cut_mean(size.time_median, shape.sigma, shape.time_max);
    }
    return sum;
}

double gpu_time_mean(const StreamShape& shape) {
    double sum = 0;
    for (const StreamShape::Size& size : shape.sizes) {
        sum +=
            size.share * real(size.gpus) * cut_mean(size.time_median, shape.sigma, shape.time_max);
    }
    return sum;
}

std::optional<StreamShape> shape_of(const PublishedStream& stream) {
    if (stream.time_median <= 0 || stream.time_mean <= stream.time_median ||
        stream.time_max <= stream.time_mean || stream.gpus_median < 1) {
        return std::nullopt;
    }
    const std::optional<Sizes> sizes = sizes_of(stream);
    if (!sizes) return std::nullopt;
    StreamShape shape{*sizes, 0, stream.time_max};
    Times times(stream, shape);
    double power = 0;
    if (stream.gpu_time_mean > 0 && shape.sizes.size() > 1) {
        constexpr double power_min = -1;
        constexpr double power_max = 2;
        power = root(power_min, power_max, [&](double p) {
            times.fit(p);
            return gpu_time_mean(shape) / stream.gpu_time_mean - 1;
        });
    }
    times.fit(power);
    if (!same(time_mean(shape), stream.time_mean)) return std::nullopt;
    return shape;
}

}  // namespace railyard
