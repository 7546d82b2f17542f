! Each thread of an OpenMP region locks and forgets to unlock. libgfortran handles signals, to print a backtrace.
program fortran_lock_left
  use omp_lib
  implicit none
  integer(omp_lock_kind) :: lock
  call omp_init_lock(lock)
  !$omp parallel num_threads(2)
  call omp_set_lock(lock)
  !$omp end parallel
end program fortran_lock_left
