/*
 * Redis in two ways. Pub/sub: a channel for each device, nothing kept, no acknowledgement. Streams: a stream and a
 * consumer group for each device; a device reads what is new, and acknowledges by XACK and XDEL. With `appendfsync
 * always` the server answers and delivers only what is on disk, as the gateway does.
 */
#include "load.h"

#include <stdlib.h>
#include <string.h>

struct text {
    const uint8_t *data;
    size_t count;
};

enum { TEXTS_MOST = 3 * 64 + 8, DEPTH_MOST = 6 };

/* The length of the line at `data` with its end, or 0; its number. */
static size_t number_line(const uint8_t *data, size_t count, long *value) {
    for (size_t at = 1; at + 1 < count && at < 4096; at++) {
        if (data[at] != '\r' || data[at + 1] != '\n') continue;
        *value = strtol((const char *)data + 1, NULL, 10);
        return at + 2;
    }
    return 0;
}

/* The size of the whole value at the front (0: not whole, -1: malformed). Its strings are collected, however deep. */
static ssize_t whole(const uint8_t *data, size_t count, struct text *texts, size_t *found, int depth) {
    long value = 0;
    if (count < 3) return 0;
    size_t used = number_line(data, count, &value);
    if (used == 0) return 0;
    switch (data[0]) {
    case '+':
    case '-':
    case ':': return (ssize_t)used;
    case '$':
        if (value < 0) return (ssize_t)used;
        if (count < used + (size_t)value + 2) return 0;
        if (*found < TEXTS_MOST) texts[(*found)++] = (struct text){data + used, (size_t)value};
        return (ssize_t)(used + (size_t)value + 2);
    case '*':
        if (depth == DEPTH_MOST) return -1;
        for (long item = 0; item < value; item++) {
            ssize_t size = whole(data + used, count - used, texts, found, depth + 1);
            if (size <= 0) return size;
            used += (size_t)size;
        }
        return (ssize_t)used;
    default: return -1;
    }
}

static bool is_text(struct text text, const char *value) {
    return text.count == strlen(value) && memcmp(text.data, value, text.count) == 0;
}

static void publisher_greet(struct link *publisher) { append_text(&publisher->output, "PING\r\n"); }

/* Pub/sub answers the number of receivers, streams the name of the entry. */
static ssize_t publisher_read(struct link *publisher, const uint8_t *data, size_t count) {
    struct text texts[TEXTS_MOST];
    size_t used = 0, found = 0;
    ssize_t size;
    uint32_t accepted = 0;
    while ((size = whole(data + used, count - used, texts, &found, 0)) > 0) {
        if (data[used] == '+') load_welcomed(publisher);
        else if (data[used] == '-' || (data[used] == ':' && data[used + 1] == '0')) load_refused(publisher);
        else accepted++;
        used += (size_t)size;
        found = 0;
    }
    load_accepted(publisher, accepted);
    return size < 0 ? -1 : (ssize_t)used;
}

/* Pub/sub */

static void subscribe(struct link *device) {
    append_text(&device->output, "SUBSCRIBE d:%07u\r\n", load_channel(device) % 10000000);
}

static ssize_t subscriber_read(struct link *device, const uint8_t *data, size_t count) {
    struct text texts[TEXTS_MOST];
    size_t used = 0, found = 0;
    ssize_t size;
    while ((size = whole(data + used, count - used, texts, &found, 0)) > 0) {
        if (found == 2 && is_text(texts[0], "subscribe")) load_welcomed(device);
        else if (found == 3 && is_text(texts[0], "message")) load_delivered(device, texts[2].data, texts[2].count);
        else return -1;
        used += (size_t)size;
        found = 0;
    }
    return size < 0 ? -1 : (ssize_t)used;
}

static void publish(struct link *publisher, uint32_t device, const uint8_t *payload, size_t count) {
    append_text(&publisher->output, "*3\r\n$7\r\nPUBLISH\r\n$9\r\nd:%07u\r\n$%zu\r\n", device % 10000000, count);
    append(&publisher->output, payload, count);
    append(&publisher->output, "\r\n", 2);
}

const struct driver redis_driver = {
    .name = "redis",
    .greet = subscribe,
    .device_read = subscriber_read,
    .publisher_greet = publisher_greet,
    .publisher_read = publisher_read,
    .publish = publish,
};

/* Streams */

static void greet(struct link *device) {
    if (device->is_registered) append_text(&device->output, "PING\r\n");
    else append_text(&device->output, "XGROUP CREATE d:%07u g $ MKSTREAM\r\n", device->index % 10000000);
}

/* Waits for what is new, at most 64 at once. */
static void ask(struct link *device) {
    append_text(
        &device->output, "XREADGROUP GROUP g c COUNT 64 BLOCK 0 STREAMS d:%07u >\r\n", device->index % 10000000);
}

static void acknowledge(struct link *device, const char *command, const char *group, const struct text *texts,
                        size_t found) {
    append_text(&device->output, "%s d:%07u%s", command, device->index % 10000000, group);
    for (size_t at = 1; at + 2 < found; at += 3) {
        append(&device->output, " ", 1);
        append(&device->output, texts[at].data, texts[at].count);
    }
    append(&device->output, "\r\n", 2);
}

/* One stream with entries of one field: its name, then for each entry its name, field and value. */
static bool entries(struct link *device, const struct text *texts, size_t found) {
    if (found < 4 || found % 3 != 1) return false;
    for (size_t at = 1; at + 2 < found; at += 3) load_delivered(device, texts[at + 2].data, texts[at + 2].count);
    acknowledge(device, "XACK", " g", texts, found);
    acknowledge(device, "XDEL", "", texts, found);
    if (!load_is_done(device)) ask(device);
    return true;
}

static ssize_t reader_read(struct link *device, const uint8_t *data, size_t count) {
    struct text texts[TEXTS_MOST];
    size_t used = 0, found = 0;
    ssize_t size;
    while ((size = whole(data + used, count - used, texts, &found, 0)) > 0) {
        if (data[used] == '+') {
            load_welcomed(device);
            if (device->phase == HERE) ask(device);
        } else if (data[used] == '*') {
            if (!entries(device, texts, found)) return -1;
        } else if (data[used] != ':') {
            return -1;
        }
        used += (size_t)size;
        found = 0;
    }
    return size < 0 ? -1 : (ssize_t)used;
}

static void leave(struct link *device) { append_text(&device->output, "QUIT\r\n"); }

static void add(struct link *publisher, uint32_t device, const uint8_t *payload, size_t count) {
    append_text(&publisher->output, "*5\r\n$4\r\nXADD\r\n$9\r\nd:%07u\r\n$1\r\n*\r\n$1\r\np\r\n$%zu\r\n",
                device % 10000000, count);
    append(&publisher->output, payload, count);
    append(&publisher->output, "\r\n", 2);
}

const struct driver redis_streams_driver = {
    .name = "redis-streams",
    .greet = greet,
    .device_read = reader_read,
    .leave = leave,
    .publisher_greet = publisher_greet,
    .publisher_read = publisher_read,
    .publish = add,
};
