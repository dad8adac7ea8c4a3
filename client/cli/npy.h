#pragma once

#include <istream>
#include <ostream>
#include <string>

#include <kiln/array.h>

namespace kiln::cli {

/// The array of a .npy file (format 1.0 to 3.0), in row-major order whatever the file's order is.
///
/// numpy has no name for the small floats of ml_dtypes and writes them as raw bytes; those are read
/// as `wanted` when it is of that size. "-" is standard input. Throws NotFound FILE or
/// InvalidArgument NPY, naming the file.
Array read_npy(const std::string& path, DType wanted);
Array read_npy(std::istream& in, const std::string& name, DType wanted);

/// Writes format 1.0, through what is there (files.h); "-" is standard output.
void write_npy(const std::string& path, const Array& array);
void write_npy(std::ostream& out, const Array& array);

}  // namespace kiln::cli
