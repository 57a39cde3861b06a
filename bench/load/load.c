/* The loop, and the phases of a run: bring devices in, publish, wait. */
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
#include <time.h>
#include <unistd.h>

enum { READ_BYTES = 128 * 1024, ROUND_EVENTS = 1024, STAMP_BYTES = 16 };
/* As `ferry bench` has them: how many devices log in at once, and are there at once in modes whose devices come and go. */
enum { HANDSHAKES_AT_ONCE = 256, PASSING_SOCKETS = 4096 };
static const uint64_t PATIENCE = 15000000000, SECOND = 1000000000;

struct tally tally;
struct histogram deliveries, answers;
uint64_t now;

static struct link *links;
static int poller;
static uint8_t *input, *payload;
static enum plan plan;
static uint32_t settled, handshakes, open_sockets, ready_publishers, next_publisher;
static uint64_t draw = 0x9e3779b97f4a7c15;
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

static void flush(struct link *link) {
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
    flush(link);
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
    if (link->output.length > 0) flush(link);
}

/* One round: what came, a line each second, and an end to waiting for what will not come. */
static void step(int milliseconds) {
    static struct epoll_event events[ROUND_EVENTS];
    int count = epoll_wait(poller, events, ROUND_EVENTS, milliseconds);
    now = clock_nanoseconds();
    for (int index = 0; index < count; index++) {
        struct link *link = events[index].data.ptr;
        if (link->descriptor >= 0 && events[index].events & EPOLLOUT) flush(link);
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

static void begin(const char *what) {
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
    payload = malloc(options.payload_bytes);
    if (poller < 0 || links == NULL || input == NULL || payload == NULL) fail("out of memory or descriptors");
    memset(payload, 'x', options.payload_bytes);
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
    begin(what);
    plan = wanted;
    settled = 0;
    uint32_t next = from;
    while (settled < to - from) {
        while (next < to && handshakes < HANDSHAKES_AT_ONCE && (plan == STAY || open_sockets < PASSING_SOCKETS)) {
            connect_link(&links[next++], options.device_port);
        }
        step(20);
    }
    if (tally.failed == to - from) fail("no device could attach");
}

void load_open_publishers(void) {
    begin("opening publishers");
    for (uint32_t index = 0; index < options.connections; index++) {
        connect_link(&links[options.devices + index], options.publisher_port);
    }
    while (ready_publishers < options.connections) step(20);
}

static struct link *free_publisher(void) {
    for (uint32_t tried = 0; tried < options.connections; tried++) {
        struct link *link = &links[options.devices + next_publisher];
        if (link->unanswered < options.pipeline) return link;
        next_publisher = (next_publisher + 1) % options.connections;
    }
    return NULL;
}

static uint32_t any_device(void) {
    draw ^= draw << 13;
    draw ^= draw >> 7;
    draw ^= draw << 17;
    return (uint32_t)(draw % options.devices);
}

/* Every device once before any has its second; not neighbours one after the other. */
static uint32_t in_turn(uint64_t number) {
    uint64_t stride = options.devices % 7919 == 0 ? 7907 : 7919;
    return (uint32_t)(number % options.devices * stride % options.devices);
}

static uint64_t unanswered(void) { return tally.published - tally.accepted - tally.refused; }

/* A system may deliver before it answers: what is on its way is counted at the device. */
static uint64_t outstanding(void) {
    uint64_t ended = tally.delivered + tally.refused;
    return tally.published > ended ? tally.published - ended : 0;
}

static uint64_t due_time(uint64_t number, uint64_t start) {
    return options.rate == 0 ? now : start + (uint64_t)((double)number * 1e9 / options.rate);
}

/* What is due and what the limits allow. One connection is filled before the next is taken. */
static void publish_due(uint64_t first, uint64_t limit, uint64_t start, bool to_all) {
    struct link *used = NULL;
    while (tally.published - first < limit) {
        uint64_t number = tally.published - first, due = due_time(number, start);
        if (due > now) break;
        if (!to_all && options.rate == 0 && outstanding() >= options.outstanding) break;
        struct link *link = free_publisher();
        if (link == NULL) break;
        if (used != NULL && used != link) flush(used);
        used = link;
        for (int position = 0; position < STAMP_BYTES; position++) {
            payload[position] = (uint8_t)"0123456789abcdef"[due >> (60 - 4 * position) & 15];
        }
        options.driver->publish(link, to_all ? in_turn(number) : any_device(), payload, options.payload_bytes);
        link->due[(link->due_head + link->unanswered) % options.pipeline] = due;
        link->unanswered++;
        tally.published++;
    }
    if (used == NULL) return;
    flush(used);
    next_publisher = (next_publisher + 1) % options.connections;
}

/* The poller's steps are milliseconds: closer due times are reached by naps, to which the kernel adds its slack. */
static int pause_until(uint64_t due) {
    if (due <= now) return 1;
    if (due - now >= 2000000) return (int)((due - now) / 1000000 - 1);
    struct timespec nap = {.tv_nsec = due - now < 50000 ? (long)(due - now) : 50000};
    nanosleep(&nap, NULL);
    return 0;
}

struct window load_publish(const char *what, uint64_t limit, uint32_t seconds, bool to_all) {
    begin(what);
    histogram_reset(&deliveries);
    histogram_reset(&answers);
    struct window window = window_begin();
    uint64_t start = window.start, first = tally.published;
    uint64_t end = seconds == 0 ? UINT64_MAX : start + seconds * SECOND;
    now = start;
    while (now < end) {
        publish_due(first, limit, start, to_all);
        if (tally.published - first >= limit && unanswered() == 0 && (to_all || outstanding() == 0)) break;
        bool is_paced = options.rate > 0 && tally.published - first < limit;
        step(is_paced ? pause_until(due_time(tally.published - first, start)) : 20);
    }
    window_end(&window);
    return window;
}

void load_drain(void) {
    begin("waiting for the rest");
    uint64_t end = now + 10 * SECOND;
    while (now < end && (unanswered() > 0 || outstanding() > 0)) step(20);
}

void load_rest(double seconds, const char *what) {
    begin(what);
    uint64_t end = now + (uint64_t)(seconds * 1e9);
    while (now < end) {
        last_move = now;
        step(50);
    }
}
