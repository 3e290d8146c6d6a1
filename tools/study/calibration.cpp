#include "tools/study/calibration.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "sim/error.h"
#include "sim/text.h"
#include "tools/program/lists.h"

namespace railyard {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double huber = 2;
constexpr double no_bound = 1e300;

using Rows = std::vector<std::vector<double>>;

std::vector<double> logs_of(const std::vector<double>& values) {
    constexpr double nothing = 1e-300;
    return mapped(values, [&](double v) { return std::log(std::max(v, nothing)); });
}

// How far a number is moved to see what changes with it.
double reach(const FreeNumber& number) {
    return std::clamp(0.2 * number.spread, 0.002, 0.05);
}

// How figures, given as logarithms, change with a number, from its two ends and its middle; an end that can't
// be had is empty. Where the two sides say different things one of them has a jump, as where another
// algorithm is chosen: the gentler holds.
std::vector<double> slope(const std::vector<double>& low, const std::vector<double>& middle,
                          const std::vector<double>& high, double step) {
    std::vector<double> out(middle.size(), 0.0);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const double below = low.empty() ? 0 : (middle[i] - low[i]) / step;
        const double above = high.empty() ? 0 : (high[i] - middle[i]) / step;
        if (low.empty() || high.empty()) {
            out[i] = below + above;
            continue;
        }
        const double steep = std::max(std::abs(below), std::abs(above));
        const bool jump = std::abs(above - below) > steep / 2;
        const double gentle = std::abs(below) < std::abs(above) ? below : above;
        out[i] = jump ? gentle : (below + above) / 2;
    }
    return out;
}

class Fit {
  public:
    Fit(const std::vector<FreeNumber>& numbers, const std::vector<Measured>& measured,
        const Figures& figures)
        : numbers_(numbers), measured_(measured), figures_(figures) {
        for (const Measured& each : measured) used_.push_back(each.value > 0);
    }

    Calibrated run() {
        constexpr std::size_t steps_max = 20;
        const Rows found = figures_({Perturbations{}});
        if (found.empty() || found[0].empty()) {
            throw ScenarioError("the measurements can't be simulated as the catalogue is");
        }
        keep_what_is_read();
        const Point before{std::vector<double>(free_.size(), 0.0), errors_of(found[0])};
        Point point = before;
        look(point);
        while (out_.steps < steps_max && !free_.empty()) {
            ++out_.steps;
            const bool moved = step(point);
            look(point);
            if (!moved) break;
        }
        tell(before, point);
        return out_;
    }

  private:
    struct Point {
        std::vector<double> logs;    // of the numbers that are fitted
        std::vector<double> errors;  // by measurement, of its logarithm; empty: it can't be had
    };

