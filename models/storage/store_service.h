#pragma once
// Stores in use on the campaign clock: who moves what, at which rate, until when.
//
// A transfer is a fluid: between two changes its rate stands. Clients (jobs) share a store max-min fairly, by
// their weights; what a transfer gets is bounded by its own cap (its files, its serialisation, its path), by
// what its client's nodes carry in that direction, by the store's reads or writes, and, where both happen at
// once, by the servers' time: reads / most reads + writes / most writes <= 1. A store may have a buffer that
// takes writes faster than its drives do, until it is full. Files are made or opened beside
// the bytes, at the rate that the store's metadata allows; a transfer is over when both are. A stream has no
// end: it asks for a rate, as a data loader does, and is told what it gets.
//
// Amounts are integers (bits x ns), so that a transfer whose rate never changes ends exactly when bytes /
// rate says. Ignores: queues inside the servers, caches, and that fairness is only rough in life.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "models/failure/failure.h"
#include "models/storage/byte_shares.h"
#include "models/storage/walls.h"

namespace railyard {

enum class Direction : std::uint8_t { read, write };

// What a store gives at present.
struct StoreSupply {
    Bandwidth read;
    Bandwidth write;
    double creates_per_s = 0;  // 0: never the limit
    double opens_per_s = 0;
    // What is written faster than it drains fills a buffer; once that is full, writes come in as it drains.
    Bytes write_buffer{};  // 0: there is none
    Bandwidth drain{};
};

struct TransferSpec {
    std::size_t store = 0;
    Direction direction = Direction::write;
    Bytes bytes;
    std::int64_t files = 0;         // to be created, or opened
    double files_per_s = 0;         // what its clients' own latency allows; 0: never the limit
    std::int64_t weight = 1;        // its share against others: clients, say
    Bandwidth cap;                  // of its own
    Wall cap_wall = Wall::network;  // what that is
};

// What a store moves from this instant on, all transfers and streams together.
struct StoreRates {
    Instant at;
    std::size_t store = 0;
    Bandwidth read;
    Bandwidth write;
};

class StoreService : public CampaignEngine::Component {
  public:
    using TransferId = std::uint32_t;
    static constexpr TransferId no_transfer = UINT32_MAX;

    class Client {  // who hears of a transfer
      public:
        virtual ~Client() = default;
        // Both come as events of their own, never from within a call; the second to who opens streams.
        // It has ended; its walls say what it waited for. The id may be given to another afterwards.
        virtual void transfer_done(TransferId transfer, const WallTimes& walls) = 0;
        virtual void supply_changed(TransferId /*stream*/, Bandwidth /*rate*/) {}
    };

    explicit StoreService(CampaignEngine& engine);

    std::size_t add_store(std::string name, const StoreSupply& supply);
    // `read` and `write`: what its nodes carry, together.
    std::size_t add_client(Bandwidth read, Bandwidth write);
    // The part of that bandwidth which its nodes' software moves to and from one store.
    void limit_path(std::size_t client, std::size_t store, Bandwidth read, Bandwidth write);
    // What a broken network leaves of it, from now on: transfers under way go on at that. They wait for
    // Wall::network then; with 0 in their direction they stand still, their files too.
    void limit_way(std::size_t client, std::size_t store, Bandwidth read, Bandwidth write);

    // `told` hears of it, and must outlive it.
    TransferId start(std::size_t client, const TransferSpec& spec, Client& told);
    // A stream asks for spec.cap for as long as it is open. Its client is told what it gets, at once and
    // whenever that changes.
    TransferId open_stream(std::size_t client, const TransferSpec& spec, Client& told);
    // Changes what a transfer may take at most, or what a stream asks for.
    void change_cap(TransferId transfer, Bandwidth cap, Wall wall);
    struct Progress {
        Bytes moved;  // rounded down
        WallTimes walls;
    };
    Progress cancel(TransferId transfer);  // transfers and streams
    Progress progress(TransferId transfer);

    // What a transfer that starts now comes to if nothing else happens: when it has the stores to itself.
    struct Undisturbed {
        std::array<Duration, 2> events{};  // after its start; one when bytes and files end at once
        std::size_t count = 0;
        WallTimes walls;

