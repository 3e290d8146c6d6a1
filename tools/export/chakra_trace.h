#pragma once
// One rank's execution trace as Chakra (schema 0.0.4) has it: nodes, each behind those that it waits for.

#include <string>
#include <vector>

#include "models/collective/collective.h"

namespace railyard {

class ChakraTrace {
  public:
    using Id = std::uint64_t;

    ChakraTrace();
    // Times are whole microseconds there; what is rounded off one node is added to the next.
    Id compute(const std::string& name, double seconds, const std::vector<Id>& after);
    // `bytes` is what each rank puts in.
    Id collective(const std::string& name, Collective collective, std::int64_t bytes,
                  std::int64_t group, const std::vector<Id>& after);
    struct Message {
        bool sent = false;  // else received
        std::int64_t from = 0;
        std::int64_t to = 0;
        std::int64_t tag = 0;
        std::int64_t bytes = 0;
    };
    Id message(const std::string& name, const Message& message, const std::vector<Id>& after);

    const std::string& bytes() const { return bytes_; }

  private:
    std::string bytes_;
    Id last_ = 0;
    double seconds_ = 0;
    std::int64_t micros_ = 0;
};

}  // namespace railyard
