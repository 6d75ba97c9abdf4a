// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/systems/mpi/program/figures.hpp"
#include "bench/systems/mpi/program/world.hpp"

namespace wherry::bench::mpi {
namespace {

using Complex = std::complex<double>;

/// The transform of one row in place, scaled so that its length stays: radix 2.
class RowTransform {
 public:
  explicit RowTransform(std::size_t length) : length_(length) {
    for (std::size_t i = 0; i < length / 2; ++i) {
      roots_.push_back(std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length)));
    }
  }

  void apply(std::span<Complex> row) const {
    reverse_bits(row);
    for (std::size_t half = 1; half < length_; half *= 2) butterflies(row, half);
    for (Complex& one : row) one /= std::sqrt(static_cast<double>(length_));
  }

 private:
  static void reverse_bits(std::span<Complex> row) {
    for (std::size_t i = 1, j = 0; i < row.size(); ++i) {
      std::size_t bit = row.size() / 2;
      for (; (j & bit) != 0; bit /= 2) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(row[i], row[j]);
    }
  }

  void butterflies(std::span<Complex> row, std::size_t half) const {
    for (std::size_t begin = 0; begin < length_; begin += 2 * half) {
      for (std::size_t i = 0; i < half; ++i) {
        const Complex low = row[begin + i];
        const Complex high = row[begin + i + half] * roots_[i * (length_ / (2 * half))];
        row[begin + i] = low + high;
        row[begin + i + half] = low - high;
      }
    }
  }

  std::size_t length_;
  std::vector<Complex> roots_;
};

/// The value at a place of the square before any transform.
Complex begin_at(std::size_t row, std::size_t column) {
  return {static_cast<double>((row * 7919 + column * 104729) % 1000) / 1000,
          static_cast<double>((row * 31337 + column * 271) % 1000) / 1000};
}

/// This rank's rows of the square.
class Rows {
 public:
  Rows(const Communicator& ranks, std::size_t side)
      : ranks_(ranks), side_(side), transform_(side), cells_(own() * side), out_(cells_.size()), in_(cells_.size()) {
    for (std::size_t i = 0; i < own(); ++i) {
      for (std::size_t j = 0; j < side; ++j) cells_[i * side + j] = begin_at(first() + i, j);
    }
    divide();
  }

  /// The transform, transposed.
  void apply() {
    pass();
    pass();
  }

  /// After two transforms everything is where it was, but counted backwards.
  void verify() const {
    constexpr double kRounding = 1e-9;
    for (std::size_t i = 0; i < own(); ++i) {
      for (std::size_t j = 0; j < side_; ++j) {
        const Complex expected = begin_at((side_ - first() - i) % side_, (side_ - j) % side_);
        if (!(std::abs(cells_[i * side_ + j] - expected) < kRounding)) {
          throw std::runtime_error("the transform of a transform is not what it was made of");
        }
      }
    }
  }

 private:
  [[nodiscard]] std::size_t bound(int rank) const {
    return side_ * static_cast<std::size_t>(rank) / static_cast<std::size_t>(ranks_.size());
  }
  [[nodiscard]] std::size_t rows_of(int rank) const { return bound(rank + 1) - bound(rank); }
  [[nodiscard]] std::size_t first() const { return bound(ranks_.rank()); }
  [[nodiscard]] std::size_t own() const { return rows_of(ranks_.rank()); }

  /// Each rank gets the part of these rows that lies in its columns: as many cells as come back from it.
  void divide() {
    int place = 0;
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      counts_.push_back(static_cast<int>(own() * rows_of(rank)));
      places_.push_back(std::exchange(place, place + counts_.back()));
    }
  }

  /// Transforms the rows and transposes the square.
  void pass() {
    for (std::size_t i = 0; i < own(); ++i) transform_.apply(std::span(cells_).subspan(i * side_, side_));
    Complex* next = out_.data();
    for (std::size_t j = 0; j < side_; ++j) {
      for (std::size_t i = 0; i < own(); ++i) *next++ = cells_[i * side_ + j];
    }
    MPI_Alltoallv(out_.data(), counts_.data(), places_.data(), MPI_CXX_DOUBLE_COMPLEX, in_.data(), counts_.data(),
                  places_.data(), MPI_CXX_DOUBLE_COMPLEX, ranks_.get());
    const Complex* from = in_.data();
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      for (std::size_t i = 0; i < own(); ++i) {
        for (std::size_t j = bound(rank); j < bound(rank + 1); ++j) cells_[i * side_ + j] = *from++;
      }
    }
  }

  const Communicator& ranks_;
  std::size_t side_;
  RowTransform transform_;
  std::vector<Complex> cells_;
  std::vector<Complex> out_;
  std::vector<Complex> in_;
  std::vector<int> counts_{};
  std::vector<int> places_{};
};

}  // namespace

Found fft(std::size_t bytes, double seconds) {
  const auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(bytes) / sizeof(Complex)));
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  const Communicator ranks(copy);
  if (!std::has_single_bit(side) || side < static_cast<std::size_t>(ranks.size())) {
    throw std::runtime_error("a side of the square is a power of two, and not less than the ranks");
  }
  Rows rows(ranks, side);
  rows.apply();
  rows.apply();
  rows.verify();
  return {{"ns_mean", time_rounds(ranks, seconds, [&](std::uint64_t) { rows.apply(); })}};
}

}  // namespace wherry::bench::mpi
