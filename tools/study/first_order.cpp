#include "tools/study/first_order.h"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/check.h"

namespace railyard {

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t degree_max = 10;
constexpr std::size_t resamples = 200;
constexpr double exact = 1e-16;  // of the variance: what is left is rounding

// A column of ones, then for each input Legendre's polynomials of degrees 1 to `degree`, orthonormal on [0,
// 1].
MatrixXd basis(const std::vector<std::vector<double>>& points, std::size_t degree) {
    const std::size_t inputs = points[0].size();
    MatrixXd x(static_cast<Eigen::Index>(points.size()),
               static_cast<Eigen::Index>(1 + inputs * degree));
    for (std::size_t row = 0; row < points.size(); ++row) {
        Eigen::Index column = 0;
        const auto r = static_cast<Eigen::Index>(row);
        x(r, column++) = 1;
        for (std::size_t i = 0; i < inputs; ++i) {
            const double z = 2 * points[row][i] - 1;
            double before = 1;
            double now = z;
            for (std::size_t d = 1; d <= degree; ++d) {
                const auto n = real(d);
                x(r, column++) = std::sqrt(2 * n + 1) * now;
                before = std::exchange(now, ((2 * n + 1) * z * now - n * before) / (n + 1));
            }
        }
    }
    return x;
}

struct Fit {
    std::vector<double> partial_variance;  // by input
    double residual = 0;                   // sum of squares
    double noise = 0;                      // variance that the fit leaves
    double left_out = 0;                   // of points that the fit has not seen
};

// Fits y to x, whose columns are those of basis(). False when x has fewer independent rows than columns.
bool fit(const MatrixXd& x, const VectorXd& y, std::size_t degree, Fit& out) {
    const Eigen::ColPivHouseholderQR<MatrixXd> qr(x);
    if (qr.rank() < x.cols() || x.rows() <= x.cols()) return false;
    const VectorXd coefficients = qr.solve(y);
    const VectorXd residual = y - x * coefficients;
    // root root' is the inverse of x' x.
    const MatrixXd triangle = qr.matrixR().topRows(x.cols());
    const MatrixXd root = qr.colsPermutation() * triangle.triangularView<Eigen::Upper>().solve(
                                                     MatrixXd::Identity(x.cols(), x.cols()));
    out.residual = residual.squaredNorm();
    out.noise = out.residual / real(x.rows() - x.cols());
    out.left_out = 0;
    for (Eigen::Index row = 0; row < x.rows(); ++row) {
        const double leverage = (x.row(row) * root).squaredNorm();
        const double off = residual(row) / std::max(1e-9, 1 - leverage);
        out.left_out += off * off;
    }
    const auto d = static_cast<Eigen::Index>(degree);
    out.partial_variance.clear();
    for (Eigen::Index first = 1; first < x.cols(); first += d) {
        const double squares = coefficients.segment(first, d).squaredNorm();
        const double from_noise = out.noise * root.middleRows(first, d).squaredNorm();
        out.partial_variance.push_back(std::max(0.0, squares - from_noise));
    }
    return true;
}

double squares_about_mean(const VectorXd& y) {
    return (y.array() - y.mean()).square().sum();
}

// Parts of the variance that independent inputs have: what the points' own correlation adds is not in it.
std::vector<double> indices(const Fit& fit) {
    double variance = fit.noise;
    for (const double part : fit.partial_variance) variance += part;
    std::vector<double> out;
    for (const double part : fit.partial_variance) {
        out.push_back(variance > 0 ? part / variance : 0);
    }
    return out;
}

// For each input, sorted indices of points drawn again with replacement.
std::vector<std::vector<double>> resampled_indices(const MatrixXd& x, const VectorXd& y,
                                                   std::size_t degree, RandomStream& random) {
    const auto inputs = static_cast<std::size_t>(x.cols() - 1) / degree;
    std::vector<std::vector<double>> out(inputs);
    MatrixXd xs(x.rows(), x.cols());
    VectorXd ys(y.size());
    for (std::size_t sample = 0; sample < resamples; ++sample) {
        for (Eigen::Index row = 0; row < x.rows(); ++row) {
            const auto from =
                static_cast<Eigen::Index>(random.below(static_cast<std::uint64_t>(x.rows())));
            xs.row(row) = x.row(from);
            ys(row) = y(from);
        }
        Fit of_sample;
        if (!fit(xs, ys, degree, of_sample)) continue;
        const std::vector<double> index = indices(of_sample);
        for (std::size_t i = 0; i < inputs; ++i) out[i].push_back(index[i]);
    }
    for (std::vector<double>& values : out) std::ranges::sort(values);
    return out;
}

Interval middle_95(const std::vector<double>& sorted) {
    if (sorted.empty()) return {0, 1};
    const auto at = [&](double share) {
        return sorted[static_cast<std::size_t>(share * real(sorted.size() - 1))];
    };
    return {at(0.025), at(0.975)};
}

}  // namespace

FirstOrderFit first_order_indices(const std::vector<std::vector<double>>& points,
                                  const std::vector<double>& results, RandomStream& bootstrap) {
    RY_CHECK(points.size() == results.size() && !points.empty());
    const std::size_t inputs = points[0].size();
    RY_CHECK(points.size() > inputs + 1);
    const VectorXd y =
        Eigen::Map<const VectorXd>(results.data(), static_cast<Eigen::Index>(results.size()));
    FirstOrderFit out;
    out.mean = y.mean();
    const double total = squares_about_mean(y);
    out.deviation = std::sqrt(total / real(y.size() - 1));
    out.inputs.resize(inputs);
    const auto [low, high] = std::minmax_element(results.begin(), results.end());
    if (*low == *high) return out;

    Fit best;
    const std::size_t terms_max = std::max<std::size_t>(inputs, points.size() / 2);
    for (std::size_t degree = 1; degree <= degree_max && degree * inputs <= terms_max; ++degree) {
        Fit tried;
        if (!fit(basis(points, degree), y, degree, tried)) break;
        if (out.degree > 0 && tried.left_out >= best.left_out) continue;
        best = tried;
        out.degree = degree;
        if (best.left_out <= exact * total) break;
    }
    if (out.degree == 0) return out;
    out.r2 = 1 - best.residual / total;
    out.q2 = 1 - best.left_out / total;
    const std::vector<double> index = indices(best);
    const auto spread = resampled_indices(basis(points, out.degree), y, out.degree, bootstrap);
    for (std::size_t i = 0; i < inputs; ++i) out.inputs[i] = {index[i], middle_95(spread[i])};
    return out;
}

}  // namespace railyard
