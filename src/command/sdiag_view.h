// sdiag: the command line, and the controller's figures as text or JSON. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "command/json_text.h"
#include "wire/info.pb.h"

namespace berth::command {

struct SdiagOptions {
  enum class Order { count, id, average, total };
  bool help = false;
  bool usage = false;
  bool version = false;
  bool json = false;
  bool reset = false;
  Order order = Order::count;  // of the requests
};
Result<SdiagOptions> parse_sdiag(std::span<const std::string> words);

std::string sdiag_text(const SdiagOptions& options, const wire::DiagnoseReply& reply);
std::string sdiag_json(const wire::DiagnoseReply& reply, const JsonMeta& meta);
std::string_view sdiag_help();

}  // namespace berth::command
