#pragma once

#include <string>
#include <string_view>

#include <sqlite3.h>

namespace kiln::server {

/// One SQL statement with its values, positions from 0. A statement that could not be prepared does
/// nothing, and says so by its result.
class Statement {
 public:
  Statement(sqlite3* database, const char* sql) {
    result_ = sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::string_view text) {
    return note(sqlite3_bind_blob64(statement_, ++bound_, text.data() != nullptr ? text.data() : "",
                                    text.size(), SQLITE_TRANSIENT));
  }
  Statement& bind(double number) { return note(sqlite3_bind_double(statement_, ++bound_, number)); }
  Statement& bind(int64_t number) { return note(sqlite3_bind_int64(statement_, ++bound_, number)); }

  /// True while there is a row.
  bool step() {
    if (result_ == SQLITE_OK || result_ == SQLITE_ROW) result_ = sqlite3_step(statement_);
    return result_ == SQLITE_ROW;
  }
  /// SQLITE_DONE after the last row.
  int result() const { return result_; }

  std::string text(int column) const {
    const void* const bytes = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return bytes == nullptr
               ? ""
               : std::string(static_cast<const char*>(bytes), static_cast<size_t>(size));
  }
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double number(int column) const { return sqlite3_column_double(statement_, column); }

 private:
  Statement& note(int result) {
    if (result_ == SQLITE_OK) result_ = result;
    return *this;
  }

  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
  int result_ = SQLITE_OK;
};

}  // namespace kiln::server
