#pragma once

#include <string>
#include <string_view>

#include "server/engine/engine.h"

namespace kiln::server {

/// A tensor on its way here: made by a header, then filled in order or given memory, and complete
/// once all is here. What throws is InvalidArgument UPLOAD_SHAPE or UPLOAD_BYTES, or of the engine.
class TensorArrival {
 public:
  enum class Memory {
    Usual,
    Given,  // by adopt()
    Fixed,  // of its own, which nobody writes any more once all is here
  };
  TensorArrival(Engine& engine, const v1::TensorHeader& header, const Caller& caller,
                Memory memory = Memory::Usual);

  int64_t bytes() const { return tensor_.bytes; }
  int64_t filled() const { return filled_; }
  const std::shared_ptr<Slice>& slice() const { return tensor_.slice; }
  /// Its session from now on, which is the tenant's.
  void belong_to(const std::string& session);
  /// Where the next so many bytes are to be written.
  uint8_t* take(int64_t bytes);
  void append(std::string_view data);
  /// All of the contents; `is_shared`: another tensor has them there already.
  void adopt(std::shared_ptr<Slice> slice, bool is_shared = false);
  /// The id. An upload that overwrites a tensor keeps its own; another has that of its session and
  /// `number`, if not 0, or one that nobody can guess.
  std::string complete(uint64_t number = 0);

 private:
  Engine& engine_;
  const std::string tenant_;
  std::string session_;
  const bool is_empty_;  // no contents follow
  const Memory memory_;
  Tensor tensor_;
  bool is_renewed_ = false;  // overwrites a tensor, but in other memory
  bool is_shared_ = false;
  int64_t filled_ = 0;
};

/// What a download says first.
void write_header(const Tensor& tensor, v1::TensorHeader& header);

}  // namespace kiln::server
