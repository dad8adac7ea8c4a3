#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const contract_buffers = pass_named("contract_buffers").run;

TEST(ContractBuffers, ToTheVectorsOfAnIteration) {
  expect_becomes(contract_buffers, R"(fn f(X: float32[640], W: float32[640] output) {
    allocate Z: float32[640] {
      for i in 0..20 parallel {
        for v in 0..32 vectorize { Z[i*32 + v] = X[i*32 + v]*2.0 }
        for w in 0..32 vectorize { W[i*32 + w] = max(Z[i*32 + w], 0.0)*Z[i*32 + w] }
      }
    } })",
                 R"(fn f(X: float32[640], W: float32[640] output) {
    for i in 0..20 parallel {
      allocate Z: float32[32] {
        for v in 0..32 vectorize { Z[v] = X[i*32 + v]*2.0 }
        for w in 0..32 vectorize { W[i*32 + w] = max(Z[w], 0.0)*Z[w] }
      }
    } })");
}

TEST(ContractBuffers, OfRowsAndOfStepsThatAreCutOtherwise) {
  expect_becomes(contract_buffers, R"(fn f(X: float32[m, 640], S: float32[m] output) {
    for i in 0..m parallel {
      allocate E: float32[m, 640] {
        S[i] = 0.0
        for k in 0..10 {
          for j in 0..2 unroll { for v in 0..32 vectorize {
            E[i, (k*2 + j)*32 + v] = exp(X[i, (k*2 + j)*32 + v]) } }
          for w in 0..64 vectorize { S[i] = S[i] + E[i, k*64 + w] }
        }
      }
    } })",
                 R"(fn f(X: float32[m, 640], S: float32[m] output) {
    for i in 0..m parallel {
      S[i] = 0.0
      for k in 0..10 {
        allocate E: float32[1, 64] {
          for j in 0..2 unroll { for v in 0..32 vectorize {
            E[0, j*32 + v] = exp(X[i, (k*2 + j)*32 + v]) } }
          for w in 0..64 vectorize { S[i] = S[i] + E[0, w] }
        }
      }
    } })");
}

TEST(ContractBuffers, OfEachLoopAndOfWhatIsLeftBehindIt) {
  expect_becomes(contract_buffers, R"(fn f(X: float32[72], W: float32[72] output) {
    allocate Z: float32[72] {
      for v in 0..8 vectorize { Z[v + 64] = X[v + 64]*2.0 }
      for i in 0..2 {
        for v in 0..32 vectorize { Z[i*32 + v] = X[i*32 + v]*2.0 }
        for w in 0..32 vectorize { W[i*32 + w] = Z[i*32 + w]*Z[i*32 + w] }
      }
      for w in 0..8 vectorize { W[w + 64] = Z[w + 64]*Z[w + 64] }
    } })",
                 R"(fn f(X: float32[72], W: float32[72] output) {
    allocate Z_rest: float32[8] {
      for v in 0..8 vectorize { Z_rest[v] = X[v + 64]*2.0 }
      for i in 0..2 {
        allocate Z: float32[32] {
          for v in 0..32 vectorize { Z[v] = X[i*32 + v]*2.0 }
          for w in 0..32 vectorize { W[i*32 + w] = Z[w]*Z[w] }
        }
      }
      for w in 0..8 vectorize { W[w + 64] = Z_rest[w]*Z_rest[w] }
    } })");
}

TEST(ContractBuffers, ToEachIterationOfAnUnrolledLoopAroundAllOfIt) {
  expect_becomes(contract_buffers, R"(fn f(X: float32[64], W: float32[64] output) {
    allocate Z: float32[64] {
      for u in 0..2 unroll {
        for v in 0..32 vectorize { Z[u*32 + v] = X[u*32 + v]*2.0 }
        for w in 0..32 vectorize { W[u*32 + w] = Z[u*32 + w]*Z[u*32 + w] }
      }
    } })",
                 R"(fn f(X: float32[64], W: float32[64] output) {
    for u in 0..2 unroll {
      allocate Z: float32[32] {
        for v in 0..32 vectorize { Z[v] = X[u*32 + v]*2.0 }
        for w in 0..32 vectorize { W[u*32 + w] = Z[w]*Z[w] }
      }
    } })");
}