        Duration lasts() const { return events[count - 1]; }
    };
    std::optional<Undisturbed> foresee(std::size_t client, const TransferSpec& spec) const;
    // It has come to that, from start to end; its events have passed, and its client is not told.
    void pass(std::size_t client, const TransferSpec& spec, const Undisturbed& foreseen);

    void change_supply(std::size_t store, const StoreSupply& supply);
    // Nobody serves until told otherwise.
    void set_outage(std::size_t store, bool outage);
    // The client's own network stands still, or moves again. The time between is none of its transfers'.
    void set_held(std::size_t client, bool held);

    // Keeps every change of what the stores move from now on.
    void log_rates(std::vector<StoreRates>& log) { log_ = &log; }

    std::size_t stores() const { return stores_.size(); }
    // What the client's transfers have written to the store so far; cancelled ones count what they moved.
    Bytes written(std::size_t client, std::size_t store);

    void handle(std::uint32_t kind) override;

  private:
    using Amount = __int128;  // bits x ns, or millionths of a file x ns
    struct Flow {             // of bytes, or of files
        Amount left = 0;
        std::int64_t rate = 0;  // bits/s, or millionths of a file per second
        std::int64_t cap = 0;
        Wall wall = Wall::store;
    };
    struct Transfer {
        std::size_t client = 0;
        Client* told = nullptr;
        TransferSpec spec;
        Flow bytes;
        Flow files;
        WallTimes walls;
        bool active = false;
        bool stream = false;
        std::int64_t told_rate = 0;  // of a stream
    };
    struct Store {
        std::string name;
        StoreSupply supply;
        bool outage = false;
        Amount buffered = 0;
        std::int64_t filling = 0;  // bits/s, negative as it drains
        bool full = false;

        std::int64_t write() const;  // bits/s that it takes at present
    };
    struct ClientPath {                                   // to a store, by direction
        std::array<std::optional<Bandwidth>, 2> sound{};  // none: as its network
        // What a broken network leaves.
        std::array<Bandwidth, 2> way{Bandwidth::bits_per_second(INT64_MAX),
                                     Bandwidth::bits_per_second(INT64_MAX)};
    };
    struct ClientState {
        std::array<Bandwidth, 2> network;
        std::vector<ClientPath> paths{};  // by store
        bool held = false;
        std::vector<Bytes> written{};  // by store, by transfers that are no more

        ClientPath& path_to(std::size_t store) {
            if (paths.size() <= store) paths.resize(store + 1);
            return paths[store];
        }
        bool cut_off(const TransferSpec& transfer) const;  // no way is left to the store
    };

    enum Kind : std::uint32_t { settle, finish };

    static Transfer transfer_of(std::size_t client, const TransferSpec& spec);
    void move(Transfer& transfer, Duration elapsed) const;
    Duration until_change(const Transfer& transfer) const;  // at its rates
    void count_written(std::size_t client, std::size_t store, Bytes moved);
    TransferId add(std::size_t client, const TransferSpec& spec, Client& told, bool stream);
    void remove(TransferId transfer);
    bool served(const Transfer& transfer) const;
    bool over(const Transfer& transfer) const;
    void changed();  // something has: look again before the clock moves on
    void advance();  // to the present
    void serve_alone(Transfer& transfer) const;
    struct PathRate {
        std::int64_t rate = 0;  // bits/s
        Wall wall = Wall::client;
    };
    PathRate path_rate(const Transfer& transfer) const;  // of its client alone
    std::size_t client_limit(std::size_t client, std::size_t direction) const;
    ByteShares shares_now() const;  // without transfers
    void share_bytes();
    void fill_buffers();
    void share_files();
    void retire();
    void tell_streams();
    void schedule_next();
    void log_changed_rates();

    CampaignEngine& engine_;
    CampaignEngine::ComponentId id_;
    std::vector<Store> stores_;
    std::vector<ClientState> clients_;
    std::vector<Transfer> transfers_;
    std::vector<TransferId> active_;  // ascending
    std::int64_t streams_ = 0;        // of these
    Instant advanced_to_{};
    EventId next_;
    bool settling_ = false;           // will look again at this instant
    std::vector<TransferId> before_;  // scratch
    std::vector<StoreRates>* log_ = nullptr;
    std::vector<StoreRates> logged_;  // the last of each store
};

}  // namespace railyard
