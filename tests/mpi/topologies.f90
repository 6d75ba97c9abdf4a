! SPDX-License-Identifier: Apache-2.0
!
! Makes communicators with topologies from Fortran; BINDING and HANDLE are replaced by the test. Runs with 6 processes.
program topologies
  use BINDING
  implicit none
  integer :: rank, size, error
  HANDLE :: grid, row, graph, edges, adjacent, duplicate

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, size, error)

  call scenario("grid")
  call MPI_Cart_create(MPI_COMM_WORLD, 2, [2, 3], [.false., .false.], .false., grid, error)
  call scenario("row")
  call MPI_Cart_sub(grid, [.false., .true.], row, error)
  call scenario("graph")
  call MPI_Graph_create(MPI_COMM_WORLD, 6, [2, 4, 6, 8, 10, 12], [1, 5, 0, 2, 1, 3, 2, 4, 3, 5, 4, 0], .false., graph, error)
  call scenario("edges")
  call MPI_Dist_graph_create(MPI_COMM_WORLD, 1, [rank], [1], [mod(rank + 1, size)], [2], MPI_INFO_NULL, .false., edges, error)
  call scenario("adjacent")
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [mod(rank + size - 1, size)], [3], 1, [mod(rank + 1, size)], [3], &
                                      MPI_INFO_NULL, .false., adjacent, error)
  call scenario("duplicate")
  call MPI_Comm_dup(adjacent, duplicate, error)
  call scenario("free")
  call MPI_Comm_free(adjacent, error)
  call MPI_Comm_free(duplicate, error)
  call scenario("end")
  call MPI_Comm_free(grid, error)
  call MPI_Comm_free(row, error)
  call MPI_Comm_free(graph, error)
  call MPI_Comm_free(edges, error)
  call MPI_Finalize(error)

contains

  subroutine scenario(name)
    character(*), intent(in) :: name
    character(4096) :: folder
    integer :: unit
    call get_environment_variable("RECORD", folder)
    open(newunit=unit, file=trim(folder)//"/"//achar(iachar("0") + rank), position="append")
    write(unit, "(a)") "scenario "//name
    close(unit)
    call MPI_Barrier(MPI_COMM_WORLD, error)
  end subroutine

end program