TEST(ContractBuffers, LeavesWhatOtherIterationsRead) {
  const auto expect_left = [](std::string_view body) {
    SCOPED_TRACE(body);
    expect_unchanged(contract_buffers,
                     fmt::format("fn f(X: float32[640], W: float32[640] output) {{"
                                 " allocate Z: float32[704] {{ {} }} }}",
                                 body));
  };
  // The one before, and one vector of two.
  expect_left(
      "for i in 0..20 { for v in 0..32 vectorize { Z[i*32 + v + 32] = X[i*32 + v] }"
      " for w in 0..32 vectorize { W[i*32 + w] = Z[i*32 + w] } }");
  expect_left(
      "for i in 0..10 { for v in 0..32 vectorize { Z[i*64 + v] = X[i*64 + v] }"
      " for w in 0..64 vectorize { W[i*64 + w] = Z[i*64 + w] } }");
  // A later loop.
  expect_left(
      "for i in 0..20 { for v in 0..32 vectorize { Z[i*32 + v] = X[i*32 + v] }"
      " for w in 0..32 vectorize { W[i*32 + w] = Z[i*32 + w] } }"
      " for v in 0..32 vectorize { W[v] = W[v] + Z[v] }");
  // One of its own, which stores nothing.
  expect_left(
      "for i in 0..20 { for v in 0..32 vectorize { Z[i*32 + v] = X[i*32 + v] }"
      " for w in 0..32 vectorize { W[i*32 + w] = Z[i*32 + w] } }"
      " for j in 0..20 { for v in 0..32 vectorize { W[j*32 + v] = Z[j*32 + v]*2.0 } }");
  // Before it is stored.
  expect_left(
      "for v in 0..32 vectorize { Z[v] = 0.0 }"
      " for i in 0..20 { for w in 0..32 vectorize { W[i*32 + w] = Z[i*32 + w] }"
      " for v in 0..32 vectorize { Z[i*32 + v] = X[i*32 + v] } }");
}

TEST(ContractBuffers, LeavesPlacesThatDataSays) {
  expect_unchanged(contract_buffers, R"(fn f(I: int64[1] output, W: int64[160] output) {
    allocate Z: int64[64] {
      for i in 0..20 {
        for v in 0..8 vectorize { Z[I[0] + v] = i }
        I[0] = I[0] + 1
        for w in 0..8 vectorize { W[i*8 + w] = Z[I[0] + w] }
      }
    } })");
  expect_unchanged(contract_buffers, R"(fn f(I: int64[1] output, W: int64[20] output) {
    allocate Z: int64[64] {
      for i in 0..20 { Z[I[0]] = i  I[0] = I[0] + 1  W[i] = Z[I[0]] }
    } })");
}

TEST(ContractBuffers, LeavesMuchAndWhatIsNoMemoryOfItsOwn) {
  const auto expect_left = [](std::string_view kind, int count) {
    SCOPED_TRACE(kind);
    expect_unchanged(contract_buffers,
                     fmt::format("fn f(X: float32[20480], W: float32[20480] output) {{"
                                 " allocate Z: float32[20480]{0} {{ for i in 0..10 {{"
                                 " for v in 0..{1} vectorize {{ Z[i*{1} + v] = X[i*{1} + v] }}"
                                 " for w in 0..{1} vectorize {{ W[i*{1} + w] = Z[i*{1} + w] }} }}"
                                 " }} }}",
                                 kind, count));
  };
  expect_left("", 2048);  // 8 KiB
  expect_left(" scope(shared)", 32);
  expect_left(" strides[1]", 32);
}

/// What a loop stores between the store and a load, as a scatter does, may be what is loaded.
TEST(ContractBuffers, LeavesWhatALoopMayStoreBetween) {
  const auto expect_left = [](std::string_view place) {
    SCOPED_TRACE(place);
    expect_unchanged(contract_buffers,
                     fmt::format("fn f(X: int64[8], W: int64[8] output) {{ allocate Z: int64[16] {{"
                                 " for v in 0..8 vectorize {{ Z[v] = 0 }}"
                                 " for i in 0..8 {{ Z[{}] = i }}"
                                 " for w in 0..8 vectorize {{ W[w] = Z[w] }} }} }}",
                                 place));
  };
  expect_left("X[i]");
  expect_left("i");
  expect_left("i + 7");
  expect_becomes(contract_buffers, R"(fn f(X: int64[8], W: int64[8] output) {
    allocate Z: int64[16] {
      for v in 0..8 vectorize { Z[v] = 0 }
      for i in 0..8 { Z[i + 8] = i  W[i] = Z[i + 8] }
      for w in 0..8 vectorize { W[w] = W[w] + Z[w] }
    } })",
                 R"(fn f(X: int64[8], W: int64[8] output) {
    allocate Z: int64[8] {
      for v in 0..8 vectorize { Z[v] = 0 }
      for i in 0..8 { allocate Z_1: int64[1] { Z_1[0] = i  W[i] = Z_1[0] } }
      for w in 0..8 vectorize { W[w] = W[w] + Z[w] }
    } })");
}

