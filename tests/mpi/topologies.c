/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes communicators with topologies in every way that MPI has. Before each it writes "scenario NAME" into
 * RECORD/rank, where recording_provider.c writes what is declared meanwhile. Runs with 6 processes.
 */
/* The special addresses of weights are no arrays: some versions of gcc warn of them in every program. */
#pragma GCC diagnostic ignored "-Wstringop-overread"
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int rank;

static void scenario(const char* name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", getenv("RECORD"), rank);
  FILE* const file = fopen(path, "a");
  fprintf(file, "scenario %s\n", name);
  fclose(file);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_Comm grid(MPI_Comm from, int rows, int columns, int periodic) {
  const int sizes[2] = {rows, columns};
  const int periods[2] = {periodic, periodic};
  MPI_Comm made;
  MPI_Cart_create(from, 2, sizes, periods, 0, &made);
  return made;
}

static void grids(void) {
  scenario("grid");
  MPI_Comm made = grid(MPI_COMM_WORLD, 2, 3, 0);
  scenario("rows");
  const int kept[2] = {0, 1};
  MPI_Comm row;
  MPI_Cart_sub(made, kept, &row);
  scenario("free");
  MPI_Comm_free(&row);
  MPI_Comm_free(&made);
  scenario("torus");
  made = grid(MPI_COMM_WORLD, 2, 3, 1);
  MPI_Comm_free(&made);
  scenario("small");
  made = grid(MPI_COMM_WORLD, 1, 2, 0);
  require((made == MPI_COMM_NULL) == (rank >= 2), "the grid has the wrong processes");
  if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
}

static void duplicates(void) {
  scenario("line");
  MPI_Comm made = grid(MPI_COMM_WORLD, 1, 6, 0);
  MPI_Comm duplicate;
  scenario("duplicate");
  MPI_Comm_dup(made, &duplicate);
  MPI_Comm_free(&made);
  scenario("duplicate of a duplicate");
  MPI_Comm_dup_with_info(duplicate, MPI_INFO_NULL, &made);
  MPI_Comm_disconnect(&duplicate);
  scenario("idup");
  MPI_Request request;
  MPI_Comm_idup(made, &duplicate, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&made);
  MPI_Comm_free(&duplicate);
  scenario("split");
  made = grid(MPI_COMM_WORLD, 1, 6, 0);
  MPI_Comm_split(made, rank % 2, rank, &duplicate);
  int kind;
  MPI_Topo_test(duplicate, &kind);
  require(kind == MPI_UNDEFINED, "a split communicator has a topology");
  MPI_Comm_free(&duplicate);
  MPI_Comm_free(&made);
}

static void graphs(void) {
  scenario("graph");
  /* A star around 0, whose edge to 1 is there twice, and to itself. */
  const int index[6] = {7, 8, 9, 10, 11, 12};
  const int edges[12] = {1, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0};
  MPI_Comm made;
  MPI_Graph_create(MPI_COMM_WORLD, 6, index, edges, 0, &made);
  MPI_Comm_free(&made);

  const int before = (rank + 5) % 6;
  const int after = (rank + 1) % 6;
  scenario("unweighted");
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &after, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                 0, &made);
  MPI_Comm_free(&made);
  scenario("weighted");
  const int sources[4] = {before, after, before, rank};
  const int weights[4] = {3, 0, 4, 9};
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 4, sources, weights, 4, sources, weights, MPI_INFO_NULL, 0, &made);
  MPI_Comm_free(&made);
  scenario("one sender");
  /* Only 0 has a destination, 5: the others have empty lists. */
  const int five = 5;
  const int zero = 0;
  const int seven = 7;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank == 5, rank == 5 ? &zero : NULL,
                                 rank == 5 ? &seven : MPI_WEIGHTS_EMPTY, rank == 0, rank == 0 ? &five : NULL,
                                 rank == 0 ? &seven : MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &made);
  MPI_Comm_free(&made);
  scenario("edges of others");
  /* Rank 0 gives the edges of all ranks: 1 to 2 and 3, 4 to 2. */
  const int origins[2] = {1, 4};
  const int degrees[2] = {2, 1};
  const int destinations[3] = {2, 3, 2};
  const int given[3] = {1, 2, 3};
  MPI_Dist_graph_create(MPI_COMM_WORLD, rank == 0 ? 2 : 0, origins, degrees, destinations, given, MPI_INFO_NULL, 0,
                        &made);
  MPI_Comm_free(&made);
}

