// What PMIx clients may ask about their step before anybody has put anything.
#pragma once

#include <pmix_server.h>

#include <string>
#include <vector>

#include "wire/supervise.pb.h"

namespace berth::pmix {

/// Owns an array that the library reads.
class Infos {
 public:
  explicit Infos(std::size_t most) : most_(most) { PMIX_INFO_CREATE(array_, most); }
  ~Infos() { PMIX_INFO_FREE(array_, most_); }
  Infos(const Infos&) = delete;
  Infos& operator=(const Infos&) = delete;

  void add(const char* key, const std::string& text) {
    PMIX_INFO_LOAD(&next(), key, text.c_str(), PMIX_STRING);
  }
  void add(const char* key, std::uint32_t number) {
    PMIX_INFO_LOAD(&next(), key, &number, PMIX_UINT32);
  }
  void add_rank(const char* key, pmix_rank_t rank) {
    PMIX_INFO_LOAD(&next(), key, &rank, PMIX_PROC_RANK);
  }
  /// What PMIx_generate_regex and _ppn made.
  void add_regex(const char* key, char* text);

  [[nodiscard]] pmix_info_t* data() { return array_; }
  [[nodiscard]] std::size_t size() const { return used_; }

 private:
  pmix_info_t& next() { return array_[used_++]; }
  pmix_info_t* array_ = nullptr;
  std::size_t most_;
  std::size_t used_ = 0;
};

/// The node of each rank, by position.
std::vector<std::uint32_t> nodes_of_ranks(const wire::StepLayout& layout);
/// "0,1,2"
std::string rank_list(const wire::NodeRanks& node);

pmix_status_t register_step(const wire::ServePmix& step, pmix_op_cbfunc_t done, void* cookie,
                            Infos& infos);
/// How many entries register_step() adds at most.
inline constexpr std::size_t kStepEntries = 20;

}  // namespace berth::pmix
