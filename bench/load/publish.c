/* What is published, to whom, and when. */
#define _GNU_SOURCE
#include "load.h"

#include <string.h>
#include <time.h>

static uint32_t next_publisher;
static uint64_t draw = 0x9e3779b97f4a7c15;

static struct link *free_publisher(void) {
    for (uint32_t tried = 0; tried < options.connections; tried++) {
        struct link *link = load_publisher(next_publisher);
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

static void publish_one(struct link *link, uint32_t device, uint64_t due) {
    static uint8_t payload[UINT16_MAX];
    if (payload[STAMP_BYTES] == 0) memset(payload, 'x', sizeof payload);
    for (int position = 0; position < STAMP_BYTES; position++) {
        payload[position] = (uint8_t)"0123456789abcdef"[due >> (60 - 4 * position) & 15];
    }
    options.driver->publish(link, device, payload, options.payload_bytes);
    link->due[(link->due_head + link->unanswered) % options.pipeline] = due;
    link->unanswered++;
    tally.published++;
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
        if (used != NULL && used != link) load_flush(used);
        used = link;
        publish_one(link, to_all ? in_turn(number) : any_device(), due);
    }
    if (used == NULL) return;
    load_flush(used);
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
    load_begin(what);
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
        load_step(is_paced ? pause_until(due_time(tally.published - first, start)) : 20);
    }
    window_end(&window);
    return window;
}

void load_drain(void) {
    load_begin("waiting for the rest");
    uint64_t end = now + 10 * SECOND;
    while (now < end && (unanswered() > 0 || outstanding() > 0)) load_step(20);
}

/* One message to all that are there, and the next when the last device has it. */
struct window load_broadcast(uint32_t messages) {
    load_begin("broadcasting");
    histogram_reset(&deliveries);
    histogram_reset(&answers);
    struct window window = window_begin();
    for (uint32_t sent = 1; sent <= messages; sent++) {
        publish_one(load_publisher(0), 0, clock_nanoseconds());
        load_flush(load_publisher(0));
        while (tally.delivered < (uint64_t)sent * options.devices || unanswered() > 0) load_step(20);
    }
    window_end(&window);
    return window;
}
