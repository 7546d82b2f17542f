/* A library that uses OpenMP; the libraries it is linked with decide which one. */
long sum_of_squares(long count);

long sum_of_squares(long count) {
  long sum = 0;
#pragma omp parallel for num_threads(4) reduction(+ : sum)
  for (long i = 0; i < count; ++i) sum += i * i;
  return sum;
}
