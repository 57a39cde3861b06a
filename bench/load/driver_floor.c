/* The floor's frames; see bench/floor/relay.c. */
#include "load.h"

#include <string.h>

enum { HEAD = 7 };

static void frame(struct link *link, char type, uint32_t number, size_t length) {
    uint8_t head[HEAD] = {(uint8_t)type};
    uint16_t size = (uint16_t)length;
    memcpy(head + 1, &number, 4);
    memcpy(head + 5, &size, 2);
    append(&link->output, head, HEAD);
}

/* The size of the whole frame at the front, or 0. */
static size_t whole(const uint8_t *data, size_t count, uint32_t *number) {
    if (count < HEAD) return 0;
    uint16_t length;
    memcpy(number, data + 1, 4);
    memcpy(&length, data + 5, 2);
    return count < (size_t)HEAD + length ? 0 : (size_t)HEAD + length;
}

static void greet(struct link *device) {
    device->number = 0;
    frame(device, 'L', device->index, 0);
}

/* One cumulative acknowledgement for all of a read, as the gateway's devices send. */
static ssize_t device_read(struct link *device, const uint8_t *data, size_t count) {
    size_t used = 0, size;
    uint32_t number, last = 0;
    while ((size = whole(data + used, count - used, &number)) > 0) {
        if (data[used] == 'W') {
            load_welcomed(device);
        } else if (data[used] == 'M') {
            load_delivered(device, data + used + HEAD, size - HEAD);
            last = number;
        } else {
            return -1;
        }
        used += size;
    }
    if (last > 0) frame(device, 'A', last, 0);
    return (ssize_t)used;
}

static void leave(struct link *device) { frame(device, 'B', 0, 0); }

/* Its port expects messages from the first byte on. */
static void publisher_greet(struct link *publisher) { load_welcomed(publisher); }

static ssize_t publisher_read(struct link *publisher, const uint8_t *data, size_t count) {
    size_t used = 0, size;
    uint32_t accepted = publisher->number;
    while ((size = whole(data + used, count - used, &accepted)) > 0) {
        if (data[used] != 'A') return -1;
        used += size;
    }
    if (used > 0) {
        load_accepted(publisher, accepted - publisher->number);
        publisher->number = accepted;
    }
    return (ssize_t)used;
}

static void publish(struct link *publisher, uint32_t device, const uint8_t *payload, size_t count) {
    frame(publisher, options.is_broadcast ? '*' : 'P', device, count);
    append(&publisher->output, payload, count);
}

const struct driver floor_driver = {
    .name = "floor",
    .greet = greet,
    .device_read = device_read,
    .leave = leave,
    .publisher_greet = publisher_greet,
    .publisher_read = publisher_read,
    .publish = publish,
};
