// Lines for the user on standard error: Slurm's with its prefix, ours as "berth: …".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/refusal.h"

namespace berth::command {

/// wire::from_line() of each.
std::vector<Message> messages_of(const google::protobuf::RepeatedPtrField<wire::Line>& lines);

/// "srun: error: text" and a newline, in one write.
void print_message(const Message& message, std::string_view command);
void print_messages(const std::vector<Message>& messages, std::string_view command);
/// Those that are not among `told`: client and controller read the same request.
void print_new_messages(const std::vector<Message>& messages, const std::vector<Message>& told,
                        std::string_view command);
/// "srun: text".
void print_info(std::string_view text, std::string_view command);
/// "berth: text".
void print_hint(std::string_view text);
/// All lines of the error, its hint, and gives its exit code. The lines of an answer (exit code 0)
/// go to standard output.
int print_error(const Error& error, std::string_view command);

}  // namespace berth::command