/* Each kind of topology on a communicator that has another: Open MPI 5.0 then says of some that they are grids. */
static void topologies_on_topologies(void) {
  const int before = (rank + 5) % 6;
  const int after = (rank + 1) % 6;
  const int one = 1;
  const int index[6] = {1, 2, 3, 4, 5, 6};
  const int edges[6] = {1, 0, 3, 2, 5, 4};
  scenario("below");
  MPI_Comm grid_below = grid(MPI_COMM_WORLD, 2, 3, 0);
  MPI_Comm made[3];
  scenario("edges on a grid");
  MPI_Dist_graph_create_adjacent(grid_below, 1, &before, MPI_UNWEIGHTED, 1, &after, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &made[0]);
  scenario("edges of others on a grid");
  MPI_Dist_graph_create(grid_below, 1, &rank, &one, &after, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made[1]);
  scenario("graph on a grid");
  MPI_Graph_create(grid_below, 6, index, edges, 0, &made[2]);
  scenario("grid on edges");
  MPI_Comm on_edges = grid(made[0], 1, 6, 0);
  scenario("edges on a graph");
  MPI_Comm on_graph;
  MPI_Dist_graph_create_adjacent(made[2], 1, &before, MPI_UNWEIGHTED, 1, &after, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &on_graph);
  scenario("freed");
  for (int i = 0; i < 3; ++i) MPI_Comm_free(&made[i]);
  MPI_Comm_free(&on_edges);
  MPI_Comm_free(&on_graph);
  MPI_Comm_free(&grid_below);
}

static void error_handlers(void) {
  scenario("error handler");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm made = grid(MPI_COMM_WORLD, 1, 6, 0);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm other = grid(MPI_COMM_WORLD, 1, 6, 0);
  MPI_Errhandler returning, fatal;
  MPI_Comm_get_errhandler(made, &returning);
  MPI_Comm_get_errhandler(other, &fatal);
  require(returning == MPI_ERRORS_RETURN && fatal == MPI_ERRORS_ARE_FATAL, "the error handler is another one");
  MPI_Errhandler_free(&returning);
  MPI_Errhandler_free(&fatal);
  MPI_Comm_free(&made);
  MPI_Comm_free(&other);
}

static void failures(void) {
  scenario("failure");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int sizes[1] = {7};
  const int periods[1] = {0};
  MPI_Comm made = MPI_COMM_SELF;
  const int by_name = MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periods, 0, &made);
  const int by_mpi = PMPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periods, 0, &made);
  int class_by_name, class_by_mpi;
  MPI_Error_class(by_name, &class_by_name);
  MPI_Error_class(by_mpi, &class_by_mpi);
  require(by_name != MPI_SUCCESS && class_by_name == class_by_mpi, "the error is another one");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void* many_grids(void* argument) {
  MPI_Comm* const mine = argument;
  for (int i = 0; i < 10; ++i) {
    MPI_Comm made = grid(*mine, 1, 6, 0);
    MPI_Comm_free(&made);
  }
  return NULL;
}

static void threads(int provided) {
  scenario("threads");
  if (provided != MPI_THREAD_MULTIPLE) return;
  MPI_Comm own[3];
  pthread_t ids[3];
  for (int i = 0; i < 3; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
  for (int i = 0; i < 3; ++i) pthread_create(&ids[i], NULL, many_grids, &own[i]);
  for (int i = 0; i < 3; ++i) pthread_join(ids[i], NULL);
  for (int i = 0; i < 3; ++i) MPI_Comm_free(&own[i]);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  grids();
  duplicates();
  graphs();
  topologies_on_topologies();
  error_handlers();
  failures();
  threads(provided);
  scenario("left");
  MPI_Comm made = grid(MPI_COMM_WORLD, 1, 6, 0);
  (void)made;
  scenario("end");
  MPI_Finalize();
  return 0;
}
