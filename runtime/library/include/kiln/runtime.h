#pragma once

/// Runs compiled kernels from files (`kiln compile FILE.kiln -o NAME.kart`) in this process,
/// without a daemon and without a compiler. C functions, and below them C++ over these functions
/// alone, so that the library serves any compiler and any standard library.
///
///   kiln::runtime::Artifact matmul("matmul.kart");
///   matmul({{a, {n, l}}, {b, {l, m}}, {c, {n, m}}});
///
/// A file holds machine code: load only those that you trust as you trust a program.

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A compiled kernel that is ready to run. Any number of threads may call it.
typedef struct KilnArtifact KilnArtifact;

/// An argument: elements in memory of this process, aligned to their own size.
typedef struct {
  void* data;              ///< may be null where there are no elements
  const int64_t* shape;    ///< one extent a dimension
  const int64_t* strides;  ///< in elements; null: row-major without gaps
  int32_t rank;            ///< dimensions; -1: nothing is given for this output
  int32_t dtype;           ///< KilnParameter says which numbers there are
} KilnTensor;

/// A size that no argument's shape gives.
typedef struct {
  const char* name;
  int64_t value;
} KilnSize;

typedef struct {
  const char* name;   ///< lives as long as the artifact, as does `shape`
  const char* shape;  ///< as written: "n, m + 1"
  /// 1 bool, 2-5 int8 to int64, 6-9 uint8 to uint64, 10 float16, 11 bfloat16, 12 float32,
  /// 13 float64, 14 float8_e4m3fn, 15 float8_e5m2
  int32_t dtype;
  int32_t rank;
  int32_t is_output;
} KilnParameter;

/// Of the last function of this thread that failed; each lives until the next one fails.
typedef struct {
  const char* message;  ///< a sentence
  const char* reason;   ///< a stable word: ARTIFACT_FILE, ARTIFACT_CORRUPT, ARGUMENT_SHAPE, ...
  const char* kind;     ///< InvalidArgument, Unsupported, NotFound, ResourceExhausted, ...
} KilnError;
KilnError kiln_runtime_error(void);

/// "0.1.0": of this library.
const char* kiln_runtime_version(void);

/// Reads and loads a file; null on failure. `threads`: that share parallel loops, the caller
/// included; 0: as many as this process may use. `gpu`: the number of the GPU for a kernel for
/// CUDA, else without meaning.
KilnArtifact* kiln_artifact_load(const char* path, int32_t threads, int32_t gpu);
void kiln_artifact_free(KilnArtifact* artifact);

const char* kiln_artifact_name(const KilnArtifact* artifact);
/// "llvm" or "cuda".
const char* kiln_artifact_target(const KilnArtifact* artifact);
/// What it was compiled for: "znver5", "sm_90".
const char* kiln_artifact_arch(const KilnArtifact* artifact);
int32_t kiln_artifact_parameters(const KilnArtifact* artifact);
/// `index` is below kiln_artifact_parameters().
KilnParameter kiln_artifact_parameter(const KilnArtifact* artifact, int32_t index);
int32_t kiln_artifact_sizes(const KilnArtifact* artifact);
/// The name of a size: "n".
const char* kiln_artifact_size(const KilnArtifact* artifact, int32_t index);

/// Checks the arguments, one a parameter, and writes the shape that each parameter has then, one
/// after the other. 0, or -1 on failure.
int32_t kiln_artifact_shapes(const KilnArtifact* artifact, const KilnTensor* tensors, int32_t count,
                             const KilnSize* sizes, int32_t size_count, int64_t* shapes);

/// Runs the kernel to its end, outputs into the memory given for them. `seconds`, unless null: what
/// the kernel itself took. 0, or -1 on failure, which leaves the contents of outputs unspecified.
int32_t kiln_artifact_call(const KilnArtifact* artifact, const KilnTensor* tensors, int32_t count,
                           const KilnSize* sizes, int32_t size_count, double* seconds);

