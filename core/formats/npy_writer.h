// The header of a .npy file of version 1.0, as mprun writes it. Used for the tensors that tasks return and for shared
// ones; owns nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mprun {

/// Magic, version, length and dictionary; `dtype` is numpy's code ("<f4").
struct NpyText {
  std::string_view dtype;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;

  /// Of exactly that many bytes; empty if these are too few.
  [[nodiscard]] std::string of_length(std::size_t bytes) const;
  /// As short as possible, ending at a multiple of 64, where numpy begins the data.
  [[nodiscard]] std::string aligned() const;

 private:
  [[nodiscard]] std::string dictionary() const;
};

}  // namespace mprun
