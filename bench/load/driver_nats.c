/*
 * Core NATS: a subject for each device, and a reply of the device as its acknowledgement. The server answers nothing to
 * a publisher and keeps nothing, so the reply is also what tells the backend that its message was taken.
 */
#define _GNU_SOURCE
#include "load.h"

#include <stdlib.h>
#include <string.h>

static const char CONNECT[] = "CONNECT {\"verbose\":false,\"pedantic\":false,\"lang\":\"c\",\"version\":\"1\"}\r\n";

static void greet(struct link *device) { append_text(&device->output, "%sSUB d.%u 1\r\nPING\r\n", CONNECT, device->index); }

static void publisher_greet(struct link *publisher) {
    append_text(&publisher->output, "%sSUB a.%u 1\r\nPING\r\n", CONNECT, publisher->index);
}

struct line {
    size_t size; /* with its end */
    char words[6][64];
    int count;
};

/* False while the line is not whole. Only the first six words are of interest, and INFO's one is long. */
static bool read_line(const uint8_t *data, size_t count, struct line *line) {
    const uint8_t *end = memmem(data, count, "\r\n", 2);
    if (end == NULL) return false;
    line->size = (size_t)(end - data) + 2;
    line->count = 0;
    const uint8_t *at = data;
    while (at < end && line->count < 6) {
        const uint8_t *stop = memchr(at, ' ', (size_t)(end - at));
        if (stop == NULL) stop = end;
        size_t length = (size_t)(stop - at) < 63 ? (size_t)(stop - at) : 63;
        memcpy(line->words[line->count], at, length);
        line->words[line->count++][length] = 0;
        at = stop < end ? stop + 1 : end;
    }
    return true;
}

static ssize_t readable(struct link *link, const uint8_t *data, size_t count) {
    size_t used = 0;
    uint32_t replies = 0;
    struct line line;
    while (read_line(data + used, count - used, &line)) {
        const char *word = line.words[0];
        size_t size = line.size;
        if (line.count == 0) return -1;
        if (strcmp(word, "MSG") == 0) {
            // MSG subject sid [reply] size
            if (line.count < 4) return -1;
            size_t length = strtoul(line.words[line.count - 1], NULL, 10);
            size += length + 2;
            if (count - used < size) break;
            if (link->is_publisher) {
                replies++;
            } else {
                if (line.count != 5) return -1;
                load_delivered(link, data + used + line.size, length);
                append_text(&link->output, "PUB %s 0\r\n\r\n", line.words[3]);
            }
        } else if (strcmp(word, "PONG") == 0) {
            load_welcomed(link);
        } else if (strcmp(word, "PING") == 0) {
            append_text(&link->output, "PONG\r\n");
        } else if (strcmp(word, "INFO") != 0) {
            return -1;
        }
        used += size;
    }
    if (replies > 0) load_accepted(link, replies);
    return (ssize_t)used;
}

static void publish(struct link *publisher, uint32_t device, const uint8_t *payload, size_t count) {
    append_text(&publisher->output, "PUB d.%u a.%u %zu\r\n", device, publisher->index, count);
    append(&publisher->output, payload, count);
    append(&publisher->output, "\r\n", 2);
}

const struct driver nats_driver = {
    .name = "nats",
    .greet = greet,
    .device_read = readable,
    .publisher_greet = publisher_greet,
    .publisher_read = readable,
    .publish = publish,
};
