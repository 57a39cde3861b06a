#define _GNU_SOURCE
#include "CLinux.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define ANSWER(call)                                                                                                   \
    do {                                                                                                               \
        __typeof__(call) answer_;                                                                                      \
        do {                                                                                                           \
            answer_ = (call);                                                                                          \
        } while (answer_ < 0 && errno == EINTR);                                                                       \
        return answer_ < 0 ? -errno : answer_;                                                                         \
    } while (0)

static uint32_t to_epoll(uint32_t flags) {
    return ((flags & CLINUX_READABLE) ? EPOLLIN | EPOLLRDHUP : 0) | ((flags & CLINUX_WRITABLE) ? EPOLLOUT : 0);
}

int clinux_epoll_create(void) { ANSWER(epoll_create1(EPOLL_CLOEXEC)); }

static int control(int epoll, int operation, int fd, uint32_t flags, uint64_t token) {
    struct epoll_event event = {.events = to_epoll(flags), .data.u64 = token};
    ANSWER(epoll_ctl(epoll, operation, fd, &event));
}

int clinux_epoll_add(int epoll, int fd, uint32_t flags, uint64_t token) {
    return control(epoll, EPOLL_CTL_ADD, fd, flags, token);
}
int clinux_epoll_add_exclusive(int epoll, int fd, uint64_t token) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.u64 = token};
    ANSWER(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}
int clinux_epoll_modify(int epoll, int fd, uint32_t flags, uint64_t token) {
    return control(epoll, EPOLL_CTL_MOD, fd, flags, token);
}
int clinux_epoll_remove(int epoll, int fd) { return control(epoll, EPOLL_CTL_DEL, fd, 0, 0); }

int clinux_epoll_wait(int epoll, struct clinux_event *events, int capacity, int timeout_ms) {
    struct epoll_event raw[256];
    int wanted = capacity < 256 ? capacity : 256;
    int count = epoll_wait(epoll, raw, wanted, timeout_ms);
    if (count < 0) return errno == EINTR ? 0 : -errno;
    for (int i = 0; i < count; i++) {
        uint32_t e = raw[i].events;
        events[i].token = raw[i].data.u64;
        events[i].flags = ((e & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) ? CLINUX_READABLE : 0) |
                          ((e & EPOLLOUT) ? CLINUX_WRITABLE : 0) | ((e & (EPOLLHUP | EPOLLERR)) ? CLINUX_HANGUP : 0);
    }
    return count;
}

int clinux_eventfd(void) { ANSWER(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

void clinux_eventfd_signal(int fd) {
    uint64_t one = 1;
    // A full counter already means "signalled", so a failed write loses nothing.
    long ignored = write(fd, &one, sizeof one);
    (void)ignored;
}

void clinux_eventfd_drain(int fd) {
    uint64_t count;
    long ignored = read(fd, &count, sizeof count);
    (void)ignored;
}

static struct sockaddr_in ipv4(uint32_t address, uint16_t port) {
    struct sockaddr_in result = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
    return result;
}

static int close_with(int fd, int error) {
    close(fd);
    return -error;
}

int clinux_listen(uint32_t address, uint16_t port, int backlog) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in where = ipv4(address, port);
    if (bind(fd, (struct sockaddr *)&where, sizeof where) < 0) return close_with(fd, errno);
    if (listen(fd, backlog) < 0) return close_with(fd, errno);
    return fd;
}

int clinux_local_port(int fd) {
    struct sockaddr_in where;
    socklen_t size = sizeof where;
    if (getsockname(fd, (struct sockaddr *)&where, &size) < 0) return -errno;
    return ntohs(where.sin_port);
}

static void no_delay(int fd) {
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int clinux_accept(int listener, uint32_t *peer_address, uint16_t *peer_port) {
    struct sockaddr_in peer;
    socklen_t size = sizeof peer;
    int fd = accept4(listener, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return -errno;
    *peer_address = ntohl(peer.sin_addr.s_addr);
    *peer_port = ntohs(peer.sin_port);
    no_delay(fd);
    return fd;
}

int clinux_connect(uint32_t source, uint32_t address, uint16_t port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    no_delay(fd);
    if (source != 0) {
        int on = 1;
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        struct sockaddr_in from = ipv4(source, 0);
        if (bind(fd, (struct sockaddr *)&from, sizeof from) < 0) return close_with(fd, errno);
    }
    struct sockaddr_in where = ipv4(address, port);
    if (connect(fd, (struct sockaddr *)&where, sizeof where) < 0 && errno != EINPROGRESS) return close_with(fd, errno);
    return fd;
}

int clinux_socket_error(int fd) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) return -errno;
    return -error;
}

long clinux_receive(int fd, void *buffer, size_t capacity) { ANSWER(recv(fd, buffer, capacity, 0)); }
long clinux_send(int fd, const void *bytes, size_t count) { ANSWER(send(fd, bytes, count, MSG_NOSIGNAL)); }
int clinux_close(int fd) { return close(fd) < 0 ? -errno : 0; }
int clinux_set_send_buffer(int fd, int bytes) { ANSWER(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes)); }

int clinux_socketpair(int descriptors[2]) {
    ANSWER(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, descriptors));
}
int clinux_shutdown_write(int fd) { ANSWER(shutdown(fd, SHUT_WR)); }

static sigset_t awaited_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR1);
    return set;
}

