// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/systems/mpi/program/figures.hpp"
#include "bench/systems/mpi/program/world.hpp"

namespace wherry::bench::mpi {
namespace {

/// Steps that are compared with those of one process.
constexpr std::uint64_t kChecked = 5;

double begin_at(std::size_t row, std::size_t column) {
  return static_cast<double>((row * 7919 + column * 104729) % 1000);
}

/// Part of the square with a border of one cell around it.
class Field {
 public:
  Field(std::size_t rows, std::size_t columns, std::size_t row, std::size_t column)
      : rows_(rows), columns_(columns), cells_((rows + 2) * (columns + 2)), next_(cells_.size()) {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) at(i + 1, j + 1) = begin_at(row + i, column + j);
    }
  }

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  [[nodiscard]] std::size_t stride() const { return columns_ + 2; }
  /// Counted from the border on.
  [[nodiscard]] double& at(std::size_t row, std::size_t column) { return cells_[row * stride() + column]; }

  void step() {
    for (std::size_t i = 1; i <= rows_; ++i) {
      for (std::size_t j = 1; j <= columns_; ++j) {
        const double around = (at(i - 1, j) + at(i + 1, j)) + (at(i, j - 1) + at(i, j + 1));
        next_[i * stride() + j] = at(i, j) + 0.1 * (around - 4 * at(i, j));
      }
    }
    cells_.swap(next_);
  }

  /// Of the whole square: its own opposite sides are its border.
  void wrap() {
    for (std::size_t j = 1; j <= columns_; ++j) {
      at(0, j) = at(rows_, j);
      at(rows_ + 1, j) = at(1, j);
    }
    for (std::size_t i = 1; i <= rows_; ++i) {
      at(i, 0) = at(i, columns_);
      at(i, columns_ + 1) = at(i, 1);
    }
  }

 private:
  std::size_t rows_;
  std::size_t columns_;
  std::vector<double> cells_;
  std::vector<double> next_;
};

/// Where this rank's block begins in a square that is divided along one dimension, and how long it is.
struct Share {
  std::size_t begin;
  std::size_t length;
};

Share share_of(std::size_t side, int place, int places) {
  const auto bound = [&](int i) { return side * static_cast<std::size_t>(i) / static_cast<std::size_t>(places); };
  return {bound(place), bound(place + 1) - bound(place)};
}

/// A column of a block: cells that are a row apart.
class Column {
 public:
  explicit Column(const Field& field) {
    MPI_Type_vector(static_cast<int>(field.rows()), 1, static_cast<int>(field.stride()), MPI_DOUBLE, &type_);
    MPI_Type_commit(&type_);
  }
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;
  ~Column() { MPI_Type_free(&type_); }
  [[nodiscard]] MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

/// This rank's block of the square.
class Block {
 public:
  Block(const Communicator& grid, std::size_t side) : Block(grid, places_of(grid), side) {}

  void step() {
    exchange();
    field_.step();
  }

  /// Throws unless the block is what one process computes of the whole square.
  void verify(std::size_t side, std::uint64_t steps) {
    Field whole(side, side, 0, 0);
    for (std::uint64_t i = 0; i < steps; ++i) {
      whole.wrap();
      whole.step();
    }
    for (std::size_t i = 1; i <= field_.rows(); ++i) {
      for (std::size_t j = 1; j <= field_.columns(); ++j) {
        if (field_.at(i, j) != whole.at(rows_.begin + i, columns_.begin + j)) {
          throw std::runtime_error("the heat equation has another solution with these ranks than with one");
        }
      }
    }
  }

 private:
  struct Places {
    std::array<int, 2> lengths{};
    std::array<int, 2> own{};
  };
  static Places places_of(const Communicator& grid) {
    Places places;
    std::array<int, 2> periodic{};
    MPI_Cart_get(grid.get(), 2, places.lengths.data(), periodic.data(), places.own.data());
    return places;
  }

  Block(const Communicator& grid, const Places& places, std::size_t side)
      : grid_(grid),
        rows_(share_of(side, places.own[0], places.lengths[0])),
        columns_(share_of(side, places.own[1], places.lengths[1])),
        field_(rows_.length, columns_.length, rows_.begin, columns_.begin),
        column_(field_) {
    MPI_Cart_shift(grid.get(), 0, 1, &above_, &below_);
    MPI_Cart_shift(grid.get(), 1, 1, &left_, &right_);
  }

  void exchange() {
    const std::size_t last_row = field_.rows();
    const std::size_t last_column = field_.columns();
    const int width = static_cast<int>(last_column);
    std::array<MPI_Request, 8> requests{};
    const auto receive = [&](int i, double& cell, int count, MPI_Datatype type, int from) {
      MPI_Irecv(&cell, count, type, from, i, grid_.get(), &requests[static_cast<std::size_t>(i)]);
    };
    const auto send = [&](int i, double& cell, int count, MPI_Datatype type, int to) {
      MPI_Isend(&cell, count, type, to, i, grid_.get(), &requests[static_cast<std::size_t>(4 + i)]);
    };
    receive(0, field_.at(0, 1), width, MPI_DOUBLE, above_);
    receive(1, field_.at(last_row + 1, 1), width, MPI_DOUBLE, below_);
    receive(2, field_.at(1, 0), 1, column_.get(), left_);
    receive(3, field_.at(1, last_column + 1), 1, column_.get(), right_);
    send(0, field_.at(last_row, 1), width, MPI_DOUBLE, below_);
    send(1, field_.at(1, 1), width, MPI_DOUBLE, above_);
    send(2, field_.at(1, last_column), 1, column_.get(), right_);
    send(3, field_.at(1, 1), 1, column_.get(), left_);
    MPI_Waitall(8, requests.data(), MPI_STATUSES_IGNORE);
  }

  const Communicator& grid_;
  Share rows_;
  Share columns_;
  Field field_;
  Column column_;
  int above_ = MPI_PROC_NULL;
  int below_ = MPI_PROC_NULL;
  int left_ = MPI_PROC_NULL;
  int right_ = MPI_PROC_NULL;
};

}  // namespace

Found heat(std::size_t bytes, double seconds) {
  const auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(bytes) / sizeof(double)));
  const Communicator grid(make_grid(2));
  if (side < static_cast<std::size_t>(grid.size())) throw std::runtime_error("the square is too small for the ranks");
  Block checked(grid, side);
  for (std::uint64_t i = 0; i < kChecked; ++i) checked.step();
  checked.verify(side, kChecked);
  Block block(grid, side);
  return {{"ns_mean", time_rounds(grid, seconds, [&](std::uint64_t) { block.step(); })}};
}

}  // namespace wherry::bench::mpi
