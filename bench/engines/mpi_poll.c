// Times what one poll of comm/mpi/mpi_wire.cpp costs: MPI_Test for each request in flight, four for each peer, none of
// which has ended; and one MPI_Testsome of all of them.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBytes = 64, kRounds = 300, kMostRequests = 1020, kPerPeer = 4 };

static MPI_Request requests[kMostRequests];
static MPI_Status statuses[kMostRequests];
static int ended[kMostRequests];
static char bytes[kMostRequests][kBytes];

static double lesser(double a, double b) { return a < b ? a : b; }

static void print_times(int count) {
  double each = 1, all = 1;
  for (int round = 0; round < kRounds; ++round) {
    int flag = 0, num_ended = 0;
    const double begin = MPI_Wtime();
    for (int i = 0; i < count; ++i) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
    const double middle = MPI_Wtime();
    MPI_Testsome(count, requests, &num_ended, ended, statuses);
    each = lesser(each, middle - begin);
    all = lesser(all, MPI_Wtime() - middle);
  }
  printf("| %d | %.2f | %.2f |\n", count / kPerPeer + 1, each * 1e6, all * 1e6);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int peers = 1; peers * kPerPeer <= kMostRequests; peers = 2 * peers + 1) {
    const int count = peers * kPerPeer;
    for (int i = 0; i < count; ++i)
      MPI_Irecv(bytes[i], kBytes, MPI_CHAR, 1 - rank, i + 1, MPI_COMM_WORLD, &requests[i]);
    if (rank == 0) print_times(count);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) {
      MPI_Cancel(&requests[i]);
      MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
  }
  MPI_Finalize();
}
