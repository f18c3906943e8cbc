// Times MPI_Allreduce (float, sum) of the ranks that mpirun starts, with the sizes and the rounds of bench.cpp.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  static double seconds[2000], slower[2000];
  static const long sizes[] = {8, 512, 4 << 10, 64 << 10, 512 << 10, 4 << 20, 25 << 20, 64 << 20};
  for (int i = 0; i < 8; ++i) {
    const long bytes = sizes[i];
    float* const data = calloc((size_t)bytes, 1);
    long rounds = (1L << 29) / bytes;
    rounds = rounds < 15 ? 15 : rounds > 2000 ? 2000 : rounds;
    for (long round = -3; round < rounds; ++round) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      MPI_Allreduce(MPI_IN_PLACE, data, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      if (round >= 0) seconds[round] = MPI_Wtime() - begin;
    }
    MPI_Reduce(seconds, slower, (int)rounds, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    qsort(slower, (size_t)rounds, sizeof(double), compare);
    if (rank == 0) printf("%ld %.2f\n", bytes, slower[rounds / 2] * 1e6);
    free(data);
  }
  MPI_Finalize();
}
