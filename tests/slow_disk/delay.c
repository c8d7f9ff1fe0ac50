/* A slow disk: loaded before libc (LD_PRELOAD), it has every sync of a file or directory take SLOW_DISK_MS more, and every
   sync of a directory SLOW_DIRECTORY_MS besides. */
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_for(const char *name) {
    const char *text = getenv(name);
    long ms = text ? strtol(text, NULL, 10) : 0;
    struct timespec left = {ms / 1000, (ms % 1000) * 1000000L};
    while (ms > 0 && nanosleep(&left, &left) != 0) {
    }
}

static void wait_for_the_disk(int fd) {
    struct stat file;
    wait_for("SLOW_DISK_MS");
    if (fstat(fd, &file) == 0 && S_ISDIR(file.st_mode)) {
        wait_for("SLOW_DIRECTORY_MS");
    }
}

int fsync(int fd) {
    wait_for_the_disk(fd);
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    wait_for_the_disk(fd);
    return (int)syscall(SYS_fdatasync, fd);
}
