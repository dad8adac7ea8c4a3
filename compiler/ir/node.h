#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

namespace kiln::ir {

/// One a node of nodes.def, in its order.
enum class NodeKind : uint8_t {
#define EXPR(T) T,
#define STMT(T) T,
#include "compiler/ir/nodes.def"
  Buffer,  // neither an expression nor a statement; see expr.h
};

/// Base of all IR nodes: immutable, counted, told apart by `kind`. A tree belongs to one thread at
/// a time, since its nodes are counted without locks: with them, passes take twice as long.
class Node {
 public:
  explicit Node(NodeKind node_kind) : kind(node_kind) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node() = default;

  const NodeKind kind;

 private:
  template <typename T>
  friend class Handle;
  mutable int32_t references_ = 0;
};

/// A counted pointer to an immutable node; compares by identity, may be null.
template <typename T>
class Handle {
 public:
  Handle() = default;
  Handle(const T* node) : node_(node) { retain(); }  // NOLINT: a node is its handle
  Handle(const Handle& other) : node_(other.node_) { retain(); }
  Handle(Handle&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  template <typename U>
  requires std::is_base_of_v<T, U> Handle(const Handle<U>& other) : node_(other.get()) {  // NOLINT
    retain();
  }
  Handle& operator=(Handle other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Handle() {
    if (node_ != nullptr && --node_->references_ == 0) delete node_;
  }

  const T* get() const { return node_; }
  const T* operator->() const { return node_; }
  const T& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }
  friend bool operator==(const Handle& a, const Handle& b) { return a.node_ == b.node_; }

 private:
  void retain() {
    if (node_ != nullptr) ++node_->references_;
  }
  const T* node_ = nullptr;
};

}  // namespace kiln::ir

template <typename T>
struct std::hash<kiln::ir::Handle<T>> {
  size_t operator()(const kiln::ir::Handle<T>& handle) const noexcept {
    return std::hash<const T*>()(handle.get());
  }
};
