/*
 * The floor: the least that a relay can do which keeps the gateway's promise. One thread, one epoll. What publishers
 * sent in one round is appended to a preallocated log and synced as one batch; only then is it sent to its devices and
 * acknowledged to its publishers. What is for a device that is away stays in memory until the device comes.
 *
 * It has no protocol to speak of: no proofs, resume, repeats, limits, expiry, recovery or reports.
 * Its log is written in a circle and never read. It is a measure, not a product.
 *
 * Every frame begins with seven bytes: type, number (4 bytes), length of what follows (2 bytes), little-endian.
 *   device:     L device        is answered  W      logged in
 *               M seq payload   comes, and is answered by  A seq  (everything up to it)
 *               B               is answered by the end of the connection
 *   publisher:  P device payload  is answered by  A count  (how many of this connection's have been accepted in all)
 *               * 0 payload       the same, for every device that is there
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD = 7, READ_BYTES = 256 * 1024, FRAME_MOST = HEAD + 65535, ROUND_EVENTS = 1024 };
/* A round takes no more from publishers once its batch has this size; what is left is read in the next. */
enum { BATCH_BYTES = 1024 * 1024 };

struct bytes {
    uint8_t *data;
    size_t length, room;
};

enum kind { FREE, DEVICE_LISTENER, PUBLISHER_LISTENER, DEVICE, PUBLISHER };

/* By descriptor. */
struct connection {
    enum kind kind;
    bool is_waiting_to_write, is_dirty;
    uint32_t device;   /* of a device that has logged in; else NOBODY */
    uint32_t accepted; /* of a publisher */
    struct bytes partial; /* of a frame that is not whole yet */
    struct bytes output;  /* of a publisher, and of a device before its login */
};

struct device {
    int descriptor; /* -1 while it is away */
    uint32_t seq, acknowledged;
    bool is_dirty;
    struct bytes output; /* while it is away: what is kept for it */
};

static const uint32_t NOBODY = UINT32_MAX;
static struct connection *connections;
static size_t connection_count;
static struct device *devices;
static uint32_t device_count = 1000000;
static int poller, log_file;
static size_t log_size = 64 * 1024 * 1024, log_end;
static struct bytes batch;
static uint8_t *input; /* one frame that is not whole, and one read */
static uint32_t *dirty_devices;
static size_t dirty_device_count;
static int *dirty_publishers;
static size_t dirty_publisher_count;

