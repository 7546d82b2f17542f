/* A thread touches a page that another one provides only after a while (userfaultfd(2)). Where that is forbidden, it
 * only reports it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

static char* page;

static void* touch(void* unused) {
  (void)unused;
  return *(volatile char*)page == 'x' ? page : NULL;
}

static int watch_page(int faults) {
  struct uffdio_api api = {.api = UFFD_API};
  struct uffdio_register range = {.range = {(unsigned long)page, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  return ioctl(faults, UFFDIO_API, &api) == 0 && ioctl(faults, UFFDIO_REGISTER, &range) == 0;
}

int main(int count, char** arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 30;
  static char content[PAGE] = "x";
  struct uffd_msg fault;
  pthread_t toucher;
  void* right = NULL;
  const int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  if (faults < 0) {
    fprintf(stderr, "no userfaultfd here: error %d\n", errno);
    puts("done");
    return 0;
  }
  page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || !watch_page(faults)) return 1;
  if (pthread_create(&toucher, NULL, touch, NULL) != 0) return 2;
  if (read(faults, &fault, sizeof fault) != sizeof fault || fault.event != UFFD_EVENT_PAGEFAULT) return 3;
  usleep((useconds_t)(1e6 * seconds));
  struct uffdio_copy copy = {.dst = (unsigned long)page, .src = (unsigned long)content, .len = PAGE};
  if (ioctl(faults, UFFDIO_COPY, &copy) != 0) return 4;
  pthread_join(toucher, &right);
  if (right == NULL) return 5;
  puts("done");
  return 0;
}
