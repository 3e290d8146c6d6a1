#pragma once
// Link-level retry: what the sending end of one direction of a cable keeps, and sends again.
//
// A frame with wrong bits is refused at the other end, and so is all that comes after it. A short message
// says so, and takes the way back's latency. When it is there and the frame under way is out, all that was
// refused goes out again, in order, before anything new. So one wrong frame costs its link
//
//     its transfer + latency there + latency back + what is left of the frame under way
//
// and no more is kept than a link carries in a round trip and two frames (the needed replay buffer). A frame
// that was sent again `replays` times in vain is given up, with all that waits behind it: then the
// transport's recovery has them.
//
// Left out: a message that is itself lost (a timer of some 5 us would find that), the bytes of these
// messages, and the acknowledgements that free the buffer.

#include <cstdint>
#include <utility>
#include <vector>

namespace railyard {

class Catalogue;

struct LinkRetrySpec {
    bool enabled = false;
    std::int64_t replays = 3;  // of one frame
};
LinkRetrySpec read_link_retry(Catalogue& catalogue);

class LinkRetry {
  public:
    static constexpr std::int64_t never = INT64_MAX;

    // The receiver waits for a frame that it has not got.
    bool refuses() const { return !refused_.empty(); }
    // This frame has wrong bits. Its sender hears of it at `told`; it had been sent again so often before.
    void refuse(std::uint32_t packet, std::int64_t bytes, std::int64_t told, std::int64_t tries) {
        told_ = told;
        tries_ = tries;
        bytes_ = 0;
        refuse_later(packet, bytes);
    }
    // This one comes after such a frame.
    void refuse_later(std::uint32_t packet, std::int64_t bytes) {
        refused_.push_back(packet);
        bytes_ += bytes;
        bytes_max_ = bytes_ > bytes_max_ ? bytes_ : bytes_max_;
    }
    // All that was refused, in order.
    std::vector<std::uint32_t> take() {
        told_ = never;
        return std::exchange(refused_, {});
    }

    std::int64_t told() const { return told_; }    // events of other instants are void
    std::int64_t tries() const { return tries_; }  // of the first that was refused
    std::int64_t bytes_max() const { return bytes_max_; }

  private:
    std::vector<std::uint32_t> refused_;
    std::int64_t bytes_ = 0;
    std::int64_t bytes_max_ = 0;
    std::int64_t told_ = never;
    std::int64_t tries_ = 0;
};

}  // namespace railyard