static void fail(const char *what) {
    fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void *have(void *memory) {
    if (memory == NULL) fail("memory");
    return memory;
}

static void append(struct bytes *to, const void *data, size_t count) {
    if (to->length + count > to->room) {
        size_t room = to->room == 0 ? 512 : to->room;
        while (room < to->length + count) room *= 2;
        to->data = have(realloc(to->data, room));
        to->room = room;
    }
    memcpy(to->data + to->length, data, count);
    to->length += count;
}

static void empty(struct bytes *bytes) {
    free(bytes->data);
    *bytes = (struct bytes){0};
}

static void head(uint8_t *to, char type, uint32_t number, uint16_t length) {
    to[0] = (uint8_t)type;
    memcpy(to + 1, &number, 4);
    memcpy(to + 5, &length, 2);
}

static void watch(int descriptor, int operation, uint32_t events) {
    struct epoll_event event = {.events = events, .data.fd = descriptor};
    if (epoll_ctl(poller, operation, descriptor, &event) != 0) fail("epoll_ctl");
}

static void drop(int descriptor) {
    struct connection *connection = &connections[descriptor];
    if (connection->kind == DEVICE && connection->device != NOBODY) {
        struct device *device = &devices[connection->device];
        device->descriptor = -1;
        // Part of it has left: without a protocol to resume by, the rest is of no use to the next connection.
        if (connection->is_waiting_to_write) empty(&device->output);
    }
    empty(&connection->partial);
    empty(&connection->output);
    connection->kind = FREE;
    close(descriptor);
}

/* Sends what there is; what the socket does not take waits until it is writable. False: the connection has ended. */
static bool flush(int descriptor, struct bytes *output) {
    struct connection *connection = &connections[descriptor];
    size_t sent = 0;
    while (sent < output->length) {
        ssize_t count = send(descriptor, output->data + sent, output->length - sent, MSG_NOSIGNAL);
        if (count > 0) {
            sent += (size_t)count;
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            return false;
        }
    }
    bool is_full = sent < output->length;
    if (is_full) {
        memmove(output->data, output->data + sent, output->length - sent);
        output->length -= sent;
    } else {
        empty(output);
    }
    if (is_full != connection->is_waiting_to_write) {
        connection->is_waiting_to_write = is_full;
        watch(descriptor, EPOLL_CTL_MOD, is_full ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
    return true;
}

static struct bytes *output_of(int descriptor) {
    struct connection *connection = &connections[descriptor];
    bool is_known = connection->kind == DEVICE && connection->device != NOBODY;
    return is_known ? &devices[connection->device].output : &connection->output;
}

static void mark_dirty(uint32_t device) {
    if (devices[device].is_dirty || devices[device].descriptor < 0) return;
    devices[device].is_dirty = true;
    dirty_devices[dirty_device_count++] = device;
}

/* One frame of a device; false: it has ended, or does not make sense. */
static bool device_frame(int descriptor, char type, uint32_t number, uint16_t length) {
    struct connection *connection = &connections[descriptor];
    if (length != 0) return false;
    if (type == 'L' && connection->device == NOBODY && number < device_count) {
        if (devices[number].descriptor >= 0) drop(devices[number].descriptor);
        uint8_t welcome[HEAD];
        head(welcome, 'W', 0, 0);
        if (send(descriptor, welcome, HEAD, MSG_NOSIGNAL) != HEAD) return false;
        connection->device = number;
        devices[number].descriptor = descriptor;
        if (devices[number].output.length > 0) mark_dirty(number);
        return true;
    }
    if (type == 'A' && connection->device != NOBODY) {
        struct device *device = &devices[connection->device];
        if (number > device->seq) return false;
        device->acknowledged = number;
        return true;
    }
    return false;
}

/* Takes whole frames off the front and says how many bytes they had; -1: the connection is to end. */
static ssize_t frames(int descriptor, const uint8_t *data, size_t count) {
    struct connection *connection = &connections[descriptor];
    size_t used = 0;
    while (count - used >= HEAD) {
        uint32_t number;
        uint16_t length;
        memcpy(&number, data + used + 1, 4);
        memcpy(&length, data + used + 5, 2);
        size_t size = (size_t)HEAD + length;
        if (count - used < size) break;
        if (connection->kind == PUBLISHER) {
            if ((data[used] != 'P' && data[used] != '*') || number >= device_count) return -1;
            append(&batch, data + used, size);
            connection->accepted++;
            if (!connection->is_dirty) {
                connection->is_dirty = true;
                dirty_publishers[dirty_publisher_count++] = descriptor;
            }
        } else if (!device_frame(descriptor, (char)data[used], number, length)) {
            return -1;
        }
        used += size;
    }
    return (ssize_t)used;
}

static void readable(int descriptor) {
    struct connection *connection = &connections[descriptor];
    if (connection->kind == PUBLISHER && batch.length >= BATCH_BYTES) return;
    size_t kept = connection->partial.length;
    ssize_t count = recv(descriptor, input + kept, READ_BYTES, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) {
        drop(descriptor);
        return;
    }
    if (kept > 0) memcpy(input, connection->partial.data, kept);
    size_t whole = kept + (size_t)count;
    ssize_t used = frames(descriptor, input, whole);
    if (used < 0) {
        drop(descriptor);
        return;
    }
    connection->partial.length = 0;
    if ((size_t)used < whole) append(&connection->partial, input + used, whole - (size_t)used);
}

static void welcome(int listener, enum kind kind) {
    for (;;) {
        int descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (descriptor < 0) return;
        if ((size_t)descriptor >= connection_count) {
            close(descriptor);
            return;
        }
        int yes = 1;
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        connections[descriptor] = (struct connection){.kind = kind, .device = NOBODY};
        watch(descriptor, EPOLL_CTL_ADD, EPOLLIN);
    }
}

/* The promise: on disk first, all of the round at once. */
static void commit(void) {
    if (batch.length == 0) return;
    if (log_end + batch.length > log_size) log_end = 0;
    size_t written = 0;
    while (written < batch.length) {
        ssize_t count = pwrite(log_file, batch.data + written, batch.length - written, (off_t)(log_end + written));
        if (count <= 0) fail("writing the log");
        written += (size_t)count;
    }
    if (fdatasync(log_file) != 0) fail("syncing the log");
    log_end += batch.length;
}

static void hand_to(uint32_t number, const uint8_t *payload, uint16_t length) {
    struct device *device = &devices[number];
    uint8_t frame[HEAD];
    head(frame, 'M', ++device->seq, length);
    append(&device->output, frame, HEAD);
    append(&device->output, payload, length);
    mark_dirty(number);
}

/* What has been synced goes to its devices, or waits for them; its publishers hear of it. */
static void hand_out(void) {
    for (size_t at = 0; at < batch.length;) {
        uint32_t number;
        uint16_t length;
        memcpy(&number, batch.data + at + 1, 4);
        memcpy(&length, batch.data + at + 5, 2);
        const uint8_t *payload = batch.data + at + HEAD;
        if (batch.data[at] == 'P') {
            hand_to(number, payload, length);
        } else {
            for (uint32_t each = 0; each < device_count; each++) {
                if (devices[each].descriptor >= 0) hand_to(each, payload, length);
            }
        }
        at += (size_t)HEAD + length;
    }
    batch.length = 0;
    for (size_t index = 0; index < dirty_publisher_count; index++) {
        int descriptor = dirty_publishers[index];
        struct connection *connection = &connections[descriptor];
        if (connection->kind != PUBLISHER || !connection->is_dirty) continue;
        connection->is_dirty = false;
        uint8_t answer[HEAD];
        head(answer, 'A', connection->accepted, 0);
        append(&connection->output, answer, HEAD);
        if (!flush(descriptor, &connection->output)) drop(descriptor);
    }
    dirty_publisher_count = 0;
    for (size_t index = 0; index < dirty_device_count; index++) {
        struct device *device = &devices[dirty_devices[index]];
        device->is_dirty = false;
        if (device->descriptor >= 0 && !flush(device->descriptor, &device->output)) drop(device->descriptor);
    }
    dirty_device_count = 0;
}

static int listen_at(enum kind kind, uint16_t *port) {
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&address, size) != 0 || listen(descriptor, 4096) != 0 ||
        getsockname(descriptor, (struct sockaddr *)&address, &size) != 0) {
        fail("listening");
    }
    connections[descriptor].kind = kind;
    watch(descriptor, EPOLL_CTL_ADD, EPOLLIN);
    *port = ntohs(address.sin_port);
    return descriptor;
}

/* Written once from end to end, so that a batch changes only data and no table of the file system. */
static void open_log(const char *path) {
    log_file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (log_file < 0) fail(path);
    static uint8_t zeros[1024 * 1024];
    for (size_t at = 0; at < log_size; at += sizeof zeros) {
        if (pwrite(log_file, zeros, sizeof zeros, (off_t)at) != (ssize_t)sizeof zeros) fail(path);
    }
    if (fsync(log_file) != 0) fail(path);
}

int main(int count, char **arguments) {
    if (count < 2 || count > 4) {
        fputs("usage: floor LOG-FILE [DEVICES [LOG-MIB]]\n", stderr);
        return 2;
    }
    if (count > 2) device_count = (uint32_t)strtoul(arguments[2], NULL, 10);
    if (count > 3) log_size = (size_t)strtoul(arguments[3], NULL, 10) * 1024 * 1024;
    if (device_count == 0 || log_size < 4 * BATCH_BYTES) {
        fputs("floor: needs a device and 4 MiB of log\n", stderr);
        return 2;
    }
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) fail("the limit of descriptors");
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    connection_count = limit.rlim_cur < 1048576 ? (size_t)limit.rlim_cur : 1048576;
    connections = have(calloc(connection_count, sizeof *connections));
    devices = have(calloc(device_count, sizeof *devices));
    for (uint32_t index = 0; index < device_count; index++) devices[index].descriptor = -1;
    dirty_devices = have(calloc(device_count, sizeof *dirty_devices));
    dirty_publishers = have(calloc(connection_count, sizeof *dirty_publishers));
    input = have(malloc(READ_BYTES + FRAME_MOST));
    open_log(arguments[1]);

    poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0) fail("epoll_create1");
    uint16_t device_port, publisher_port;
    listen_at(DEVICE_LISTENER, &device_port);
    listen_at(PUBLISHER_LISTENER, &publisher_port);
    printf("{\"pid\":%d,\"device\":\"127.0.0.1:%u\",\"publisher\":\"127.0.0.1:%u\"}\n", (int)getpid(), device_port,
           publisher_port);
    fflush(stdout);

    static struct epoll_event events[ROUND_EVENTS];
    for (;;) {
        int ready = epoll_wait(poller, events, ROUND_EVENTS, -1);
        if (ready < 0 && errno != EINTR) fail("epoll_wait");
        for (int index = 0; index < ready; index++) {
            int descriptor = events[index].data.fd;
            enum kind kind = connections[descriptor].kind;
            if (kind == DEVICE_LISTENER) {
                welcome(descriptor, DEVICE);
            } else if (kind == PUBLISHER_LISTENER) {
                welcome(descriptor, PUBLISHER);
            } else if (kind != FREE) {
                bool is_well = !(events[index].events & EPOLLOUT) || flush(descriptor, output_of(descriptor));
                if (!is_well) drop(descriptor);
                else if (events[index].events & ~(uint32_t)EPOLLOUT) readable(descriptor);
            }
        }
        commit();
        hand_out();
    }
}
