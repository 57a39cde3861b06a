// System calls in the form that Swift wants: no errno, no variadics, no packed structs, no GNU-only declarations.
// Every function answers a result >= 0, or -errno.
#ifndef CLINUX_H
#define CLINUX_H

#include <stddef.h>
#include <stdint.h>

enum { CLINUX_READABLE = 1, CLINUX_WRITABLE = 2, CLINUX_HANGUP = 4 };

struct clinux_event {
    uint64_t token;
    uint32_t flags;
};

int clinux_epoll_create(void);
// Interest is level-triggered; `flags` is a set of CLINUX_READABLE and CLINUX_WRITABLE.
int clinux_epoll_add(int epoll, int fd, uint32_t flags, uint64_t token);
// The same for a descriptor that several instances watch: one event wakes one of them.
int clinux_epoll_add_exclusive(int epoll, int fd, uint64_t token);
int clinux_epoll_modify(int epoll, int fd, uint32_t flags, uint64_t token);
int clinux_epoll_remove(int epoll, int fd);
// Waits at most `timeout_ms` (-1 for ever). EINTR counts as no event.
int clinux_epoll_wait(int epoll, struct clinux_event *events, int capacity, int timeout_ms);

int clinux_eventfd(void);
void clinux_eventfd_signal(int fd);
void clinux_eventfd_drain(int fd);

// A non-blocking, close-on-exec IPv4 listener with address (and port, for several shards) reuse.
int clinux_listen(uint32_t address, uint16_t port, int backlog);
int clinux_local_port(int fd);
// Accepts one connection, non-blocking and close-on-exec, without delay for small segments.
int clinux_accept(int listener, uint32_t *peer_address, uint16_t *peer_port);
// Starts a connection, non-blocking; the answer is the socket even while the connection is under way.
int clinux_connect(uint32_t source, uint32_t address, uint16_t port);
int clinux_socket_error(int fd);
// Two non-blocking, close-on-exec stream sockets that are connected with each other.
int clinux_socketpair(int descriptors[2]);
// The kernel doubles `bytes` and does not go below a size of its own.
int clinux_set_send_buffer(int fd, int bytes);

long clinux_receive(int fd, void *buffer, size_t capacity);
long clinux_send(int fd, const void *bytes, size_t count);
int clinux_close(int fd);
int clinux_shutdown_write(int fd);

// Blocks TERM and INT for the process and answers a descriptor that reads them.
int clinux_block_signals(void);
// Waits for one of the blocked signals; answers its number.
int clinux_wait_signal(int fd);
// The same, for at most timeout_ms; 0 when none came.
int clinux_poll_signal(int fd, int timeout_ms);
// A peer or a file limit must not end the process by a signal.
void clinux_ignore_sigpipe(void);

// Raises the soft descriptor limit to the hard one; answers what it is then.
long clinux_raise_descriptor_limit(void);

// Gives memory that was freed back to the system; takes milliseconds for each freed gigabyte.
void clinux_trim_memory(void);

// Milliseconds: wall clock, and the clock that also counts while the machine sleeps.
int64_t clinux_wall_milliseconds(void);
int64_t clinux_boot_milliseconds(void);
// RFC 3339 text of a wall clock time, UTC.
void clinux_format_time(int64_t milliseconds, char *out, size_t capacity);
// CPU time of the process, user and system, in microseconds.
void clinux_cpu_microseconds(int64_t *user, int64_t *system);

int clinux_open_append(const char *path, int mode);
int clinux_open_read(const char *path);
int clinux_open_create(const char *path, int mode);
int clinux_lock_exclusive(int fd);
int clinux_fallocate(int fd, int64_t length);
int clinux_fdatasync(int fd);
int clinux_sync_directory(const char *path);
/// Whether a write of up to 4096 bytes (PIPE_BUF) would not wait. True for broken ones too.
int clinux_takes_bytes(int fd);
long clinux_write(int fd, const void *bytes, size_t count);
long clinux_pwrite(int fd, const void *bytes, size_t count, int64_t offset);
long clinux_pread(int fd, void *buffer, size_t count, int64_t offset);
int64_t clinux_file_size(int fd);
int clinux_truncate(int fd, int64_t length);
// Bytes of the file system around `path` that an unprivileged process may still use.
int64_t clinux_free_bytes(const char *path);

int clinux_thread_create(const char *name, void (*body)(void *), void *context, uint64_t *thread);
int clinux_thread_join(uint64_t thread);
// The calling thread alone gets this nice value, 0...19.
int clinux_give_way(int nice);

const char *clinux_error_text(int error);

// Returns when what was written has been handed to the disk, which may still hold it in its cache.
int clinux_write_back(int descriptor);
int clinux_open_existing(const char *path);
int clinux_make_directory(const char *path, int mode);
int clinux_remove_file(const char *path);
int clinux_rename_file(const char *from, const char *to);
// Calls `each` with every name in the directory except "." and ".."; the name lives until `each` returns.
int clinux_list_directory(const char *path, void (*each)(const char *name, void *context), void *context);
int clinux_process_id(void);
// Ends the process at once: nothing that waits for a disk is waited for.
_Noreturn void clinux_exit_now(int status);

#endif