    std::vector<double> errors_of(const std::vector<double>& figures) const {
        std::vector<double> out = logs_of(figures);
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (used_[i]) out[i] -= std::log(measured_[i].value);
        }
        return out;
    }

    double weight(double error, std::size_t row) const {
        if (!used_[row]) return 0;
        const double spread = measured_[row].spread;
        return std::min(1.0, huber * spread / std::max(1e-300, std::abs(error))) /
               (spread * spread);
    }

    double objective(const Point& point) const {
        if (point.errors.empty()) return no_bound;
        double sum = 0;
        for (std::size_t i = 0; i < point.errors.size(); ++i) {
            if (!used_[i]) continue;
            const double off = std::abs(point.errors[i]) / measured_[i].spread;
            sum += off <= huber ? off * off / 2 : huber * (off - huber / 2);
        }
        for (std::size_t i = 0; i < free_.size(); ++i) {
            const double off = point.logs[i] / free_[i].spread;
            sum += off * off / 2;
        }
        return sum;
    }

    // Numbers whose whole range moves no measurement by a thousandth of its spread stay as they are.
    void keep_what_is_read() {
        constexpr double negligible = 1e-3;
        const Rows slopes =
            slopes_at(numbers_, std::vector<double>(numbers_.size(), 0.0), figures_);
        for (std::size_t i = 0; i < numbers_.size(); ++i) {
            double most = 0;
            for (std::size_t row = 0; row < slopes.size(); ++row) {
                most = std::max(
                    most, std::abs(slopes[row][i]) * numbers_[i].spread / measured_[row].spread);
            }
            if (most < negligible) continue;
            free_.push_back(numbers_[i]);
            place_.push_back(i);
        }
    }

    void look(const Point& point) {
        const Rows slopes = slopes_at(free_, point.logs, figures_);
        slopes_.resize(static_cast<Index>(measured_.size()), static_cast<Index>(free_.size()));
        for (Index row = 0; row < slopes_.rows(); ++row) {
            for (Index i = 0; i < slopes_.cols(); ++i) {
                slopes_(row, i) =
                    slopes[static_cast<std::size_t>(row)][static_cast<std::size_t>(i)];
            }
        }
    }

    // Where the numbers would go if figures were linear; what would pass its bound goes to it, and the others
    // then heed that.
    VectorXd wanted(const Point& point) const {
        const auto n = static_cast<Index>(free_.size());
        VectorXd weights(slopes_.rows());
        VectorXd errors(slopes_.rows());
        for (Index row = 0; row < slopes_.rows(); ++row) {
            const auto at = static_cast<std::size_t>(row);
            errors(row) = point.errors[at];
            weights(row) = weight(point.errors[at], at);
        }
        MatrixXd curvature = slopes_.transpose() * weights.asDiagonal() * slopes_;
        VectorXd right = -(slopes_.transpose() * weights.cwiseProduct(errors));
        for (Index i = 0; i < n; ++i) {
            const FreeNumber& number = free_[static_cast<std::size_t>(i)];
            const double prior = 1 / (number.spread * number.spread);
            curvature(i, i) += prior;
            right(i) -= prior * point.logs[static_cast<std::size_t>(i)];
        }
        VectorXd move = curvature.llt().solve(right);
        for (Index passed = 0; passed < n; ++passed) {
            Index at = n;
            for (Index i = 0; i < n && at == n; ++i) {
                const auto number = static_cast<std::size_t>(i);
                if (point.logs[number] + move(i) > free_[number].most + 1e-12) at = i;
            }
            if (at == n) break;
            const auto number = static_cast<std::size_t>(at);
            const double to = free_[number].most - point.logs[number];
            right -= curvature.col(at) * to;
            curvature.col(at).setZero();
            curvature.row(at).setZero();
            curvature(at, at) = 1;
            right(at) = to;
            move = curvature.llt().solve(right);
        }
        return move;
    }

    // Goes as far along what is wanted as makes it better. False: there is no further to go.
    bool step(Point& point) {
        constexpr double enough = 3e-3;  // of a prior's spread
        const VectorXd move = wanted(point);
        double largest = 0;
        for (Index i = 0; i < move.size(); ++i) {
            largest =
                std::max(largest, std::abs(move(i)) / free_[static_cast<std::size_t>(i)].spread);
        }
        if (largest < enough) {
            out_.converged = true;
            return false;
        }
        std::vector<Point> tried;
        std::vector<Perturbations> variants;
        for (const double share : {1.0, 0.5, 0.25, 0.125, 0.03}) {
            Point& next = tried.emplace_back(point);
            for (Index i = 0; i < move.size(); ++i) {
                next.logs[static_cast<std::size_t>(i)] += share * move(i);
            }
            variants.push_back(scaled(free_, next.logs));
        }
        const Rows found = figures_(variants);
        const double before = objective(point);
        Point best = point;
        for (std::size_t i = 0; i < tried.size(); ++i) {
            tried[i].errors = errors_of(found[i]);
            if (objective(tried[i]) < objective(best)) best = tried[i];
        }
        const double gained = before - objective(best);
        point = best;
        // What is gained no more is the rounding of nanoseconds, or luck.
        constexpr double worth = 1e-4;
        if (gained > worth * (1 + before)) return true;
        out_.converged = true;
        return false;
    }

    void tell(const Point& before, const Point& point) {
        const auto n = static_cast<Index>(free_.size());
        MatrixXd curvature = MatrixXd::Zero(n, n);
        for (Index row = 0; row < slopes_.rows(); ++row) {
            const auto at = static_cast<std::size_t>(row);
            const VectorXd slope = slopes_.row(row).transpose();
            curvature += weight(point.errors[at], at) * slope * slope.transpose();
        }
        for (Index i = 0; i < n; ++i) {
            const double spread = free_[static_cast<std::size_t>(i)].spread;
            curvature(i, i) += 1 / (spread * spread);
        }
        const MatrixXd covariance = curvature.llt().solve(MatrixXd::Identity(n, n));
        tell_measurements(before, point, covariance);
        const std::size_t all = numbers_.size();
        out_.covariance.assign(all, std::vector<double>(all, 0.0));
        for (const FreeNumber& number : numbers_) {
            out_.covariance[out_.numbers.size()][out_.numbers.size()] =
                number.spread * number.spread;
            out_.numbers.push_back({number, 0, number.spread});
        }
        out_.slopes.assign(measured_.size(), std::vector<double>(all, 0.0));
        for (const Measured& each : measured_) out_.spreads.push_back(each.spread);
        for (Index i = 0; i < n; ++i) {
            const std::size_t at = place_[static_cast<std::size_t>(i)];
            FittedNumber& number = out_.numbers[at];
            number.log = point.logs[static_cast<std::size_t>(i)];
            number.spread = std::sqrt(covariance(i, i));
            number.read = true;
            for (Index j = 0; j < n; ++j) {
                const std::size_t other = place_[static_cast<std::size_t>(j)];
                out_.covariance[at][other] = covariance(i, j);
                const double together =
                    covariance(i, j) / std::sqrt(covariance(i, i) * covariance(j, j));
                if (i == j || std::abs(together) <= std::abs(number.correlation)) continue;
                number.partner = other;
                number.correlation = together;
            }
            for (Index row = 0; row < slopes_.rows(); ++row) {
                out_.slopes[static_cast<std::size_t>(row)][at] = slopes_(row, i);
            }
        }
    }

    void tell_measurements(const Point& before, const Point& point, const MatrixXd& covariance) {
        for (std::size_t row = 0; row < measured_.size(); ++row) {
            FittedMeasurement each;
            each.used = used_[row];
            each.before = before.errors[row];
            each.after = point.errors[row];
            const VectorXd slope = slopes_.row(static_cast<Index>(row)).transpose();
            const double known = slope.dot(covariance * slope);
            const double spread = measured_[row].spread;
            const double leverage = std::min(1 - 1e-9, known * weight(point.errors[row], row));
            each.left_out = each.after / (1 - leverage);
            each.deviation = each.left_out / std::sqrt(spread * spread + known / (1 - leverage));
            out_.measurements.push_back(each);
        }
    }

    const std::vector<FreeNumber>& numbers_;
    const std::vector<Measured>& measured_;
    const Figures& figures_;
    std::vector<bool> used_;
    std::vector<FreeNumber> free_;    // those that a measurement changes with
    std::vector<std::size_t> place_;  // of each in numbers_
    MatrixXd slopes_;                 // by measurement, then free number
    Calibrated out_;
};

}  // namespace

