/* A file in memory. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "quern/rt.h"

int quern_map(const char* path, quern_file* file) {
  file->data = NULL;
  file->bytes = 0;
  /* Opening a pipe would wait for its writer. */
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return errno;
  int error = 0;
  struct stat about;
  if (fstat(descriptor, &about) != 0) {
    error = errno;
  } else if (!S_ISREG(about.st_mode) || about.st_size <= 0) {
    error = EINVAL;
  } else {
    void* data = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) {
      error = errno;
    } else {
#ifdef MADV_HUGEPAGE
      /* Read from disk in huge pages, where the system can: weights stream by faster. */
      if (about.st_size >= (off_t)4 << 20) madvise(data, (size_t)about.st_size, MADV_HUGEPAGE);
#endif
      file->data = data;
      file->bytes = (size_t)about.st_size;
    }
  }
  close(descriptor);
  return error;
}

void quern_unmap(quern_file* file) {
  if (file->data != NULL) munmap((void*)(uintptr_t)file->data, file->bytes);
  file->data = NULL;
  file->bytes = 0;
}