int clinux_block_signals(void) {
    sigset_t set = awaited_signals();
    int error = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (error != 0) return -error;
    ANSWER(signalfd(-1, &set, SFD_CLOEXEC));
}

int clinux_wait_signal(int fd) { return clinux_poll_signal(fd, -1); }

int clinux_poll_signal(int fd, int timeout_ms) {
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    for (;;) {
        int ready = poll(&wanted, 1, timeout_ms);
        if (ready == 0) return 0;
        if (ready < 0 && errno != EINTR) return -errno;
        if (ready < 0) continue;
        struct signalfd_siginfo info;
        if (read(fd, &info, sizeof info) == sizeof info) return (int)info.ssi_signo;
        if (errno != EINTR) return -errno;
    }
}

void clinux_ignore_sigpipe(void) {
    signal(SIGPIPE, SIG_IGN);
    // A file at its size limit is a full disk, not a reason to die.
    signal(SIGXFSZ, SIG_IGN);
}

long clinux_raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return -errno;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return -errno;
    return (long)limit.rlim_cur;
}

static int64_t milliseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t clinux_wall_milliseconds(void) { return milliseconds(CLOCK_REALTIME); }
int64_t clinux_boot_milliseconds(void) { return milliseconds(CLOCK_BOOTTIME); }

void clinux_format_time(int64_t milliseconds, char *out, size_t capacity) {
    time_t seconds = (time_t)(milliseconds / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    char date[24];
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(out, capacity, "%s.%03dZ", date, (int)(milliseconds % 1000));
}

void clinux_cpu_microseconds(int64_t *user, int64_t *system) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    *user = (int64_t)usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec;
    *system = (int64_t)usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec;
}

int clinux_open_append(const char *path, int mode) {
    ANSWER(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, mode));
}
int clinux_open_read(const char *path) { ANSWER(open(path, O_RDONLY | O_CLOEXEC)); }
int clinux_open_create(const char *path, int mode) { ANSWER(open(path, O_RDWR | O_CREAT | O_CLOEXEC, mode)); }
int clinux_lock_exclusive(int fd) { ANSWER(flock(fd, LOCK_EX | LOCK_NB)); }

int clinux_fallocate(int fd, int64_t length) { ANSWER(fallocate(fd, 0, 0, length)); }
int clinux_fdatasync(int fd) { ANSWER(fdatasync(fd)); }

int clinux_sync_directory(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -errno;
    int result = fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return result;
}

int clinux_takes_bytes(int fd) {
    struct pollfd wanted = {.fd = fd, .events = POLLOUT};
    return poll(&wanted, 1, 0) > 0;
}

long clinux_write(int fd, const void *bytes, size_t count) { ANSWER(write(fd, bytes, count)); }
long clinux_pwrite(int fd, const void *bytes, size_t count, int64_t offset) {
    ANSWER(pwrite(fd, bytes, count, offset));
}
long clinux_pread(int fd, void *buffer, size_t count, int64_t offset) { ANSWER(pread(fd, buffer, count, offset)); }

int64_t clinux_file_size(int fd) {
    struct stat status;
    if (fstat(fd, &status) < 0) return -errno;
    return status.st_size;
}

int clinux_truncate(int fd, int64_t length) { ANSWER(ftruncate(fd, length)); }

int64_t clinux_free_bytes(const char *path) {
    struct statvfs status;
    if (statvfs(path, &status) < 0) return -errno;
    return (int64_t)(status.f_bavail * status.f_frsize);
}

struct thread_start {
    void (*body)(void *);
    void *context;
};

static void *run_thread(void *raw) {
    struct thread_start start = *(struct thread_start *)raw;
    free(raw);
    start.body(start.context);
    return NULL;
}

int clinux_thread_create(const char *name, void (*body)(void *), void *context, uint64_t *thread) {
    struct thread_start *start = malloc(sizeof *start);
    if (start == NULL) return -ENOMEM;
    start->body = body;
    start->context = context;
    pthread_t created;
    int error = pthread_create(&created, NULL, run_thread, start);
    if (error != 0) {
        free(start);
        return -error;
    }
    pthread_setname_np(created, name);
    *thread = (uint64_t)created;
    return 0;
}

int clinux_give_way(int nice) { ANSWER(setpriority(PRIO_PROCESS, (id_t)gettid(), nice)); }

int clinux_thread_join(uint64_t thread) { return -pthread_join((pthread_t)thread, NULL); }

const char *clinux_error_text(int error) { return strerrordesc_np(error < 0 ? -error : error); }

int clinux_write_back(int descriptor) {
    ANSWER(sync_file_range(
        descriptor, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
}

int clinux_open_existing(const char *path) { ANSWER(open(path, O_RDWR | O_CLOEXEC)); }
int clinux_make_directory(const char *path, int mode) { ANSWER(mkdir(path, mode)); }
int clinux_remove_file(const char *path) { ANSWER(unlink(path)); }
int clinux_rename_file(const char *from, const char *to) { ANSWER(rename(from, to)); }

int clinux_list_directory(const char *path, void (*each)(const char *name, void *context), void *context) {
    DIR *directory = opendir(path);
    if (directory == NULL) return -errno;
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(directory);
        if (entry == NULL) break;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) each(entry->d_name, context);
    }
    int result = -errno;
    closedir(directory);
    return result;
}

int clinux_process_id(void) { return (int)getpid(); }

_Noreturn void clinux_exit_now(int status) { _exit(status); }

void clinux_trim_memory(void) { malloc_trim(0); }
