// What one user may take of a daemon before anything costs: connections, requests a second,
// requests that are worked on, and bytes that have come but are not used yet. Pure: time comes in
// as an argument, connections are numbers. docs/limits.md has the table.
//
// Four kinds of guests: free ones (root, SlurmUser), for whom nothing but the deadlines counts;
// users, who are counted by uid whatever comes of their requests; machines with the certificate of
// a node, counted by certificate; and unknown ones, TCP peers that have not proved who they are.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace berth::net {

using Guest = std::uint64_t;
/// For whom connections, requests and bytes are counted: a user's uid, or a number beyond all uids
/// of a certificate.
using Account = std::uint64_t;
using QuotaTime = std::chrono::steady_clock::time_point;

struct QuotaLimits {
  std::size_t all_connections = 8192;  // of users, all together; the rest is for free guests
  std::size_t user_connections = 2048;
  std::size_t unknown_connections = 512;
  std::size_t node_connections = 128;  // of one certificate
  double user_requests_per_second = 500;
  double unknown_requests_per_second = 20;  // of one address
  double unknown_burst = 50;
  double user_burst = 1000;       // requests at once, when there were none for a while
  std::size_t user_working = 16;  // requests handed on whose answer was not taken yet
  std::size_t user_working_bytes = std::size_t{32} << 20;
  std::size_t user_held_bytes = std::size_t{24} << 20;  // come, and not handed on yet
  std::size_t all_held_bytes = std::size_t{96} << 20;
  std::chrono::seconds handshake{10};       // to prove who one is; for a node, to ask something
  std::chrono::seconds frame_patience{10};  // to finish a frame, and more for a large one:
  std::size_t frame_bytes_per_second = std::size_t{256} << 10;
  std::chrono::seconds answer_patience{60};  // to take an answer, and more for a large one

  /// The numbers of connections for a daemon that may have so many descriptors.
  static QuotaLimits of_descriptors(std::size_t descriptors);
};

class Quota {
 public:
  explicit Quota(QuotaLimits limits) : limits_(limits) {}

  struct Admission {
    bool admitted = true;
    std::string why;             // when it is not
    std::optional<Guest> evict;  // who has to go for it
    std::string why_evicted;
  };
  /// A connection of somebody who is known, or of a stranger who has been introduced.
  Admission enter(Guest guest, std::uint32_t uid, bool free);
  /// One that has shown the certificate of a node: counted with the others that show the same one,
  /// and apart from users.
  Admission enter_node(Guest guest, const std::string& certificate);
  /// `source`: the address it comes from. When there are too many, the oldest one of the address
  /// that has most of them goes.
  Admission enter_unknown(Guest guest, const std::string& source, QuotaTime now);
  void leave(Guest guest);
  /// It sent something whole: others of its user go before it.
  void heard(Guest guest);
  /// It matters although it is silent: counted, and never evicted.
  void keep(Guest guest);

  /// Takes a token; how long the request has to wait for it.
  std::chrono::nanoseconds wait_for_request(Guest guest, QuotaTime now);
  [[nodiscard]] bool may_work(Guest guest, std::size_t bytes) const;
  void begin_work(Guest guest, std::size_t bytes);
  void end_work(Guest guest);

  enum class Hold { go_on, wait, drop };
  /// It holds so many bytes that are not handed on. `wait`: nothing more is to be read from it
  /// until another one of its user has let go; the first of them always goes on.
  Hold hold(Guest guest, std::size_t bytes);

  /// Something has to be finished by then; none = nothing has.
  void set_deadline(Guest guest, std::optional<QuotaTime> at);
  [[nodiscard]] std::optional<QuotaTime> deadline(Guest guest) const;
  [[nodiscard]] std::chrono::nanoseconds frame_patience(std::size_t frame_bytes) const;
  [[nodiscard]] std::chrono::nanoseconds answer_patience(std::size_t bytes) const;
  /// Whose time is over; their deadlines are forgotten.
  std::vector<Guest> expired(QuotaTime now);
  [[nodiscard]] bool has_deadlines() const { return !deadlines_.empty(); }

  [[nodiscard]] std::size_t connections(Account account) const;
  /// Of a user or a node; 0 for others.
  [[nodiscard]] Account account(Guest guest) const;
  [[nodiscard]] std::size_t held() const { return held_; }
  [[nodiscard]] const QuotaLimits& limits() const { return limits_; }

 private:
  enum class Kind { unknown, user, node, free };
  struct Entry {
    Kind kind = Kind::unknown;
    Account account = 0;
    std::string source = {};  // of an unknown one
    bool in_order = false;    // in `silent` of its user, or in unknown_ of its source
    std::list<Guest>::iterator order = {};
    bool holding = false;  // in `holders` of its user
    std::list<Guest>::iterator holder = {};
    std::size_t held = 0;
    std::vector<std::size_t> work = {};  // bytes of each request that is worked on
    std::optional<QuotaTime> deadline = {};
  };
  struct Bucket {
    double tokens = 0;
    QuotaTime refilled;
    /// Takes one; how long that has to be waited for.
    std::chrono::nanoseconds take(double per_second, double burst, QuotaTime now);
  };
  struct User {
    std::size_t connections = 0;
    std::list<Guest> silent;   // longest silent first; without kept ones
    std::list<Guest> holders;  // in the order in which they began
    std::size_t held = 0;
    std::size_t working = 0;
    std::size_t working_bytes = 0;
    std::optional<Bucket> bucket;  // none: nothing was asked yet
    std::string certificate;       // of a node; "" = it is a user
  };
  static bool is_counted(const Entry& entry) {
    return entry.kind == Kind::user || entry.kind == Kind::node;
  }

  void count(Account account, User& user, std::ptrdiff_t change);
  std::chrono::nanoseconds wait_of_unknown(const std::string& source, QuotaTime now);
  void let_go(Entry& entry);
  void forget_unknown(const Entry& entry);

  QuotaLimits limits_;
  std::unordered_map<Guest, Entry> guests_;
  std::unordered_map<Account, User> users_;
  std::unordered_map<std::string, Account> nodes_;             // by certificate
  std::set<std::pair<std::size_t, Account>> by_connections_;   // users by their number
  std::unordered_map<std::string, std::list<Guest>> unknown_;  // of a source, oldest first
  std::set<std::pair<std::size_t, std::string>> by_unknown_;   // sources by their number
  std::unordered_map<std::string, Bucket> asked_;              // of unknown ones, by source
  std::size_t unknown_connections_ = 0;
  std::set<std::pair<QuotaTime, Guest>> deadlines_;
  Account last_node_ = Account{1} << 32;
  std::size_t connections_ = 0;  // of users
  std::size_t held_ = 0;         // by users
};

}  // namespace berth::net