FreeNumber free_number(const Estimate& estimate) {
    FreeNumber out{estimate.path, 0, no_bound};
    const double low = std::min(estimate.low_factor, estimate.high_factor);
    const double high = std::max(estimate.low_factor, estimate.high_factor);
    // The range of what may as well be nothing has no lower end in logarithms: it is taken as wide as above.
    constexpr double least = 1e-3;
    if (high > 0) out.spread = std::log(high / std::max(low, least * high)) / (2 * ninety);
    // A plain number up to 1 is a fraction: there is no more than all of it.
    const double value = real_value(estimate.value).value_or(0);
    if (value > 0 && value <= 1) out.most = -std::log(value);
    return out;
}

Perturbations scaled(const std::vector<FreeNumber>& numbers, const std::vector<double>& logs) {
    Perturbations out;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (logs[i] == 0) continue;
        out.push_back({numbers[i].path, std::exp(logs[i])});
        out.push_back({"override." + numbers[i].path, std::exp(logs[i])});
    }
    return out;
}

Interval FittedNumber::factor90() const {
    return {std::exp(log - ninety * spread),
            std::exp(std::min(number.most, log + ninety * spread))};
}

double Calibrated::variance(const std::vector<double>& of) const {
    double sum = 0;
    for (std::size_t i = 0; i < of.size(); ++i) {
        for (std::size_t j = 0; j < of.size(); ++j) sum += of[i] * covariance[i][j] * of[j];
    }
    return sum;
}

double Calibrated::variance_with(std::size_t measurement, const std::vector<double>& of) const {
    const std::vector<double>& row = slopes[measurement];
    double together = 0;
    for (std::size_t i = 0; i < of.size(); ++i) {
        for (std::size_t j = 0; j < of.size(); ++j) together += of[i] * covariance[i][j] * row[j];
    }
    const double noise = spreads[measurement] * spreads[measurement];
    return variance(of) - together * together / (noise + variance(row));
}

Rows slopes_at(const std::vector<FreeNumber>& numbers, const std::vector<double>& logs,
               const Figures& figures) {
    std::vector<Perturbations> variants = {scaled(numbers, logs)};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        for (const double way : {-1.0, 1.0}) {
            std::vector<double> moved = logs;
            moved[i] += way * reach(numbers[i]);
            variants.push_back(scaled(numbers, moved));
        }
    }
    const Rows found = figures(variants);
    const std::vector<double> middle = logs_of(found.at(0));
    Rows out(middle.size(), std::vector<double>(numbers.size(), 0.0));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const bool bound = logs[i] + reach(numbers[i]) > numbers[i].most;
        const std::vector<double> high = bound ? Rows::value_type{} : logs_of(found[2 * i + 2]);
        const std::vector<double> each =
            slope(logs_of(found[2 * i + 1]), middle, high, reach(numbers[i]));
        for (std::size_t row = 0; row < each.size(); ++row) out[row][i] = each[row];
    }
    return out;
}

Calibrated calibrate(const std::vector<FreeNumber>& numbers, const std::vector<Measured>& measured,
                     const Figures& figures) {
    return Fit(numbers, measured, figures).run();
}

}  // namespace railyard
