// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/script/script.h"

#include <fmt/format.h>

#include <string>

#include "testbenches/serve/script/commands.h"

namespace rnic::serve::script {

using nlohmann::json;

namespace {

const command_table& commands() {
  static const command_table table = [] {
    command_table t;
    add_memory_commands(t);
    add_queue_commands(t);
    add_queue_pair_commands(t);
    add_posting_commands(t);
    add_host_commands(t);
    add_manager_commands(t);
    return t;
  }();
  return table;
}

/// The name of a C library's error number, or the number.
std::string errno_name(int code) {
  const char* name = ::strerrorname_np(code);
  return name != nullptr ? name : std::to_string(code);
}

json refusal(const std::string& why) { return {{"ok", false}, {"error", why}}; }

/// Does what one command says. Gives its answer; `id` becomes that of the command as soon as it is known.
json obey(session& s, const std::string& line, json& id) {
  const json said = json::parse(line);
  fields f(said);
  if (f.has("id")) {
    const json& given = said["id"];
    if (!given.is_string() && !given.is_number()) f.wrong("id", "expected a number or a text");
    id = given;
    if (given.is_string())
      f.text("id", longest_name);
    else
      f.ignore("id");
  }
  const std::string name = f.text("do", longest_name);
  const auto found = commands().find(name);
  if (found == commands().end()) f.wrong("do", "there is no command called " + name);
  json answer = found->second(s, f);
  answer["ok"] = true;
  return answer;
}

json answer_to(session& s, const std::string& line) {
  json id, answer;
  try {
    answer = obey(s, line, id);
  } catch (const json::parse_error& e) {
    answer = refusal(fmt::format("not a JSON object: byte {}", e.byte));
  } catch (const json::out_of_range&) {
    answer = refusal("not a JSON object: a number is too large");
  } catch (const command_error& e) {
    answer = refusal(e.what());
    if (e.code() != 0) answer["errno"] = errno_name(e.code());
  } catch (const peer_failure& e) {
    answer = refusal(e.what());
  }
  if (!id.is_null()) answer["id"] = id;
  return answer;
}

}  // namespace

application_result run_script(served_host& host, cm_service& service, line_channel& channel, int gid_index) {
  application_result r;
  if (!channel.accept()) {
    r.error = "there are no more clients";
    return r;
  }
  const std::uint64_t start = service.now_ps();
  session s(host, service, gid_index);
  s.gone = [&] { return channel.gone(); };
  ibv_async_event old{};
  while (host.device().get_async_event(&old, 1)) {  // of a client before
  }
  using arrival = line_channel::arrival;
  std::string line;
  for (arrival what = channel.next(line); what != arrival::end; what = channel.next(line)) {
    if (what == arrival::line && line.find_first_not_of(" \t") == std::string::npos) continue;
    json answer = what == arrival::line ? answer_to(s, line)
                  : what == arrival::too_long
                      ? refusal(fmt::format("a line is longer than {} bytes", std::size_t{line_channel::longest_line}))
                      : refusal("the last line has no end");
    ++r.commands;
    if (!answer["ok"].get<bool>()) ++r.refused;
    if (!channel.send(answer.dump(-1, ' ', true, json::error_handler_t::replace))) break;
  }
  channel.hang_up();
  const std::size_t left = s.clear();
  r.took_ps = service.now_ps() - start;
  r.sent = s.sent;
  r.received = s.received;
  r.ok = left == 0;
  if (!r.ok) r.error = fmt::format("{} objects of the client could not be destroyed", left);
  return r;
}

}  // namespace rnic::serve::script
