// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/sweep/sweep_table.h"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "testbenches/bench/usage_error.h"

namespace rnic::program {

namespace {

const nlohmann::json* field_of(const sweep_row& r, const std::string& name) {
  for (const auto& [known, value] : r.fields)
    if (known == name) return &value;
  return nullptr;
}

/// RFC 4180.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

std::string plain(const nlohmann::json& v) { return v.is_string() ? v.get<std::string>() : v.dump(); }

struct close_database {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};
struct close_statement {
  void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};

std::string identifier(const std::string& name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

void put(sqlite3_stmt* s, int at, const nlohmann::json& v) {
  if (v.is_number_integer() || v.is_boolean())
    sqlite3_bind_int64(s, at, v.is_boolean() ? static_cast<sqlite3_int64>(v.get<bool>()) : v.get<sqlite3_int64>());
  else if (v.is_number())
    sqlite3_bind_double(s, at, v.get<double>());
  else
    sqlite3_bind_text(s, at, plain(v).c_str(), -1, SQLITE_TRANSIENT);
}

/// A value of an axis as a number where it is one.
nlohmann::json typed(const std::string& value) {
  const nlohmann::json v = nlohmann::json::parse(value, nullptr, false);
  return v.is_number() ? v : nlohmann::json(value);
}

}  // namespace

std::vector<std::string> sweep_table::fields() const {
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const sweep_row& r : rows)
    for (const auto& field : r.fields)
      if (known.insert(field.first).second) names.push_back(field.first);
  return names;
}

void write_csv(const std::string& file, const sweep_table& t) {
  std::ofstream out(file);
  const std::vector<std::string> fields = t.fields();
  out << "point,status,error";
  for (const std::string& a : t.axes) out << ',' << quoted(a);
  for (const std::string& f : fields) out << ',' << quoted(f);
  out << '\n';
  for (const sweep_row& r : t.rows) {
    out << r.point << ',' << r.status << ',' << quoted(r.error);
    for (const std::string& v : r.values) out << ',' << quoted(v);
    for (const std::string& f : fields) {
      const nlohmann::json* v = field_of(r, f);
      out << ',' << (v == nullptr ? "" : quoted(plain(*v)));
    }
    out << '\n';
  }
  if (!out.flush()) throw usage_error(file + ": writing failed");
}

nlohmann::json table_json(const sweep_table& t) {
  nlohmann::json all = nlohmann::json::array();
  for (const sweep_row& r : t.rows) {
    nlohmann::json row = {{"point", r.point}, {"status", r.status}};
    if (!r.error.empty()) row["error"] = r.error;
    for (std::size_t i = 0; i < t.axes.size(); ++i) row["axes"][t.axes[i]] = typed(r.values[i]);
    for (const auto& [name, value] : r.fields) row["results"][name] = value;
    all.push_back(std::move(row));
  }
  return all;
}

void write_sqlite(const std::string& file, const sweep_table& t) {
  std::filesystem::remove(file);
  sqlite3* opened = nullptr;
  const int status = sqlite3_open(file.c_str(), &opened);
  const std::unique_ptr<sqlite3, close_database> db(opened);
  const auto check = [&](bool ok) {
    if (!ok) throw usage_error(file + ": " + sqlite3_errmsg(db.get()));
  };
  check(status == SQLITE_OK);
  const std::vector<std::string> fields = t.fields();
  std::string columns = "point INTEGER PRIMARY KEY, status TEXT, error TEXT", places = "?, ?, ?";
  for (const std::string& a : t.axes) {
    columns += ", " + identifier("axis " + a);
    places += ", ?";
  }
  for (const std::string& f : fields) {
    columns += ", " + identifier(f);
    places += ", ?";
  }
  const auto run = [&](const std::string& sql) {
    check(sqlite3_exec(db.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  };
  run("CREATE TABLE points (" + columns + ")");
  run("BEGIN");
  sqlite3_stmt* made = nullptr;
  check(sqlite3_prepare_v2(db.get(), ("INSERT INTO points VALUES (" + places + ")").c_str(), -1, &made, nullptr) ==
        SQLITE_OK);
  {
    const std::unique_ptr<sqlite3_stmt, close_statement> insert(made);
    for (const sweep_row& r : t.rows) {
      int at = 0;
      sqlite3_bind_int64(made, ++at, r.point);
      put(made, ++at, r.status);
      put(made, ++at, r.error);
      for (const std::string& v : r.values) put(made, ++at, typed(v));
      for (const std::string& f : fields) {
        const nlohmann::json* v = field_of(r, f);
        if (v != nullptr)
          put(made, ++at, *v);
        else
          sqlite3_bind_null(made, ++at);
      }
      check(sqlite3_step(made) == SQLITE_DONE);
      sqlite3_reset(made);
    }
  }
  run("COMMIT");
}

}  // namespace rnic::program
