/* Connections, the loop, and bringing devices in. */
#define _GNU_SOURCE
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 128 * 1024, ROUND_EVENTS = 1024 };
/* As `ferry bench` has them: how many devices log in at once, and are there at once in modes whose devices come and go. */
enum { HANDSHAKES_AT_ONCE = 256, PASSING_SOCKETS = 4096 };
static const uint64_t PATIENCE = 15 * SECOND;

struct tally tally;
struct histogram deliveries, answers;
uint64_t now;

static struct link *links;
static int poller;
static uint8_t *input;
static enum plan plan;
static uint32_t settled, handshakes, open_sockets, ready_publishers;
static const char *doing = "starting";
static struct tally reported;
static uint64_t last_move, last_moves, next_second;

/* A device or publisher is lost: no measurement, but the run goes on to tell how many. */
static void lose(struct link *link, const char *why) {
    static int told;
    if (told++ < 5) fprintf(stderr, "load: %s %u: %s\n", link->is_publisher ? "publisher" : "device", link->index, why);
    if (link->is_publisher) fail("a publisher was lost");
    if (link->descriptor >= 0) {
        close(link->descriptor);
        open_sockets--;
    }
    if (link->phase == COMING) handshakes--;
    link->descriptor = -1;
    link->phase = AWAY;
    tally.failed++;
    empty(&link->partial);
    empty(&link->output);
    if (!link->is_settled) settled++;
    link->is_settled = true;
}

static void watch(struct link *link, int operation, bool writing) {
    struct epoll_event event = {.events = writing ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = link};
    if (epoll_ctl(poller, operation, link->descriptor, &event) != 0) fail("epoll_ctl: %s", strerror(errno));
    link->is_waiting_to_write = writing;
}

void load_flush(struct link *link) {
    size_t sent = 0;
    while (sent < link->output.length) {
        ssize_t count = send(link->descriptor, link->output.data + sent, link->output.length - sent, MSG_NOSIGNAL);
        if (count > 0) {
            sent += (size_t)count;
        } else if (errno == EAGAIN || errno == ENOTCONN) {
            break;
        } else if (errno != EINTR) {
            lose(link, strerror(errno));
            return;
        }
    }
    bool is_full = sent < link->output.length;
    if (is_full) {
        memmove(link->output.data, link->output.data + sent, link->output.length - sent);
        link->output.length -= sent;
    } else if (link->is_publisher) {
        link->output.length = 0;
    } else {
        empty(&link->output);
    }
    if (is_full != link->is_waiting_to_write) watch(link, EPOLL_CTL_MOD, is_full);
}

static void connect_link(struct link *link, uint16_t port) {
    link->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (link->descriptor < 0) fail("socket: %s", strerror(errno));
    open_sockets++;
    int yes = 1;
    setsockopt(link->descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(link->descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
    // Several addresses, as one has too few ports for many connections to one place.
    uint32_t addresses = 8 + options.devices / 10000;
    if (addresses > 200) addresses = 200;
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + link->index % addresses)};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(link->descriptor, (struct sockaddr *)&from, sizeof from) != 0 ||
        (connect(link->descriptor, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS)) {
        fail("connect to port %u: %s (does it run?)", port, strerror(errno));
    }
    link->phase = COMING;
    link->received = 0;
    link->is_settled = false;
    watch(link, EPOLL_CTL_ADD, false);
    if (link->is_publisher) {
        options.driver->publisher_greet(link);
    } else {
        handshakes++;
        options.driver->greet(link);
    }
    load_flush(link);
}

static void settle(struct link *link) {
    if (!link->is_settled) settled++;
    link->is_settled = true;
}

void load_welcomed(struct link *link) {
    if (link->phase != COMING) return;
    link->phase = HERE;
    if (link->is_publisher) {
        ready_publishers++;
        return;
    }
    handshakes--;
    tally.welcomed++;
    link->is_registered = true;
    if (plan == STAY) settle(link);
    if (plan == LEAVE) {
        link->phase = LEAVING;
        options.driver->leave(link);
    }
}

uint32_t load_channel(const struct link *device) { return options.is_broadcast ? 0 : device->index; }

bool load_is_done(const struct link *device) { return plan == COLLECT && device->received >= options.messages; }

