/* A slow disk: loaded before libc (LD_PRELOAD), it has every sync of a file or directory take SLOW_DISK_MS more. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_for_the_disk(void) {
    const char *text = getenv("SLOW_DISK_MS");
    long ms = text ? strtol(text, NULL, 10) : 0;
    struct timespec left = {ms / 1000, (ms % 1000) * 1000000L};
    while (ms > 0 && nanosleep(&left, &left) != 0) {
    }
}

int fsync(int fd) {
    wait_for_the_disk();
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    wait_for_the_disk();
    return (int)syscall(SYS_fdatasync, fd);
}
