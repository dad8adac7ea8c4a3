#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <llvm/ADT/ScopedHashTable.h>
#include <llvm/IR/Value.h>

#include "compiler/ir/stmt.h"

namespace kiln::codegen {

/// What a function has computed or loaded already, by what it is made of. Loops that are written
/// out repeat most of it; LLVM would only see that after all of it has been made.
class KnownValues {
 private:
  using Key = std::tuple<unsigned, const void*, const void*, int64_t>;
  using Table = llvm::ScopedHashTable<Key, llvm::Value*>;
  using Place = std::pair<llvm::Value*, llvm::Type*>;

 public:
  enum class Kind : unsigned { Add, Sub, Mul, Element, Splat };

  /// A part of the code that may be passed by: what it computes is not known after it.
  class Region {
   public:
    explicit Region(KnownValues& known) : known_(known), scope_(known.computed_) {
      known_.loaded_.clear();
    }
    ~Region() { known_.loaded_.clear(); }
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;

   private:
    KnownValues& known_;
    Table::ScopeTy scope_;
  };

  /// What `make` returns, or what it returned for the same description. Nothing that is read from
  /// memory.
  template <typename Make>
  llvm::Value* once(Kind kind, const llvm::Value* a, const llvm::Value* b, int64_t number,
                    Make&& make) {
    const Key key{static_cast<unsigned>(kind), a, b, number};
    if (llvm::Value* const known = computed_.lookup(key)) return known;
    llvm::Value* const made = make();
    computed_.insert(key, made);
    return made;
  }

  /// The element or vector at an address of the buffer, loaded by `make` unless nothing was stored
  /// to the buffer since it was loaded last.
  template <typename Make>
  llvm::Value* loaded(const ir::BufferRef& buffer, llvm::Value* address, llvm::Type* type,
                      Make&& make) {
    if (const auto found = loaded_.find(buffer); found != loaded_.end()) {
      if (const auto known = found->second.find({address, type}); known != found->second.end())
        return known->second;
    }
    llvm::Value* const made = make();
    loaded_[buffer][{address, type}] = made;
    return made;
  }
  void forget_loads(const ir::BufferRef& buffer) { loaded_.erase(buffer); }
  void forget_loads() { loaded_.clear(); }

 private:
  Table computed_;
  Table::ScopeTy function_{computed_};
  std::unordered_map<ir::BufferRef, std::map<Place, llvm::Value*>> loaded_;
};

}  // namespace kiln::codegen
