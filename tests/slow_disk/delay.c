/* A slow disk: loaded before libc (LD_PRELOAD), it has every sync of a file or directory take SLOW_DISK_MS more, and every
   sync of a directory SLOW_DIRECTORY_MS besides. The file SLOW_DIRECTORY_MARK is made when the sync of a directory begins. */
#include <fcntl.h>
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

static void make_mark(void) {
    const char *path = getenv("SLOW_DIRECTORY_MARK");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) {
        close(fd);
    }
}

static void wait_for_the_disk(int fd) {
    struct stat file;
    wait_for("SLOW_DISK_MS");
    if (fstat(fd, &file) == 0 && S_ISDIR(file.st_mode)) {
        make_mark();
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
