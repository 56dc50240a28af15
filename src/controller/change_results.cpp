// What change_results.h promises.
#include "controller/change_results.h"

namespace berth::controller {

bool is_fault(const Error& error, job::JobFault fault) {
  return error.what() == job::fault_text(fault);
}

std::string_view code_of(const Error& error) {
  return code_name(is_fault(error, job::JobFault::not_yours) ? Code::access_denied : error.code);
}

void add_failure(wire::Results& results, std::string name, const Error& error) {
  wire::JobResult& result = *results.add_jobs();
  result.set_name(std::move(name));
  result.set_code(std::string(code_of(error)));
  result.set_text(std::string(error.what()));
  result.set_hint(error.hint);
}

void add_done(wire::Results& results) {
  results.set_done(results.done() + 1);
}

}  // namespace berth::controller
