#pragma once
// Numbers of the models fitted to measurements: maximum a posteriori, the ranges that the numbers come with
// as prior. README.md, "What calibrate does", has the formulas.

#include <functional>
#include <string>
#include <vector>

#include "sim/config.h"
#include "sim/statistics.h"

namespace railyard {

inline constexpr double ninety = 1.6448536269514722;  // standard deviations, either way, of 90 %

// A number that may be another, and how far from where it is, all as logarithms of its factor.
struct FreeNumber {
    std::string path;   // as the catalogue has it
    double spread = 0;  // the prior's standard deviation
    double most = 0;    // no more than that: a fraction is at most 1
};

// The prior of an estimate: its range holds it nine times in ten, in logarithms, about the value that it has.
FreeNumber free_number(const Estimate& estimate);

// What scales these numbers, however a scenario has them: from the catalogue, or by an override.
Perturbations scaled(const std::vector<FreeNumber>& numbers, const std::vector<double>& logs);

struct Measured {
    double value = 0;   // 0: it could be measured, and was not
    double spread = 0;  // the standard deviation of its logarithm, the model's error included
};

// The figures of all measurements with numbers scaled so; empty where one of them can't be had.
using Figures = std::function<std::vector<std::vector<double>>(const std::vector<Perturbations>&)>;

struct FittedNumber {
    FreeNumber number;
    double log = 0;           // of the factor that it is found to have
    double spread = 0;        // and how far off that may be, one standard deviation
    std::size_t partner = 0;  // the number that it can be told from least, and how they go together
    double correlation = 0;
    bool read = false;  // any measurement changes with it

    // Less than a tenth of the doubt about it is gone.
    bool untold() const { return spread > 0.9 * number.spread; }
    Interval factor90() const;
};

// Logarithms of simulated over measured; of what was not measured, of what is simulated.
struct FittedMeasurement {
    double before = 0;
    double after = 0;
    double left_out = 0;   // with the measurement itself left out of the fit
    double deviation = 0;  // that, in standard deviations of what was to be expected
    bool used = false;

    bool outlier() const { return used && std::abs(deviation) > 3; }
};

struct Calibrated {
    std::vector<FittedNumber> numbers;
    std::vector<FittedMeasurement> measurements;
    std::size_t steps = 0;
    bool converged = false;

    // How much of the variance of an answer that changes so with the numbers' logarithms is left.
    double variance(const std::vector<double>& slopes) const;
    // What becomes of it with one more measurement, the i-th.
    double variance_with(std::size_t measurement, const std::vector<double>& slopes) const;

    std::vector<std::vector<double>> covariance;  // of the numbers
    std::vector<std::vector<double>> slopes;      // by measurement, then number
    std::vector<double> spreads;                  // of the measurements
};

// Damped Gauss-Newton; what is further off than two standard deviations counts less (Huber). Throws
// ScenarioError when the figures can't be had as the numbers are.
Calibrated calibrate(const std::vector<FreeNumber>& numbers, const std::vector<Measured>& measured,
                     const Figures& figures);

// The slopes of the logarithms of figures over those of the numbers, at these; by figure, then number.
std::vector<std::vector<double>> slopes_at(const std::vector<FreeNumber>& numbers,
                                           const std::vector<double>& logs, const Figures& figures);

}  // namespace railyard
