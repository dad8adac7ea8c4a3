// Decodes as much of an instruction as is counted. Each has 128 bits:
//
//   bits 0 to 8    which one; bits 9 to 11 say where its operands are
//   bits 34 to 81  of a branch: from its end to where it goes, in four bytes; from sm_90 on the
//                  eight bits below stand in bits 16 to 23
//   bits 73 to 75  of an access: 4, 5, 6 for 4, 8, 16 bytes, less for fewer
#include "compiler/codegen/main_loop.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "compiler/ir/gpu_arch.h"

namespace kiln::codegen {
namespace {

constexpr size_t kBytes = 16;  // of an instruction

enum class Class { MultiplyAdd, Matrix, Access, Spill, Barrier, Branch, Exit };

struct Opcode {
  uint32_t number;
  std::string_view name;
  Class of;
};

constexpr Opcode kOpcodes[] = {
    {0x023, "FFMA", Class::MultiplyAdd}, {0x02b, "DFMA", Class::MultiplyAdd},
    {0x03c, "HMMA", Class::Matrix},      {0x037, "IMMA", Class::Matrix},
    {0x03f, "DMMA", Class::Matrix},      {0x07a, "QMMA", Class::Matrix},
    {0x1f0, "HGMMA", Class::Matrix},     {0x1f1, "IGMMA", Class::Matrix},
    {0x1f3, "QGMMA", Class::Matrix},     {0x1ea, "UTCMMA", Class::Matrix},
    {0x181, "LDG", Class::Access},       {0x186, "STG", Class::Access},
    {0x184, "LDS", Class::Access},       {0x188, "STS", Class::Access},
    {0x03b, "LDSM", Class::Access},      {0x1ae, "LDGSTS", Class::Access},
    {0x183, "LDL", Class::Spill},        {0x187, "STL", Class::Spill},
    {0x11d, "BAR", Class::Barrier},      {0x147, "BRA", Class::Branch},
    {0x14d, "EXIT", Class::Exit},
};

class Instruction {
 public:
  explicit Instruction(const char* bytes) {
    std::memcpy(&low_, bytes, sizeof low_);
    std::memcpy(&high_, bytes + sizeof low_, sizeof high_);
  }

  /// Null for one that is only counted.
  const Opcode* opcode() const {
    const auto found = std::ranges::find(kOpcodes, low_ & 0x1ff, &Opcode::number);
    return found == std::end(kOpcodes) ? nullptr : found;
  }
  /// From its end, of a branch.
  int64_t jump(int capability) const {
    const uint64_t distance = high_ << 30 | low_ >> 34;
    if (capability < 90) return signed_of(distance, 48) * 4;
    return signed_of(distance << 8 | (low_ >> 16 & 0xff), 56) * 4;
  }
  int64_t bytes(std::string_view name, int capability) const {
    if (name == "LDSM") return 4 << (high_ >> 8 & 3);
    const uint64_t width = high_ >> (name == "LDGSTS" && capability >= 100 ? 10 : 9) & 7;
    return width < 2 ? 1 : width < 4 ? 2 : int64_t{1} << (width - 2);
  }

 private:
  static int64_t signed_of(uint64_t value, int bits) {
    return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
  }

  uint64_t low_ = 0;
  uint64_t high_ = 0;
};

bool is_exit(const Instruction& instruction) {
  const Opcode* opcode = instruction.opcode();
  return opcode != nullptr && opcode->of == Class::Exit;
}

/// Of the instructions from one to another.
MainLoop counted(const std::vector<Instruction>& all, size_t first, size_t end, int capability) {
  MainLoop loop;
  loop.instructions = static_cast<int64_t>(end - first);
  int64_t matrices = 0;
  for (size_t i = first; i < end; ++i) {
    const Opcode* opcode = all[i].opcode();
    if (opcode == nullptr) continue;
    switch (opcode->of) {
      case Class::Branch:
      case Class::Exit: break;
      case Class::MultiplyAdd:
        if (matrices > 0) break;
        ++loop.arithmetic;
        loop.kind = opcode->name;
        break;
      case Class::Matrix:
        loop.arithmetic = ++matrices;
        loop.kind = opcode->name;
        break;
      case Class::Spill: ++loop.spills; break;
      case Class::Barrier: ++loop.barriers; break;
      case Class::Access: {
        const int64_t bytes = all[i].bytes(opcode->name, capability);
        const auto found = std::ranges::find_if(loop.accesses, [&](const MainLoop::Access& each) {
          return each.kind == opcode->name && each.bytes == bytes;
        });
        if (found == loop.accesses.end()) {
          loop.accesses.push_back({opcode->name, bytes, 1});
        } else {
          ++found->count;
        }
      }
    }
  }
  return loop;
}

/// Where the branch goes back to; nothing for what is none, or one that goes on.
std::optional<size_t> start_of_loop(const std::vector<Instruction>& all, size_t branch,
                                    int capability) {
  const Opcode* opcode = all[branch].opcode();
  if (opcode == nullptr || opcode->of != Class::Branch) return std::nullopt;
  const int64_t to = static_cast<int64_t>(branch) + 1 +
                     all[branch].jump(capability) / static_cast<int64_t>(kBytes);
  // One that goes to itself ends the code.
  if (to < 0 || to >= static_cast<int64_t>(branch)) return std::nullopt;
  return static_cast<size_t>(to);
}

bool multiplies_matrices(const MainLoop& loop) {
  const auto* opcode = std::ranges::find(kOpcodes, loop.kind, &Opcode::name);
  return opcode != std::end(kOpcodes) && opcode->of == Class::Matrix;
}

/// A loop from its first instruction on.
struct Range {
  size_t start = 0;
  MainLoop loop;
};

}  // namespace

MainLoop main_loop_of(std::string_view code, std::string_view arch) {
  const int capability = ir::capability_of(arch);
  std::vector<Instruction> all;
  for (size_t at = 0; at + kBytes <= code.size(); at += kBytes)
    all.emplace_back(code.data() + at);
  // In the order of their ends, so that what is in a loop stands before it.
  std::vector<Range> loops;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::optional<size_t> start = start_of_loop(all, i, capability);
    if (!start) continue;
    // What comes back from behind the end of the code waits there.
    const bool is_behind = std::any_of(all.begin() + static_cast<ptrdiff_t>(*start),
                                       all.begin() + static_cast<ptrdiff_t>(i), is_exit);
    if (is_behind) continue;
    MainLoop loop = counted(all, *start, i + 1, capability);
    loop.is_loop = true;
    const bool is_around =
        std::ranges::any_of(loops, [&](const Range& other) { return other.start >= *start; });
    if (loop.arithmetic > 0 && !is_around) loops.push_back({*start, std::move(loop)});
  }
  if (loops.empty()) return counted(all, 0, all.size(), capability);
  return std::ranges::max_element(loops, {},
                                  [](const Range& range) {
                                    const MainLoop& loop = range.loop;
                                    return std::tuple(multiplies_matrices(loop), loop.arithmetic,
                                                      loop.share());
                                  })
      ->loop;
}

}  // namespace kiln::codegen
