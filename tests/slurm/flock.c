/* A file system without flock, or whose nodes keep locks for themselves, below one folder. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int flock(int fd, int how) {
  static int (*there)(int, int);
  const char *folder = getenv("FLOCK_FOLDER"), *mood = getenv("FLOCK_MOOD");
  char link[64], path[4096];
  if (there == NULL) *(void **)&there = dlsym(RTLD_NEXT, "flock");
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (folder && mood && size > 0 && !strncmp(path, folder, strlen(folder))) {
    if (!strcmp(mood, "lies")) return 0;
    errno = ENOSYS;
    return -1;
  }
  return there(fd, how);
}