static uint64_t stamp(const uint8_t *text, size_t count) {
    uint64_t value = 0;
    if (count != options.payload_bytes) return 0;
    for (int position = 0; position < STAMP_BYTES; position++) {
        uint8_t digit = text[position];
        value = value << 4 | (uint64_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    return value;
}

void load_delivered(struct link *device, const uint8_t *data, size_t count) {
    uint64_t due = stamp(data, count), received = clock_nanoseconds();
    if (due == 0) fail("device %u got a payload that nobody sent", device->index);
    device->received++;
    tally.delivered++;
    histogram_record(&deliveries, received > due ? received - due : 0);
}

void load_accepted(struct link *publisher, uint32_t count) {
    if (count > publisher->unanswered) fail("an answer without a question");
    uint64_t received = clock_nanoseconds();
    for (uint32_t index = 0; index < count; index++) {
        uint64_t due = publisher->due[publisher->due_head];
        publisher->due_head = (publisher->due_head + 1) % options.pipeline;
        histogram_record(&answers, received > due ? received - due : 0);
    }
    publisher->unanswered -= count;
    tally.accepted += count;
}

void load_refused(struct link *publisher) {
    load_accepted(publisher, 1);
    tally.accepted--;
    tally.refused++;
}

static void readable(struct link *link) {
    size_t kept = link->partial.length;
    if (kept > READ_BYTES) fail("a message that is not whole has %zu bytes", kept);
    ssize_t count = recv(link->descriptor, input + kept, READ_BYTES, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) {
        if (link->phase != LEAVING) {
            lose(link, count == 0 ? "the other side ended the connection" : strerror(errno));
            return;
        }
        close(link->descriptor);
        open_sockets--;
        tally.left++;
        link->descriptor = -1;
        link->phase = AWAY;
        empty(&link->partial);
        empty(&link->output);
        settle(link);
        return;
    }
    if (kept > 0) memcpy(input, link->partial.data, kept);
    size_t whole = kept + (size_t)count;
    const struct driver *driver = options.driver;
    ssize_t used = link->is_publisher ? driver->publisher_read(link, input, whole) : driver->device_read(link, input, whole);
    if (used < 0) {
        lose(link, "what came makes no sense");
        return;
    }
    if ((size_t)used < whole) {
        link->partial.length = 0;
        append(&link->partial, input + used, whole - (size_t)used);
    } else if (kept > 0) {
        empty(&link->partial);
    }
    if (!link->is_publisher && link->phase == HERE && load_is_done(link)) {
        link->phase = LEAVING;
        driver->leave(link);
    }
    if (link->output.length > 0) load_flush(link);
}

/* One round: what came, a line each second, and an end to waiting for what will not come. */
void load_step(int milliseconds) {
    static struct epoll_event events[ROUND_EVENTS];
    int count = epoll_wait(poller, events, ROUND_EVENTS, milliseconds);
    now = clock_nanoseconds();
    for (int index = 0; index < count; index++) {
        struct link *link = events[index].data.ptr;
        if (link->descriptor >= 0 && events[index].events & EPOLLOUT) load_flush(link);
        if (link->descriptor >= 0 && events[index].events & ~(uint32_t)EPOLLOUT) readable(link);
    }
    if (now >= next_second) {
        if (next_second > 0) progress(doing, &reported, (double)(now - next_second + SECOND) / 1e9);
        reported = tally;
        next_second = now + SECOND;
    }
    uint64_t moves = tally.welcomed + tally.left + tally.accepted + tally.delivered + tally.refused + ready_publishers;
    if (moves != last_moves) {
        last_moves = moves;
        last_move = now;
    } else if (now > last_move + PATIENCE) {
        fail("nothing has come for 15 seconds while %s: %llu published, %llu accepted, %llu delivered", doing,
             (unsigned long long)tally.published, (unsigned long long)tally.accepted,
             (unsigned long long)tally.delivered);
    }
}

void load_begin(const char *what) {
    doing = what;
    now = last_move = clock_nanoseconds();
}

void load_open(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    poller = epoll_create1(EPOLL_CLOEXEC);
    links = calloc((size_t)options.devices + options.connections, sizeof *links);
    input = malloc(2 * READ_BYTES);
    if (poller < 0 || links == NULL || input == NULL) fail("out of memory or descriptors");
    for (uint32_t index = 0; index < options.devices + options.connections; index++) {
        struct link *link = &links[index];
        link->descriptor = -1;
        link->is_publisher = index >= options.devices;
        link->index = link->is_publisher ? index - options.devices : index;
        if (!link->is_publisher) continue;
        link->due = calloc(options.pipeline, sizeof *link->due);
        if (link->due == NULL) fail("out of memory");
    }
}

/* Brings the devices in and leaves each as the plan says. */
void load_attach(uint32_t from, uint32_t to, enum plan wanted, const char *what) {
    load_begin(what);
    plan = wanted;
    settled = 0;
    uint32_t next = from;
    while (settled < to - from) {
        while (next < to && handshakes < HANDSHAKES_AT_ONCE && (plan == STAY || open_sockets < PASSING_SOCKETS)) {
            connect_link(&links[next++], options.device_port);
        }
        load_step(20);
    }
    if (tally.failed == to - from) fail("no device could attach");
}

void load_open_publishers(void) {
    load_begin("opening publishers");
    for (uint32_t index = 0; index < options.connections; index++) {
        connect_link(load_publisher(index), options.publisher_port);
    }
    while (ready_publishers < options.connections) load_step(20);
}

struct link *load_publisher(uint32_t index) { return &links[options.devices + index]; }

void load_rest(double seconds, const char *what) {
    load_begin(what);
    uint64_t end = now + (uint64_t)(seconds * 1e9);
    while (now < end) {
        last_move = now;
        load_step(50);
    }
}