TEST(ContractBuffers, OfWhatIsStoredAgain) {
  expect_becomes(contract_buffers, R"(fn f(X: float32[640], W: float32[640] output) {
    allocate Z: float32[640] { for i in 0..20 {
      for v in 0..32 vectorize { Z[i*32 + v] = 0.0 }
      for v in 0..32 vectorize { Z[i*32 + v] = Z[i*32 + v] + X[i*32 + v] }
      for w in 0..32 vectorize { W[i*32 + w] = Z[i*32 + w] }
    } } })",
                 R"(fn f(X: float32[640], W: float32[640] output) {
    for i in 0..20 { allocate Z: float32[32] {
      for v in 0..32 vectorize { Z[v] = 0.0 }
      for v in 0..32 vectorize { Z[v] = Z[v] + X[i*32 + v] }
      for w in 0..32 vectorize { W[i*32 + w] = Z[w] }
    } } })");
}

/// The loops of a matrix unit's tile are steps of the iteration around it.
TEST(ContractBuffers, ToATileOfAMatrixUnit) {
  expect_becomes(contract_buffers,
                 R"(fn f(A: bfloat16[64, 16], B: bfloat16[16, 16], W: bfloat16[64, 16] output) {
    allocate Z: float32[64, 16] { for t in 0..4 {
      multiply_tiles {
        for i in 0..16 { for j in 0..16 { Z[t*16 + i, j] = 0.0 } }
        for k in 0..8 { for i in 0..16 { for j in 0..16 { for p in 0..2 {
          Z[t*16 + i, j] = Z[t*16 + i, j] + float32(A[t*16 + i, k*2 + p])*float32(B[k*2 + p, j])
        } } } }
      }
      for i in 0..16 unroll { for j in 0..16 vectorize { W[t*16 + i, j] = bfloat16(Z[t*16 + i, j]) } }
    } } })",
                 R"(fn f(A: bfloat16[64, 16], B: bfloat16[16, 16], W: bfloat16[64, 16] output) {
    for t in 0..4 { allocate Z: float32[16, 16] {
      multiply_tiles {
        for i in 0..16 { for j in 0..16 { Z[i, j] = 0.0 } }
        for k in 0..8 { for i in 0..16 { for j in 0..16 { for p in 0..2 {
          Z[i, j] = Z[i, j] + float32(A[t*16 + i, k*2 + p])*float32(B[k*2 + p, j])
        } } } }
      }
      for i in 0..16 unroll { for j in 0..16 vectorize { W[t*16 + i, j] = bfloat16(Z[i, j]) } }
    } } })");
}

TEST(ContractBuffers, LeavesWhatIsNotAllStored) {
  const auto expect_left = [](std::string_view stores) {
    SCOPED_TRACE(stores);
    expect_unchanged(contract_buffers,
                     fmt::format("fn f(X: float32[640], W: float32[640] output) {{"
                                 " allocate Z: float32[1280] {{ for i in 0..20 {{ {}"
                                 " for w in 0..32 vectorize {{ W[i*32 + w] = Z[i*32 + w] }}"
                                 " }} }} }}",
                                 stores));
  };
  // Under a condition, every other element, and step by step from the others.
  expect_left("for v in 0..32 vectorize { if X[i] > 0.0 { Z[i*32 + v] = X[i*32 + v] } }");
  expect_left("for v in 0..32 vectorize { Z[i*32 + v*2] = X[i*32 + v] }");
  // The first of two statements stores less than the second one.
  expect_left(
      "for v in 0..16 vectorize { Z[i*32 + v] = 0.0 }"
      " for v in 0..32 vectorize { Z[i*32 + v] = X[i*32 + v] }");
  expect_left("for v in 0..32 vectorize { Z[v] = X[i*32 + v] }");
  expect_left("for v in 0..32 vectorize { Z[i*32 + 31 - v] = X[i*32 + v] }");
  expect_left("for u in 0..2 unroll { for v in 0..16 unroll { Z[i*32 + u*31] = X[i*32 + v] } }");
  expect_left("for v in 0..32 vectorize { Z[i*32 + v where v < 5] = X[i*32 + v] }");
  // Loops of its own, which may be long.
  expect_left("for v in 0..32 { Z[i*32 + v] = X[i*32 + v] }");
}

}  // namespace
}  // namespace kiln::testing