#ifdef __cplusplus
}  // extern "C"

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace kiln {
namespace runtime {

/// what() is a sentence in the names of the kernel.
class Error : public std::runtime_error {
 public:
  explicit Error(const KilnError& error)
      : std::runtime_error(error.message), reason_(error.reason), kind_(error.kind) {}
  const std::string& reason() const { return reason_; }
  const std::string& kind() const { return kind_; }

 private:
  std::string reason_;
  std::string kind_;
};

/// The number of the element type for values of T: bool, integers, float, double.
template <typename T>
constexpr int32_t dtype_of() {
  if (std::is_same<T, bool>::value) return 1;
  if (std::is_same<T, float>::value) return 12;
  if (std::is_same<T, double>::value) return 13;
  static_assert(std::is_arithmetic<T>::value, "elements are bool, integers, float or double");
  const int32_t log2_bytes = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return (std::is_signed<T>::value ? 2 : 6) + log2_bytes;
}

/// Memory of the caller, which has to live until the call has ended.
struct Tensor {
  Tensor() = default;
  template <typename T>
  Tensor(T* data, std::vector<int64_t> shape, std::vector<int64_t> strides = {})
      : Tensor(dtype_of<typename std::remove_const<T>::type>(), data, std::move(shape),
               std::move(strides)) {}
  /// Elements of a type that C++ has not, by its number: 11 is bfloat16.
  Tensor(int32_t dtype, const void* data, std::vector<int64_t> shape,
         std::vector<int64_t> strides = {})
      : data(const_cast<void*>(data)),
        shape(std::move(shape)),
        strides(std::move(strides)),
        dtype(dtype),
        is_given(true) {
    if (!this->strides.empty() && this->strides.size() != this->shape.size())
      throw std::invalid_argument("a tensor has a stride for each dimension, or none at all");
  }

  void* data = nullptr;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements; empty: row-major without gaps
  int32_t dtype = 0;
  bool is_given = false;  // or an output whose shape is asked for
};

struct Options {
  int32_t threads = 0;  // 0: as many as this process may use
  int32_t gpu = 0;      // for a kernel for CUDA
};

using Sizes = std::map<std::string, int64_t>;

/// A kernel of a file. Copies share it; calls from several threads are fine.
class Artifact {
 public:
  explicit Artifact(const std::string& path, Options options = Options())
      : artifact_(kiln_artifact_load(path.c_str(), options.threads, options.gpu),
                  kiln_artifact_free) {
    if (!artifact_) throw Error(kiln_runtime_error());
  }

  std::string name() const { return kiln_artifact_name(artifact_.get()); }
  std::string target() const { return kiln_artifact_target(artifact_.get()); }
  std::string arch() const { return kiln_artifact_arch(artifact_.get()); }
  std::vector<KilnParameter> parameters() const {
    std::vector<KilnParameter> all;
    for (int32_t i = 0; i < kiln_artifact_parameters(artifact_.get()); ++i)
      all.push_back(kiln_artifact_parameter(artifact_.get(), i));
    return all;
  }
  std::vector<std::string> sizes() const {
    std::vector<std::string> all;
    for (int32_t i = 0; i < kiln_artifact_sizes(artifact_.get()); ++i)
      all.push_back(kiln_artifact_size(artifact_.get(), i));
    return all;
  }

  /// The shape of each parameter; of outputs, Tensor() may stand in their place.
  std::vector<std::vector<int64_t>> shapes(const std::vector<Tensor>& arguments,
                                           const Sizes& sizes = {}) const {
    const Call call(arguments, sizes);
    std::size_t dimensions = 0;
    for (const KilnParameter& parameter : parameters())
      dimensions += static_cast<std::size_t>(parameter.rank);
    std::vector<int64_t> flat(dimensions + 1);
    check(kiln_artifact_shapes(artifact_.get(), call.tensors.data(), call.count(),
                               call.sizes.data(), call.size_count(), flat.data()));
    std::vector<std::vector<int64_t>> all;
    auto at = flat.cbegin();
    for (const KilnParameter& parameter : parameters()) {
      all.emplace_back(at, at + parameter.rank);
      at += parameter.rank;
    }
    return all;
  }

  /// Runs it on all arguments, in the order of the parameters. The seconds that the kernel took.
  double operator()(const std::vector<Tensor>& arguments, const Sizes& sizes = {}) const {
    const Call call(arguments, sizes);
    double seconds = 0;
    check(kiln_artifact_call(artifact_.get(), call.tensors.data(), call.count(), call.sizes.data(),
                             call.size_count(), &seconds));
    return seconds;
  }

 private:
  struct Call {
    Call(const std::vector<Tensor>& arguments, const Sizes& given) {
      for (const Tensor& each : arguments) {
        KilnTensor tensor;
        tensor.data = each.data;
        tensor.shape = each.shape.data();
        tensor.strides = each.strides.empty() ? nullptr : each.strides.data();
        tensor.rank = each.is_given ? static_cast<int32_t>(each.shape.size()) : -1;
        tensor.dtype = each.dtype;
        tensors.push_back(tensor);
      }
      for (const auto& size : given)
        sizes.push_back({size.first.c_str(), size.second});
    }
    int32_t count() const { return static_cast<int32_t>(tensors.size()); }
    int32_t size_count() const { return static_cast<int32_t>(sizes.size()); }
    std::vector<KilnTensor> tensors;
    std::vector<KilnSize> sizes;
  };
  static void check(int32_t result) {
    if (result != 0) throw Error(kiln_runtime_error());
  }

  std::shared_ptr<KilnArtifact> artifact_;
};

}  // namespace runtime
}  // namespace kiln
#endif
