// Runs a compiled kernel from a file, without a service and without a compiler:
//
//   kiln compile examples/matmul.kiln -o matmul.kart
//   ./run_artifact matmul.kart
#include <cstdint>
#include <iostream>
#include <vector>

#include <kiln/runtime.h>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: run_artifact matmul.kart\n";
    return 2;
  }
  try {
    const kiln::runtime::Artifact matmul(argv[1]);
    const std::int64_t n = 2, l = 3, m = 4;
    std::vector<float> a(n * l), b(l * m), c(n * m);
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = static_cast<float>(i);
    for (std::size_t i = 0; i < b.size(); ++i)
      b[i] = static_cast<float>(i);

    matmul({{a.data(), {n, l}}, {b.data(), {l, m}}, {c.data(), {n, m}}});
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < m; ++j)
        std::cout << c[i * m + j] << (j + 1 < m ? " " : "\n");
    }

    // Sentences in the names of the kernel, as everywhere.
    matmul({{a.data(), {n, l}}, {b.data(), {m, l}}, {c.data(), {n, m}}});
  } catch (const kiln::runtime::Error& error) {
    std::cout << "a wrong call: " << error.what() << "\n";
  }
  return 0;
}
