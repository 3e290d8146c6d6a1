#pragma once
// What a point is known by: the scenario after its settings, its seed and the program's version.

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "sim/config.h"

namespace railyard {

struct PointKey {
    std::string text;        // 32 hexadecimal digits
    std::uint64_t seed = 1;  // run.seed
};

// Two points have one key when their replicas are the same: keys in any order, any title, any run.replicas,
// but not a quantity in another unit. Files that the scenario names count with what is in them; each is read
// once.
class PointKeys {
  public:
    explicit PointKeys(std::string version) : version_(std::move(version)) {}
    PointKey of(const Document& scenario);

  private:
    std::string digest_of_file(const std::string& path);

    std::string version_;
    std::map<std::string, std::string> digests_;  // by path
};

// A scenario's text with settings "a.b=c" applied. Throws ScenarioError.
Document document_with(std::string_view toml, const std::string& file,
                       const std::vector<std::string>& settings);

// 32 hexadecimal digits of a text.
std::string digest_of(std::string_view text);

}  // namespace railyard
